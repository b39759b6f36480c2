"""Every access in bounds and aligned, or an error that says by how much, where and who."""

from __future__ import annotations

import gc
from itertools import pairwise

import numpy as np
import pytest

from harness.devices.emulator import EmulatedDevice, Fault
from harness.devices.emulator.memory import ALIGNMENT, RED_ZONE, GlobalMemory
from harness.devices.emulator.tests.ptx_text import pointer, program

LOAD = "ld.param.u64 %rd0, [p0]; ld.global.u32 %r0, [%rd0]; ret;"
NOWHERE = r"is in no allocation \(null, freed, or never allocated\)"


def load(device: EmulatedDevice, address: int, body: str = LOAD) -> None:
    device.run(program(body, ("u64",)), [np.uint64(address)], 2, 64)


def test_one_element_past_either_end_is_named() -> None:
    device = EmulatedDevice()
    array = device.put(np.zeros(10, np.float32))
    start = int(pointer(array))
    load(device, start + 36)
    with pytest.raises(Fault) as error:
        load(device, start + 40)
    assert str(error.value) == (
        f"k: `ld.global.u32 %r0, [%rd0]`: the access at {start + 40:#x} ends 4 bytes past "
        f"the 40 bytes at {start:#x} (block 0, thread 0)"
    )
    with pytest.raises(Fault, match=f"begins 4 bytes before the 40 bytes at {start:#x}"):
        load(device, start - 4)


def test_the_lane_that_leaves_the_array_is_named() -> None:
    device = EmulatedDevice()
    array = device.put(np.zeros(100, np.int32))
    body = """
        ld.param.u64 %rd0, [p0]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x;
        mad.lo.u32 %r0, %r1, 64, %r0; mad.wide.u32 %rd0, %r0, 4, %rd0;
        ld.global.u32 %r2, [%rd0]; ret;
    """
    with pytest.raises(Fault, match=r"ends 4 bytes past the 400 bytes .*\(block 1, thread 36\)"):
        load(device, int(pointer(array)), body)


@pytest.mark.parametrize("address", [0, 4, 2**40, 2**63, 2**64 - 4])
def test_no_allocation_has_that_address(address: int) -> None:
    device = EmulatedDevice()
    kept = device.put(np.zeros(2**8))
    with pytest.raises(Fault, match=NOWHERE):
        load(device, address)
    assert device.get(kept).sum() == 0


def test_a_freed_array_is_gone_for_good() -> None:
    device = EmulatedDevice()
    array, kept = device.empty(8, np.float32), device.empty(8, np.float32)
    address = int(pointer(array))
    del array
    gc.collect()
    with pytest.raises(Fault, match=NOWHERE):
        load(device, address)
    device.empty(8, np.float32)  # not in the place of the freed one
    with pytest.raises(Fault, match=NOWHERE):
        load(device, address)
    load(device, int(pointer(kept)))


def test_a_view_keeps_its_array_alive() -> None:
    device = EmulatedDevice()
    view = device.put(np.arange(8, dtype=np.float32))[4:]
    gc.collect()
    load(device, int(pointer(view)))
    assert device.get(view).tolist() == [4, 5, 6, 7]


def test_allocations_are_aligned_and_apart() -> None:
    memory = GlobalMemory()
    allocations = [memory.allocate(size) for size in (0, 1, 255, 256, 257)]
    for one, other in pairwise(allocations):
        assert one.address % ALIGNMENT == 0
        assert other.address - one.address - one.size >= RED_ZONE


@pytest.mark.parametrize(
    ("access", "size", "offset"),
    [
        ("ld.global.u16 %h0, [%rd0+1]", 2, 1),
        ("ld.global.f32 %f0, [%rd0+2]", 4, 2),
        ("ld.global.v2.f32 {%f0, %f1}, [%rd0+4]", 8, 4),
        ("ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%rd0+8]", 16, 8),
        ("st.global.v4.f32 [%rd0+4], {%f0, %f0, %f0, %f0}", 16, 4),
        ("atom.global.add.u64 %rd1, [%rd0+4], %rd0", 8, 4),
        ("st.shared.u32 [words+2], 1", 4, 2),
        ("st.shared.v4.u32 [words+4], {%r0, %r0, %r0, %r0}", 16, 4),
    ],
)
def test_a_misaligned_access_is_an_error(access: str, size: int, offset: int) -> None:
    """A vector must be aligned to all its bytes, though each element would be."""
    device = EmulatedDevice()
    array = device.put(np.zeros(16))
    body = f"ld.param.u64 %rd0, [p0]; mov.f32 %f0, 0f0; mov.u32 %r0, 0; {access}; ret;"
    launch = program(body, ("u64",), ".shared .align 16 .b8 words[64];")
    with pytest.raises(Fault) as error:
        device.run(launch, [pointer(array)], 1, 1)
    assert str(error.value) == (
        f"k: `{access}`: not aligned to the {size} bytes of the access (block 0, thread 0)"
    )


def test_a_vector_may_not_end_outside() -> None:
    device = EmulatedDevice()
    array = device.put(np.zeros(6, np.float32))
    body = "ld.param.u64 %rd0, [p0]; ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%rd0+16]; ret;"
    with pytest.raises(Fault, match="ends 8 bytes past the 24 bytes"):
        load(device, int(pointer(array)), body)


def test_lanes_of_one_access_may_go_to_several_arrays() -> None:
    """Even lanes read and add to one array, odd lanes to the other."""
    device = EmulatedDevice()
    arrays = [device.put(base + np.arange(64, dtype=np.int32)) for base in (0, 1000)]
    out = device.empty(64, np.int32)
    body = """
        ld.param.u64 %rd0, [p0]; ld.param.u64 %rd1, [p1]; ld.param.u64 %rd2, [p2];
        mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 1; setp.eq.u32 %p0, %r1, 1;
        selp.b64 %rd0, %rd1, %rd0, %p0;
        mad.wide.u32 %rd0, %r0, 4, %rd0; mad.wide.u32 %rd2, %r0, 4, %rd2;
        ld.global.u32 %r2, [%rd0]; st.global.u32 [%rd2], %r2;
        atom.global.add.u32 %r3, [%rd0], 5; ret;
    """
    device.run(program(body, ("u64",) * 3), [pointer(a) for a in (*arrays, out)], 1, 64)
    expected = np.arange(64) + 1000 * (np.arange(64) % 2)
    assert device.get(out).tolist() == expected.tolist()
    for odd, array in enumerate(arrays):
        touched = np.arange(64) % 2 == odd
        assert (device.get(array) == 1000 * odd + np.arange(64) + 5 * touched).all()


def test_where_all_lanes_store_to_one_address_one_of_them_wins() -> None:
    device = EmulatedDevice()
    out = device.empty(1, np.int32)
    body = "ld.param.u64 %rd0, [p0]; mov.u32 %r0, %ctaid.x; st.global.u32 [%rd0], %r0; ret;"
    device.run(program(body, ("u64",)), [pointer(out)], 5, 32)
    assert device.get(out)[0] in range(5)


def test_atomics_on_many_and_on_few_addresses_add_up() -> None:
    """Contended words are summed one by one, many words in turns: the same sums."""
    for words in (1, 3, 100, 4096):
        device = EmulatedDevice()
        bins = device.put(np.zeros(words, np.int32))
        body = f"""
            ld.param.u64 %rd0, [p0]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x;
            mad.lo.u32 %r0, %r1, 256, %r0; rem.u32 %r0, %r0, {words};
            mad.wide.u32 %rd0, %r0, 4, %rd0; red.global.add.u32 [%rd0], 1; ret;
        """
        device.run(program(body, ("u64",)), [pointer(bins)], 16, 256)
        expected = np.bincount(np.arange(4096) % words, minlength=words)
        assert device.get(bins).tolist() == expected.tolist()


# Each lane adds its element of p0 to a word of p1 (old value to p3) and to a copy of it, to p2.
ADD_IN_BOTH_SPACES = """
    ld.param.u64 %rd0, [p0]; ld.param.u64 %rd1, [p1]; ld.param.u64 %rd2, [p2];
    ld.param.u64 %rd3, [p3]; mov.u32 %r0, %tid.x; mad.wide.u32 %rd3, %r0, 4, %rd3;
    mad.wide.u32 %rd0, %r0, 4, %rd0; ld.global.f32 %f0, [%rd0];
    mad.wide.u32 %rd1, %r0, {spread}, %rd1; mad.wide.u32 %rd2, %r0, 4, %rd2;
    mov.u32 %r1, words; mad.lo.u32 %r2, %r0, 4, %r1; ld.global.f32 %f1, [%rd1];
    st.shared.f32 [%r2], %f1; bar.sync 0; mad.lo.u32 %r1, %r0, {spread}, %r1;
    atom.global.add.f32 %f3, [%rd1], %f0; st.global.f32 [%rd3], %f3;
    red.shared.add.f32 [%r1], %f0; bar.sync 0; ld.shared.f32 %f2, [%r2];
    st.global.f32 [%rd2], %f2; ret;
"""


@pytest.mark.parametrize("values", [[1.0] * 9, [2.0**-130] * 9, [2.0**-126, -1.5 * 2.0**-126] * 5])
@pytest.mark.parametrize("spread", [0, 4], ids=["one word", "a word each"])
def test_float_atomics_flush_subnormals_on_global_memory_only(
    values: list[float], spread: int
) -> None:
    """PTX ISA, atom: on global memory a subnormal operand or sum is zero, on shared it is kept."""
    device = EmulatedDevice()
    n, start = len(values), 2.0**-128
    x, word = device.put(np.array(values, np.float32)), device.put(np.full(n, start, np.float32))
    out, old = device.empty(n, np.float32), device.empty(n, np.float32)
    body = ADD_IN_BOTH_SPACES.format(spread=spread)
    launch = program(body, ("u64",) * 4, ".shared .align 4 .b8 words[64];")
    device.run(launch, [pointer(a) for a in (x, word, out, old)], 1, n)
    kept = [np.float32(start)] * n
    flushed, before = list(kept), []
    for lane, value in enumerate(values):
        place = lane if spread else 0
        before.append(flushed[place])
        kept[place] += np.float32(value)
        flushed[place] = flush(flush(flushed[place]) + flush(np.float32(value)))
    assert device.get(out).tolist() == kept
    assert device.get(word).tolist() == flushed
    assert device.get(old).tolist() == before


def flush(value: np.float32) -> np.float32:
    return value if abs(value) >= 2.0**-126 else np.float32(0)
