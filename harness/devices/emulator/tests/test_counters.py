"""Counts against formulas and brute force: sectors, wavefronts, issued instructions, atomics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.devices.emulator import Counters, EmulatedDevice
from harness.devices.emulator.counters import wavefronts_per_request
from harness.devices.emulator.tests.ptx_text import pointer, program

# By bytes a lane: the type of an access, and what it moves.
ACCESS: Final = {
    1: ("u8", "%h0"),
    2: ("u16", "%h0"),
    4: ("u32", "%r9"),
    8: ("u64", "%rd9"),
    16: ("v4.u32", "{%r5, %r6, %r7, %r8}"),
}
INDEX: Final = """
    .reg .b32 %r9; .reg .b64 %rd9;
    mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x;
    mad.lo.u32 %r0, %r1, %r2, %r0;
"""


def count(
    body: str, arguments: Sequence[Any], grid: int, block: int, outside: str = ""
) -> Counters:
    device = EmulatedDevice()
    arrays = [device.put(a) for a in arguments]
    launch = program(f"{INDEX} {body} ret;", ("u64",) * len(arrays), outside)
    pointers = [pointer(array) for array in arrays]
    return device.count(lambda: device.run(launch, pointers, grid, block))


def warps(values: Sequence[int], block: int) -> Iterable[Sequence[int]]:
    """Split what all threads of a grid do into warps; a block's last one may be short."""
    for first in range(0, len(values), block):
        for warp in range(first, first + block, 32):
            yield values[warp : min(warp + 32, first + block)]


@given(
    size=st.sampled_from([1, 2, 4, 8, 16]),
    stride=st.integers(0, 40),
    offset=st.integers(0, 40),
    block=st.integers(1, 100),
    grid=st.integers(1, 4),
)
def test_sectors_are_the_distinct_32_bytes_of_each_request(
    size: int, stride: int, offset: int, block: int, grid: int
) -> None:
    kind, register = ACCESS[size]
    data = np.zeros((stride * grid * block + offset + 1) * size, np.uint8)
    load = f"""
        ld.param.u64 %rd0, [p0]; mad.lo.u32 %r0, %r0, {stride}, {offset};
        mad.wide.u32 %rd0, %r0, {size}, %rd0; ld.global.{kind} {register}, [%rd0];
    """
    traffic = count(load, [data], grid, block).traffic("ld", "global")
    elements = [i * stride + offset for i in range(grid * block)]
    assert traffic.requests == grid * -(-block // 32)
    assert (traffic.lanes, traffic.bytes) == (grid * block, grid * block * size)
    # Allocations begin at a multiple of 256 bytes; no element lies across two sectors.
    assert traffic.sectors == sum(
        len({e * size // 32 for e in warp}) for warp in warps(elements, block)
    )
    assert (traffic.wavefronts, traffic.degree) == (0, 0)


@pytest.mark.parametrize("stride", [1, 2, 3, 4, 8, 16, 33])
def test_strided_floats_take_four_sectors_times_the_stride_up_to_one_each(stride: int) -> None:
    load = f"""
        ld.param.u64 %rd0, [p0]; mul.lo.u32 %r0, %r0, {stride};
        mad.wide.u32 %rd0, %r0, 4, %rd0; ld.global.f32 %f0, [%rd0];
    """
    traffic = count(load, [np.zeros(8 * 128 * stride, np.float32)], 8, 128).traffic("ld", "global")
    assert traffic.sectors == traffic.requests * min(32, 4 * stride)


@given(st.permutations(range(32)))
def test_order_inside_a_line_costs_nothing(order: list[int]) -> None:
    load = """
        ld.param.u64 %rd0, [p0]; ld.param.u64 %rd1, [p1];
        mad.wide.u32 %rd0, %r0, 4, %rd0; ld.global.u32 %r3, [%rd0];
        mad.wide.u32 %rd1, %r3, 4, %rd1; ld.global.f32 %f0, [%rd1];
    """
    counters = count(load, [np.array(order, np.uint32), np.zeros(32, np.float32)], 1, 32)
    assert [a.traffic.sectors for a in counters.accesses] == [4, 4]


def wavefronts(addresses: Sequence[int], active: Sequence[bool], size: int) -> int:
    """Serve 128 bytes of lanes at a time, one word of each bank in each wavefront."""
    together = 32 // max(size // 4, 1)
    total = 0
    for first in range(0, 32, together):
        banks: dict[int, set[int]] = {}
        for lane in range(first, first + together):
            if active[lane]:
                word = addresses[lane] // 4
                for w in range(word, word + max(size // 4, 1)):
                    banks.setdefault(w % 32, set()).add(w)
        total += max(map(len, banks.values()), default=0)
    return total


@given(
    st.sampled_from([1, 2, 4, 8, 16]),
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 300), min_size=32, max_size=32),
            st.lists(st.booleans(), min_size=32, max_size=32),
        ),
        min_size=1,
        max_size=4,
    ),
)
def test_wavefronts_serve_each_bank_word_by_word(
    size: int, requests: list[tuple[list[int], list[bool]]]
) -> None:
    address = np.array([[e * size for e in elements] for elements, _ in requests])[None]
    lanes = np.array([active for _, active in requests])[None]
    found = wavefronts_per_request(address, size, lanes)
    expected = [wavefronts([e * size for e in es], active, size) for es, active in requests]
    assert found.tolist() == expected


@given(st.integers(0, 64), st.integers(1, 3))
def test_words_at_a_stride_take_the_common_divisor_with_32(stride: int, grid: int) -> None:
    access = f"""
        mov.u32 %r3, %tid.x; mov.u32 %r4, words; mad.lo.u32 %r4, %r3, {4 * stride}, %r4;
        setp.eq.u32 %p0, %r3, 0; {"@%p0" if stride == 0 else ""} st.shared.u32 [%r4], 1;
        bar.sync 0; ld.shared.u32 %r5, [%r4];
    """
    outside = ".shared .align 16 .b8 words[8192];"
    counters = count(access, [], grid, 32, outside)
    degree = gcd(stride, 32) if stride else 1
    assert counters.degrees("ld", "shared") == [degree]
    assert counters.traffic("ld", "shared").wavefronts == grid * degree


@pytest.mark.parametrize(
    ("tile", "pitch", "degree"), [(32, 32, 32), (32, 33, 1), (16, 16, 8), (16, 17, 2)]
)
def test_a_column_of_a_tile_conflicts_by_the_pitch_its_index_uses(
    tile: int, pitch: int, degree: int
) -> None:
    """A warp reads one column of 32 rows, or two columns of 16.

    One word of padding is no full cure for a tile narrower than a warp, and none at all if the
    index does not use it.
    """
    lane = np.arange(32)
    address = (lane % tile * pitch + lane // tile) * 4
    assert wavefronts_per_request(address[None, None], 4, np.ones((1, 1, 32), bool)) == degree


def test_only_active_lanes_ask() -> None:
    """Lanes 0 to 9 of each warp load: 40 bytes, 2 sectors; the other warp's request is empty."""
    load = """
        ld.param.u64 %rd0, [p0]; mov.u32 %r3, %tid.x; setp.lt.u32 %p0, %r3, 10;
        mad.wide.u32 %rd0, %r0, 4, %rd0; @%p0 ld.global.f32 %f0, [%rd0];
    """
    traffic = count(load, [np.zeros(128, np.float32)], 2, 64).traffic("ld", "global")
    assert (traffic.requests, traffic.lanes, traffic.bytes, traffic.sectors) == (2, 20, 80, 4)


def test_a_vector_load_is_one_request_of_sixteen_sectors() -> None:
    load = """
        ld.param.u64 %rd0, [p0]; mad.wide.u32 %rd0, %r0, 16, %rd0;
        ld.global.nc.v4.f32 {%f0, %f1, %f2, %f3}, [%rd0];
    """
    counters = count(load, [np.zeros(4 * 64, np.float32)], 1, 64)
    traffic = counters.traffic("ld", "global")
    assert (traffic.requests, traffic.sectors, traffic.bytes) == (2, 32, 1024)
    assert counters.issued("ld") == 4  # the parameter is loaded too
    assert counters.opcodes["ld.global.nc.v4.f32"] == 2


def test_atomics_are_counted_by_lane_and_address() -> None:
    """Blocks that do the same on one address count each; a reduction counts as an atomic."""
    device = EmulatedDevice()
    out = device.put(np.zeros(2, np.int32))
    body = """
        ld.param.u64 %rd0, [p0]; red.global.add.u32 [%rd0], 1;
        mov.u32 %r1, %ctaid.x; setp.eq.u32 %p0, %r1, 2;
        @%p0 atom.global.add.u32 %r0, [%rd0+4], 1; ret;
    """
    launch = program(body, ("u64",))
    counters = device.count(lambda: device.run(launch, [pointer(out)], 5, 40))
    assert counters.atomics == {int(pointer(out)): 200, int(pointer(out)) + 4: 40}
    assert device.get(out).tolist() == [200, 40]
    traffic = counters.traffic("atom", "global")
    assert (traffic.requests, traffic.lanes, traffic.sectors) == (12, 240, 12)


@given(st.integers(1, 9), st.integers(1, 200))
def test_uniform_blocks_count_as_many_as_they_are(grid: int, block: int) -> None:
    body = "mov.u32 %r3, %tid.x; add.u32 %r3, %r3, 1; bar.sync 0;"
    counters = count(body, [], grid, block)
    per_warp = INDEX.count(";") - 2 + body.count(";") + 1
    assert counters.warp_instructions == grid * -(-block // 32) * per_warp
    assert counters.lane_instructions == grid * block * per_warp
    assert counters.issued("bar") == grid * -(-block // 32)
