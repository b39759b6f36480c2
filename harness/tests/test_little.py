"""What a memory needs in flight where little is known of the GPU, or little fits on it."""

from __future__ import annotations

from typing import Any

import pytest

from harness.devices.emulator import EmulatedDevice
from harness.models import datasheet
from harness.models.datasheet import ANY_DRAM_LATENCY, GPUS
from harness.models.little import bytes_needed, dram_latency
from harness.tests.fakes import FakeGPU
from harness.tests.test_datasheet import H200, Told
from harness.workloads.little import Chase, Read


def test_a_gpu_without_a_latency_is_told_how_to_get_one() -> None:
    """The driver does not say it."""
    unknown = datasheet.from_driver(Told("NVIDIA R100", **H200))
    with pytest.raises(ValueError, match="NVIDIA R100 is in no table: measure it with Chase"):
        bytes_needed(unknown)


def test_an_unknown_gpu_is_held_against_the_median() -> None:
    """The table's latencies lie between 252 and 436 ns."""
    assert dram_latency(FakeGPU("NVIDIA H200")) == pytest.approx(348e-9)
    assert dram_latency(FakeGPU("NVIDIA R100")) == ANY_DRAM_LATENCY
    assert all(0.6 < ANY_DRAM_LATENCY / (gpu.dram_latency or 0) < 1.5 for gpu in GPUS)


def test_the_fastest_read_is_limited_by_latency_or_by_the_peak() -> None:
    """At 1 KiB an SM 132 KiB arrive every 348 ns; at 64 KiB the pins are the limit."""
    gpu: Any = FakeGPU("NVIDIA H200")
    few, many = Read(1, 1), Read(8, 8)
    size = 4 * few.size(gpu)
    assert size / few.fastest(gpu) == pytest.approx(132 * 1024 / 348e-9)
    assert size / many.fastest(gpu) == pytest.approx(gpu.peak_bandwidth)


@pytest.mark.parametrize(("architecture", "blocks"), [("sm_80", 8), ("sm_90", 8), ("sm_120", 6)])
def test_no_more_blocks_are_launched_than_fit(architecture: str, blocks: int) -> None:
    """An SM of 48 warps holds six blocks of eight."""
    device = EmulatedDevice(architecture, multiprocessors=2)
    launch = Read(2, 8, n=1 << 17).prepare(device)
    assert launch.grid == 2 * blocks
    launch.check()


def test_all_reads_move_the_same_bytes() -> None:
    """So that a ratio of times is one of bandwidths."""
    device = EmulatedDevice(multiprocessors=2)
    sizes = {Read(a, b, n=1 << 18).prepare(device).bytes for a in (1, 8) for b in (1, 8)}
    assert sizes == {4 << 18}


def test_a_kernel_that_stops_halfway_is_found() -> None:
    """A whole lap alone ends where it began, and so does doing nothing."""
    device = EmulatedDevice()
    launch = Chase(8, places=64).prepare(device)
    launch.on(device)
    end, start = device.get(launch.arguments[1])[0], launch.arguments[2]
    assert end == start
    launch.check()
