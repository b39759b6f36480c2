"""Little's law: bandwidth is the bytes in flight over the latency, until the memory is full.

Whether the bytes are in flight by instruction-level parallelism (loads of one thread) or by
thread-level parallelism (threads of an SM) hardly matters.
"""

from __future__ import annotations

from itertools import product
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.devices import Device
from harness.devices.disassembly import instructions
from harness.models.counting import bytes_per_thread
from harness.models.datasheet import GPUS, KIB
from harness.models.little import bytes_needed, dram_latency, rate, under_way
from harness.timing import Ideal
from harness.workloads.little import BLOCK, MOST_BLOCKS, Chase, Read, entry

CELLS: Final = tuple(Read(loads, blocks) for loads, blocks in product((1, 2, 4, 8), repeat=2))
FULL, BEYOND = Read(8, 8), Read(16, 8)  # 64 and 128 KiB an SM
COLD: Final = Chase(4096)
IN_L2: Final = Chase(8192, laps=32)  # 1 MiB: more than any L1, and one lap of 32 is cold


@pytest.mark.claim(
    "little.escalator",
    "0.5 persons a second x 40 s are 20 persons; one person at a time is 1/40 a second",
)
def test_an_escalator_carries_what_arrives_times_how_long_it_takes(claim: Any) -> None:
    """Little's law, the same two functions that say what a memory needs."""

    @given(persons=st.floats(1e-3, 1e6), seconds=st.floats(1e-9, 1e3))
    def they_undo_each_other(persons: float, seconds: float) -> None:
        assert rate(under_way(persons, seconds), seconds) == pytest.approx(persons)

    they_undo_each_other()
    claim.counted("persons under way, 0.5 a second, 40 s", under_way(0.5, 40), 20, "arithmetic")
    claim.counted("persons a second, one at a time, 40 s", rate(1, 40), 1 / 40, "arithmetic")


NEEDED: Final = {  # KiB an SM, bandwidth x latency of an idle memory
    "Tesla V100-SXM2-16GB": 3.4,
    "NVIDIA A100-SXM4-40GB": 5.5,
    "NVIDIA A100-SXM4-80GB": 7.2,
    "NVIDIA H100 80GB HBM3": 8.8,
    "NVIDIA H200": 12.4,
    "NVIDIA B200": 22.1,
    "NVIDIA GeForce RTX 4090": 1.9,
}


@pytest.mark.claim("little.bytes-needed", "bytes in flight needed = bandwidth x latency")
def test_each_gpu_needs_its_bandwidth_times_its_latency(claim: Any) -> None:
    """Bandwidth by bus and clock, latency by published pointer chases; here both are measured.

    512 dependent loads and 512 MiB read: the ratio of their times is latency x bandwidth in MiB.
    An RTX 4090 needs 0.24 MiB, an H200 1.6 and a B200 3.2. It is the least: the latency is that of
    an idle memory, and under load two or three times as long. An H200 reads at three quarters of
    its peak with 16 KiB an SM, at nine tenths with 64. CUB keeps two to nine times the least.
    """
    sheet = "data sheets and published latencies"
    for gpu in GPUS:
        kib = bytes_needed(gpu) / KIB / gpu.multiprocessors
        what = f"KiB an SM needs at least, {gpu.name}"
        claim.counted(what, round(kib, 1), NEEDED[gpu.name], sheet)

    kept = [(gpu.in_flight_kib or 0) * KIB * gpu.multiprocessors for gpu in GPUS]
    more = [gpu.name for gpu, size in zip(GPUS, kept, strict=True) if bytes_needed(gpu) < size]
    claim.counted("GPUs on which CUB keeps more in flight", more, list(NEEDED), sheet)

    published = Ideal("published latency", lambda device: COLD.steps * dram_latency(device))
    claim.timed(
        "DRAM latency, measured / published", COLD, published, at_least=3 / 4, at_most=4 / 3
    )
    nanoseconds = Ideal("1 ns a load", lambda device: IN_L2.steps * 1e-9)
    claim.timed("ns of a load that L2 answers", IN_L2, nanoseconds, at_least=80, at_most=300)
    claim.timed(
        "MiB in flight needed, measured latency x measured bandwidth",
        Chase(512),
        FULL,
        at_least=0.2,
        at_most=4,
        decisive=True,
    )


def spelled(read: Read) -> str:
    """A point of the curve in words."""
    return f"{read.loads} loads x {read.blocks} blocks"


LEAST_SHARES: Final = {  # of Little's limit; the knees of all GPUs lie between 2 and 64 KiB
    Read(1, 1): 0.7,
    Read(1, 2): 0.7,
    Read(1, 4): 0.6,
    Read(1, 8): 0.4,
    Read(2, 8): 0.4,
    Read(4, 8): 0.6,
    FULL: 0.8,
}


def fastest(read: Read) -> Ideal:
    """The time of a read by Little's law, or at the memory's peak if that is longer."""
    return Ideal(f"fastest {read.name}", read.fastest)


@pytest.mark.claim("little.saturation", "too few bytes in flight do not fill the bandwidth")
def test_bandwidth_follows_the_bytes_in_flight_until_it_is_full(claim: Any, emulator: Any) -> None:
    """Bandwidth <= min(peak, bytes in flight / latency): proportional below the knee, flat above.

    Latency is that of an idle memory. Towards the knee loads queue, and it grows to two and a half
    times that: least is left of the limit there. Published latencies are within 10 %.
    """

    @given(loads=st.sampled_from([1, 2, 4, 8, 16]), blocks=st.sampled_from([1, 2, 4, 8]))
    def loads_times_four_bytes_times_threads(loads: int, blocks: int) -> None:
        read = Read(loads, blocks)
        assert read.bytes_in_flight(emulator.architecture) == loads * 4 * BLOCK * blocks

    loads_times_four_bytes_times_threads()
    for read, least in LEAST_SHARES.items():
        kib = read.loads * read.blocks
        flying = read.bytes_in_flight(emulator.architecture) / KIB
        claim.counted(f"KiB in flight an SM, {spelled(read)}", flying, kib)
        what = f"share of Little's limit at {kib} KiB an SM"
        claim.timed(what, fastest(read), read, at_least=least, at_most=1.1)
    claim.timed(
        "2 KiB / 1 KiB",
        Read(1, 1),
        Read(1, 2),
        at_least=0.8 * 2,
        at_most=1.05 * 2,
        decisive=True,
    )
    claim.timed("128 KiB / 64 KiB", FULL, BEYOND, at_least=0.9, at_most=1.1)


@pytest.mark.claim(
    "little.ilp-or-tlp", "instruction-level and thread-level parallelism both raise the bandwidth"
)
def test_loads_of_a_thread_and_threads_of_an_sm_both_raise_it(claim: Any, emulator: Any) -> None:
    """Eight times the loads or eight times the threads: both raise the bandwidth of one of each.

    The same bytes in flight in another split: bandwidth within 30 % of the most threads'. Few
    threads with many loads are a little slower, since a warp waits for the last of its loads.
    """
    for what, more in (("loads a thread", Read(8, 1)), ("blocks an SM", Read(1, 8))):
        what = f"8 {what} over 1, bandwidth"
        claim.timed(what, Read(1, 1), more, at_least=1.5, decisive=True)
    for kib in (8, 16):
        splits = [read for read in reversed(CELLS) if read.loads * read.blocks == kib]
        flying = {read.bytes_in_flight(emulator.architecture) // KIB for read in splits}
        claim.counted(f"KiB in flight an SM, {len(splits)} splits of {kib}", list(flying), [kib])
        *fewer, threads = splits
        for read in fewer:
            what = f"{kib} KiB: {spelled(read)}, bandwidth over that of {spelled(threads)}"
            claim.timed(what, threads, read, at_least=0.7, at_most=1 / 0.7)


def short(workload: Read | Chase) -> str:
    """What sets a workload apart: read-4-8, chase-4096."""
    if isinstance(workload, Read):
        return f"read-{workload.loads}-{workload.blocks}"
    return f"chase-{workload.lines}" + (f"-{workload.laps}" if workload.laps > 1 else "")


@pytest.mark.parametrize("workload", [*CELLS, BEYOND, COLD, IN_L2], ids=short)
@pytest.mark.benchmark(group="bytes in flight")
def test_bytes_in_flight_are_timed(bench: Any, workload: Read | Chase) -> None:
    """A row of the benchmark table for each point of the curve, and for the latencies."""
    bench(workload)


@given(loads=st.sampled_from([1, 2, 4, 8, 16]), grid=st.integers(1, 4), trips=st.integers(1, 4))
def test_a_read_adds_every_word_once(device: Device, loads: int, grid: int, trips: int) -> None:
    """Sums of whole numbers that wrap around are exact."""
    Read(loads, MOST_BLOCKS).launch(device, grid, trips).check()


@given(loads=st.sampled_from([1, 2, 4, 8, 16]), grid=st.integers(1, 4), trips=st.integers(1, 4))
def test_a_read_asks_for_every_sector_once(
    emulator: Any, loads: int, grid: int, trips: int
) -> None:
    """A request for 32 words, four sectors each; then one store a warp."""
    launch = Read(loads, MOST_BLOCKS).launch(emulator, grid, trips)
    counters = emulator.count(lambda: launch.on(emulator))
    warps, loaded = grid * BLOCK // 32, counters.traffic("ld", "global")
    assert (loaded.requests, loaded.sectors) == (loads * trips * warps, 4 * loads * trips * warps)
    assert counters.traffic("st", "global").requests == warps


@given(lines=st.integers(2, 40), laps=st.integers(1, 3))
def test_a_chase_takes_one_load_a_step(emulator: Any, lines: int, laps: int) -> None:
    """And no other."""
    chase = Chase(lines, laps, places=64)
    assert emulator.count_checked(chase).traffic("ld", "global").requests == chase.steps


@given(lines=st.integers(2, 40), laps=st.integers(1, 3))
def test_a_chase_meets_every_line_and_comes_back(device: Device, lines: int, laps: int) -> None:
    """Half a lap ends in the middle, whole laps where they began."""
    Chase(lines, laps, places=64).prepare(device).check()


@pytest.mark.parametrize("loads", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
def test_the_compiler_unrolls_no_trip(loads: int, architecture: str) -> None:
    """The loads of a trip are independent, and those of two trips stand in two basic blocks."""
    assert bytes_per_thread(entry("read", loads), architecture) == 4 * loads


@pytest.mark.parametrize("loads", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
@pytest.mark.usefixtures("disassembler")
def test_all_loads_of_a_trip_are_issued_before_the_first_use(loads: int, architecture: str) -> None:
    """And no loads of the next trip: the assembler does not unroll the loop either."""
    code = instructions(entry("read", loads), architecture)
    at = [place for place, each in enumerate(code) if each.opcode == "LDG"]
    loaded = {code[place].operands[0] for place in at}
    read = {name for each in code[at[0] : at[-1]] for name in each.operands[1:]}
    assert len(at) == len(loaded) == loads
    assert not loaded & {name.partition(".")[0] for name in read}
