"""The peaks of a GPU with a data sheet, and of one that only its driver knows."""

from __future__ import annotations

import pytest

from harness.models import peaks
from harness.tests.fakes import FakeGPU

# A GPU nobody has heard of, by CUDA's numbers: 10 SMs of compute capability 9.0 at 1 GHz.
ATTRIBUTES = {13: 1_000_000, 16: 10, 36: 1_000_000, 37: 1024, 38: 1 << 20, 39: 2048, 75: 9, 76: 0}


class UnknownGPU(FakeGPU):
    """Known to its driver alone."""

    def attribute(self, number: int) -> int:
        return ATTRIBUTES.get(number, 0)


class CountingGPU(FakeGPU):
    """Notes that it was asked to copy."""

    def copy_bandwidth(self) -> float:
        self.log.append("copy")
        return 4.1e12


def test_the_ridge_of_an_h200() -> None:
    """132 SMs x 128 lanes x 2 x 1.98 GHz over the bandwidth that the device reports."""
    gpu = FakeGPU()
    assert peaks.fp32_peak(gpu) == 132 * 128 * 2 * 1980e6
    assert peaks.tensor_peak(gpu) == 989e12
    assert peaks.ridge(gpu) == pytest.approx(66.9e12 / 4.8e12, rel=1e-3)


def test_without_a_data_sheet_the_driver_gives_what_it_knows() -> None:
    """Lanes by compute capability, clock and SMs by attribute; nothing of tensor cores."""
    gpu = UnknownGPU("NVIDIA Prototype")
    gpu.peak_bandwidth = 0.0
    assert peaks.fp32_peak(gpu) == 10 * 128 * 2 * 1e9
    assert peaks.memory_peak(gpu) == 1024 / 8 * 2 * 1e9
    with pytest.raises(LookupError, match="tensor peak of NVIDIA Prototype is unknown: add"):
        peaks.tensor_peak(gpu)


def test_the_copy_is_measured_once() -> None:
    """However many claims hold themselves against it."""
    gpu = CountingGPU()
    assert {peaks.copy_bandwidth(gpu) for _ in range(3)} == {4.1e12}
    assert gpu.log == ["copy"]
