"""Every access inside one variable of the block's shared memory, or an error that names it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness.devices.emulator import EmulatedDevice, Fault
from harness.devices.emulator.tests.ptx_text import program
from kernels import Kernel

# At bytes 0, 64, 256 (128 aligned) and, for what the launch gives, 288.
VARIABLES = """
    .shared .align 4 .b8 first[64]; .shared .align 4 .b8 second[100];
    .shared .align 128 .b8 third[32]; .extern .shared .align 16 .b8 dynamic[];
    .extern .shared .align 4 .b8 also_dynamic[];
"""
NAMED = "mov.u32 %r0, first; mov.u32 %r0, second; mov.u32 %r0, third; mov.u32 %r0, dynamic;"


def store(place: str, shared: int = 64) -> None:
    body = f"{NAMED} mov.u32 %r0, also_dynamic; st.shared.u32 [{place}], 1; ret;"
    EmulatedDevice().run(program(body, (), VARIABLES), [], 2, 1, shared=shared)


@pytest.mark.parametrize(
    "place", ["first", "first+60", "second", "second+96", "third+28", "dynamic", "dynamic+60"]
)
def test_a_variable_may_be_used_to_its_ends(place: str) -> None:
    store(place)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("first+64", "ends 4 bytes past the 64 bytes of first, in second"),
        ("second+-4", "begins 4 bytes before the 100 bytes of second, in first"),
        ("first+128", "ends 68 bytes past the 64 bytes of first, in second"),
        (
            "second+100",
            "ends 4 bytes past the 100 bytes of second, in the gap between two variables",
        ),
        (
            "third+-4",
            "begins 4 bytes before the 32 bytes of third, in the gap between two variables",
        ),
        ("first+256", "ends 196 bytes past the 64 bytes of first, in third"),
        ("third+32", "ends 4 bytes past the 32 bytes of third, in also_dynamic"),
        ("dynamic+-4", "begins 4 bytes before the 64 bytes of also_dynamic, in third"),
    ],
)
def test_an_index_leads_into_no_other_variable(place: str, message: str) -> None:
    with pytest.raises(Fault) as error:
        store(place)
    assert str(error.value) == (
        f"k: `st.shared.u32 [{place}], 1`: the access {message} (block 0, thread 0)"
    )


@pytest.mark.parametrize("place", ["first+-4", "dynamic+64", "first+352", "third+0x7ff00000"])
def test_what_no_variable_has_is_outside_the_block(place: str) -> None:
    with pytest.raises(Fault, match=r"outside the block's 352 bytes of shared memory \(block 0"):
        store(place)


def test_all_dynamic_arrays_are_one() -> None:
    body = f"""
        {NAMED} mov.u32 %r0, %tid.x; shl.b32 %r0, %r0, 2; mov.u32 %r1, also_dynamic;
        add.u32 %r1, %r1, %r0; st.shared.u32 [%r1], %r0; bar.sync 0;
        ld.shared.u32 %r2, [dynamic+124]; ret;
    """
    EmulatedDevice().run(program(body, (), VARIABLES), [], 2, 32, shared=128)


def test_banks_are_those_of_the_hardware_s_layout() -> None:
    """Half of the warp reads `first`, half `second` 64 bytes on: 32 banks, one wavefront."""
    body = f"""
        {NAMED} mov.u32 %r0, also_dynamic; mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 15;
        shl.b32 %r1, %r1, 2; setp.lt.u32 %p0, %r0, 16; mov.u32 %r2, first; mov.u32 %r3, second;
        selp.b32 %r2, %r2, %r3, %p0; add.u32 %r1, %r1, %r2; st.shared.u32 [%r1], 1; ret;
    """
    device, launch = EmulatedDevice(), program(body, (), VARIABLES)
    counters = device.count(lambda: device.run(launch, [], 1, 32))
    assert counters.traffic("st", "shared").wavefronts == 1


def test_a_neighbour_in_cuda_is_not_reached(tmp_path: Path) -> None:
    source = tmp_path / "neighbours.cu"
    source.write_text("""
        extern "C" __global__ void neighbours(int* o)
        {
            __shared__ int a[32], b[32];
            int t = threadIdx.x;
            a[t] = t; b[t] = -t;
            __syncthreads();
            o[t] = a[t + o[t]] + b[t];
        }
    """)
    device, launched = EmulatedDevice(), Kernel(str(tmp_path / "neighbours"), "neighbours")
    device.launch(launched, 1, 32, device.put(np.zeros(32, np.int32)))
    with pytest.raises(Fault, match=r"ends 4 bytes past the 128 bytes of \w*E1a, in \w*E1b \(bl"):
        device.launch(launched, 1, 32, device.put(np.ones(32, np.int32)))


def test_shared_memory_ends_where_the_block_s_share_ends() -> None:
    body = "st.shared.u32 [words+{offset}], 1; ret;"
    outside = ".shared .align 4 .b8 words[64];"
    EmulatedDevice().run(program(body.format(offset=60), (), outside), [], 1, 1)
    with pytest.raises(
        Fault, match=r"outside the block's 64 bytes of shared memory \(block 0, thr"
    ):
        EmulatedDevice().run(program(body.format(offset=64), (), outside), [], 1, 32)


def test_shared_addresses_wrap_at_32_bits() -> None:
    """Compilers write words[15 - tid] as -4 * tid, with 60 as the offset."""
    body = """
        mov.u32 %r0, %tid.x; mul.lo.u32 %r1, %r0, -4; mov.u32 %r2, words; add.u32 %r1, %r1, %r2;
        st.shared.u32 [%r1+60], %r0; bar.sync 0; ld.shared.u32 %r2, [%r1+60]; ret;
    """
    outside = ".shared .align 4 .b8 words[64];"
    EmulatedDevice().run(program(body, (), outside), [], 2, 16)
    with pytest.raises(Fault, match=r"outside .* \(block 0, thread 15\)"):
        EmulatedDevice().run(program(body.replace("+60", "+56"), (), outside), [], 2, 16)
