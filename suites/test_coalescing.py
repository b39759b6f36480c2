"""Coalescing: a warp pays for the 32-byte sectors it touches, not for the bytes it asks for."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.devices import Device
from harness.profiles import stored
from harness.workloads.access import BLOCK, SECTOR, Copy, Update
from harness.workloads.reduction import Reduction

FIELDS: Final = 2  # of a record, u and y[0]
LOADS: Final = tuple(
    f"l1tex__t_{what}_pipe_lsu_mem_global_op_ld.sum" for what in ("sectors", "requests")
)


def traffic(emulator: Any, workload: Update | Copy, opcode: str = "ld") -> Any:
    """What a workload asks of global memory."""
    return emulator.count_checked(workload).traffic(opcode, "global")


def sectors_per_request(emulator: Any, workload: Update | Copy) -> float:
    """Distinct sectors a load request touches, on average."""
    loads = traffic(emulator, workload)
    return float(loads.sectors / loads.requests)


@pytest.mark.claim(
    "coalescing.sector-and-line",
    "memory moves in 32-byte sectors, a cache line is 128 bytes, four of them",
)
def test_a_warp_of_floats_takes_four_sectors_in_any_order(claim: Any, emulator: Any) -> None:
    """32 lanes x 4 bytes = 128 bytes = 4 sectors, however the lanes share them out.

    That is between the SMs and the L2; the DRAM of an H200 moves 64 bytes at least (scattered).
    That four sectors share the tag of one line is the programming guide's word, not tested here.
    """

    @given(mask=st.integers(0, 31), blocks=st.integers(1, 4))
    def any_order_inside_the_line(mask: int, blocks: int) -> None:
        copy = Copy("permuted", mask, n=blocks * BLOCK)
        assert sectors_per_request(emulator, copy) == 4, f"lane ^ {mask}"

    any_order_inside_the_line()
    claim.counted(
        "sectors per request, aligned", sectors_per_request(emulator, Copy("offset", 0, 1024)), 4
    )
    claim.counted(
        "sectors per request, lanes reversed",
        sectors_per_request(emulator, Copy("permuted", 31, 1024)),
        4,
    )
    for profile in stored():
        sectors, requests = (profile.counter(Reduction("reduce_v1"), each) for each in LOADS)
        claim.counted("sectors per request of V1", sectors / requests, 4, profile.label)


@pytest.mark.claim(
    "coalescing.misaligned", "a warp that is not aligned to 32 bytes costs a sector more"
)
def test_a_misaligned_warp_touches_five_sectors(claim: Any, emulator: Any) -> None:
    """128 bytes that start inside a sector reach into a fifth: 5 unless offset % 8 == 0.

    The fifth is the neighbour warp's first, so DRAM sees no more bytes, and time hardly moves.
    """

    @given(offset=st.integers(0, 1024))
    def five_unless_a_multiple_of_eight(offset: int) -> None:
        expected = 4 if offset % 8 == 0 else 5
        assert sectors_per_request(emulator, Copy("offset", offset, n=BLOCK)) == expected

    five_unless_a_multiple_of_eight()
    for offset, sectors in ((1, 5), (8, 4)):
        copy = Copy("offset", offset, n=1024)
        what = f"sectors per request, offset {offset}"
        found = sectors_per_request(emulator, copy)
        claim.counted(what, found, sectors, decisive=offset == 1)
    claim.timed("offset 1 / offset 0", Copy("offset", 1), Copy("offset", 0), at_most=1.10)


@pytest.mark.claim("coalescing.scattered", "accesses far apart waste the rest of their sectors")
def test_a_stride_wastes_sectors_until_each_lane_has_its_own(claim: Any, emulator: Any) -> None:
    """A lane reads 4 * stride bytes past its neighbour: min(32, 4 * stride) sectors a request.

    Time grows beyond that: from stride 8 to 16 the sectors stay the same and the time of an H200
    nearly doubles. Its memory moves 64 bytes at least, so every lane then wastes half of them.
    """

    @given(stride=st.integers(1, 64))
    def four_times_the_stride_up_to_a_sector_a_lane(stride: int) -> None:
        copy = Copy("strided", stride, n=BLOCK)
        assert sectors_per_request(emulator, copy) == min(32, 4 * stride)

    four_times_the_stride_up_to_a_sector_a_lane()
    for stride in (1, 2, 4, 8, 16):
        copy = Copy("strided", stride, n=1024)
        what = f"sectors per request, stride {stride}"
        found = sectors_per_request(emulator, copy)
        claim.counted(what, found, min(32, 4 * stride), decisive=stride == 8)
    for profile in stored():
        wide = [Copy("strided", stride) for stride in (8, 16, 32)]
        moved = [round(profile.counter(copy, "dram__bytes_read.sum") / copy.n) for copy in wide]
        claim.counted("bytes from memory a lane, stride 8", moved[0], SECTOR, profile.label)
        claim.counted("more for stride 32 than for 16", moved[2] > moved[1], False, profile.label)
        claim.note(f"Strides 8, 16 and 32 read {moved} bytes a lane ({profile.label}).")
    for stride in (2, 4, 8, 16):
        what = f"stride {stride} / stride {stride // 2}"
        claim.timed(what, Copy("strided", stride), Copy("strided", stride // 2), at_least=1)


@pytest.mark.claim("coalescing.soa-8x", "struct of arrays is about 8x faster", published="8x")
def test_structs_take_eight_times_the_sectors_and_the_time(claim: Any, emulator: Any) -> None:
    """An 80-byte record puts every lane's field in a sector of its own: 32 sectors against 4.

    u and y[0] are 44 bytes apart, so they never share a sector, and stores pay as loads do. Timed
    are 2^24 records: of fewer, an L2 still holds the arrays' results when the kernel ends, though
    not the structs'.
    """

    @given(blocks=st.integers(1, 8))
    def exactly_eight(blocks: int) -> None:
        for opcode in ("ld", "st"):
            aos, soa = (
                traffic(emulator, Update(layout, blocks * BLOCK), opcode)
                for layout in ("aos", "soa")
            )
            assert aos.sectors == 8 * soa.sectors
            assert aos.requests == soa.requests

    exactly_eight()
    for opcode, name in (("ld", "load"), ("st", "store")):
        aos, soa = (traffic(emulator, Update(layout, 1024), opcode) for layout in ("aos", "soa"))
        claim.counted(f"{name} sectors, AoS / SoA", aos.sectors / soa.sectors, 8.0)
    claim.timed("AoS / SoA", Update("aos"), Update("soa"), at_least=8 * 0.85, at_most=8 * 1.15)


VARIANTS = [
    Update("aos"),
    Update("soa"),
    Copy("offset", 0),
    Copy("offset", 1),
    Copy("permuted", 31),
    *(Copy("strided", stride) for stride in (2, 4, 8, 16, 32)),
]


@pytest.mark.parametrize("workload", VARIANTS, ids=lambda workload: workload.name.split(" ")[0])
@pytest.mark.benchmark(group="coalescing")
def test_the_access_patterns_are_timed(bench: Any, workload: Update | Copy) -> None:
    """A row of the benchmark table for each access pattern."""
    bench(workload)


@given(
    workload=st.builds(
        Copy,
        st.sampled_from(["offset", "strided", "permuted"]),
        st.integers(0, 31),
        st.integers(1, 6).map(BLOCK.__mul__),
    )
    | st.builds(Update, st.sampled_from(["aos", "soa"]), st.integers(1, 6).map(BLOCK.__mul__))
)
def test_a_warp_asks_once_for_what_it_moves(emulator: Any, workload: Update | Copy) -> None:
    """Sectors per request say nothing of a request made twice: n / 32 of a field, each way."""
    threads, fields = (workload.n, 1) if isinstance(workload, Copy) else (workload.records, FIELDS)
    for opcode in ("ld", "st"):
        found = traffic(emulator, workload, opcode)
        assert (found.requests, found.lanes) == (fields * threads // 32, fields * threads)


@given(
    pattern=st.sampled_from(["offset", "strided", "permuted"]),
    amount=st.integers(0, 31),
    blocks=st.integers(1, 6),
)
def test_every_pattern_copies_what_it_says(
    device: Device, pattern: str, amount: int, blocks: int
) -> None:
    """Whatever a pattern costs, it is a copy."""
    Copy(pattern, amount, n=blocks * BLOCK).prepare(device).check()


@given(layout=st.sampled_from(["aos", "soa"]), blocks=st.integers(1, 6))
def test_both_layouts_update_the_same_two_fields(device: Device, layout: str, blocks: int) -> None:
    """Every other field keeps its bits."""
    Update(layout, blocks * BLOCK).prepare(device).check()
