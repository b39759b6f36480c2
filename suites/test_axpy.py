"""axpy: nothing is wrong with how it accesses memory, and still the memory is not full."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.devices import Device
from harness.models import peaks
from harness.models.counting import bytes_in_flight
from harness.strategies import sizes
from harness.workloads.axpy import BLOCK, DTYPES, Axpy

FP16, FP32, FP64 = (Axpy(name) for name in ("fp16", "fp32", "fp64"))
LOADS: Final = 2  # x[tid] and y[tid]
WARP: Final = 32


def asked(counters: Any, n: int) -> list[float]:
    """Load requests, store requests and fused multiply-adds of a warp's n / 32 elements."""
    requests = [counters.traffic(opcode, "global").requests for opcode in ("ld", "st")]
    return [each * WARP / n for each in (*requests, counters.issued("fma"))]


def counted(emulator: Any, name: str, n: int = 1024) -> Any:
    """Return the counters of an axpy of n elements."""
    return emulator.count_checked(Axpy(name, n))


@pytest.mark.claim(
    "axpy.short-of-peak",
    "a perfectly coalesced axpy (fp32, fp16) at full occupancy does not reach a copy's bandwidth",
)
def test_a_perfect_access_pattern_does_not_fill_the_memory(claim: Any, emulator: Any) -> None:
    """32 lanes x the size of an element / 32 bytes = as many sectors as the element has bytes.

    A copy of the same number of bytes, in the same run, is faster: clearly where fp16 has 8 KiB in
    flight an SM, on an H200 also with the 16 KiB of fp32. A V100 or A100 needs no more than those.
    With the 32 KiB of fp64 the same code is as fast as the copy: what lacks is bytes in flight.
    """

    @given(name=st.sampled_from(sorted(DTYPES)), blocks=st.integers(1, 8))
    def nothing_is_wasted(name: str, blocks: int) -> None:
        counters = counted(emulator, name, blocks * BLOCK)
        assert asked(counters, blocks * BLOCK) == [LOADS, 1, 1]
        for opcode in ("ld", "st"):
            traffic = counters.traffic(opcode, "global")
            assert traffic.sectors == DTYPES[name].itemsize * traffic.requests
        assert counters.lane_instructions == 32 * counters.warp_instructions
        assert counters.issued("bar") == 0

    nothing_is_wasted()
    for name, sectors in (("fp32", 4), ("fp16", 2)):
        loads = counted(emulator, name).traffic("ld", "global")
        claim.counted(f"sectors per request, {name}", loads.sectors / loads.requests, sectors)
    counters = counted(emulator, "fp32")
    claim.counted("loads, stores, multiply-adds a warp", asked(counters, 1024), [LOADS, 1, 1])
    lanes = counters.lane_instructions / counters.warp_instructions
    claim.counted("active lanes per warp instruction", lanes, 32)
    claim.counted("barriers", counters.issued("bar"), 0)
    for name, workload, factor in (("fp32", FP32, 1), ("fp16", FP16, 1.1)):
        copy = peaks.bytes_at_copy(workload)
        claim.timed(f"{name} axpy / a copy of as many bytes", workload, copy, at_least=factor)
    copy = peaks.bytes_at_copy(FP64)
    claim.cause("fp64 axpy / a copy of as many bytes", FP64, copy, at_most=1.1)


@pytest.mark.claim("axpy.wider-types-do-better", "how full the memory is depends on the type")
def test_a_wider_type_keeps_more_bytes_in_flight(claim: Any, emulator: Any) -> None:
    """A thread waits with two loads on their way: 2, 4 or 8 bytes each, times 2048 threads an SM.

    All three move the same bytes, so the ratio of times is the ratio of bandwidths. Where memory
    is content with 16 KiB (A100 and before), fp32 and fp64 differ by a few percent.
    """
    for name, dtype in DTYPES.items():
        loads = counted(emulator, name).traffic("ld", "global")
        claim.counted(f"bytes per load, {name}", loads.bytes / loads.lanes, dtype.itemsize)
        in_flight = bytes_in_flight(Axpy(name).kernel, BLOCK, emulator.architecture)
        kib = LOADS * dtype.itemsize * 2048 / 1024
        claim.counted(f"KiB in flight an SM, {name}", in_flight / 1024, kib)
    claim.timed("fp16 / fp32, the same bytes", FP16, FP32, at_least=1)
    claim.timed("fp32 / fp64, the same bytes", FP32, FP64, at_least=1)
    claim.timed("fp16 / fp64, the same bytes", FP16, FP64, at_least=1.1, decisive=True)


@pytest.mark.parametrize("workload", [FP16, FP32, FP64], ids=lambda workload: workload.type)
@pytest.mark.benchmark(group="axpy")
def test_the_types_are_timed(bench: Any, workload: Axpy) -> None:
    """A row of the benchmark table for each type."""
    bench(workload)


@pytest.mark.parametrize("name", DTYPES)
@given(n=sizes(BLOCK, 4 * BLOCK).filter(bool))
def test_every_type_adds_what_it_says(device: Device, name: str, n: int) -> None:
    """Whatever n is, the last block's idle threads write nothing."""
    Axpy(name, n).prepare(device).check()
