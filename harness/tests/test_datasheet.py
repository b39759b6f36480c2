"""The data sheet against what vendors publish, and against a driver that says the same."""

from __future__ import annotations

from dataclasses import fields

import pytest

from harness.models import datasheet
from harness.models.datasheet import (
    ATTRIBUTES,
    DRIVER,
    GPU,
    GPUS,
    KIB,
    MULTIPROCESSORS,
    multiprocessor,
    of,
)
from harness.tests.fakes import FakeGPU

PUBLISHED = {  # GB/s, TFLOP/s of fp32 and of fp64
    "Tesla V100-SXM2-16GB": (898, 15.7, 7.8),
    "NVIDIA A100-SXM4-40GB": (1555, 19.5, 9.7),
    "NVIDIA A100-SXM4-80GB": (2039, 19.5, 9.7),
    "NVIDIA H100 80GB HBM3": (3352, 66.9, 33.5),
    "NVIDIA H200": (4814, 66.9, 33.5),
    "NVIDIA B200": (7672, 74.4, 37.2),
    "NVIDIA GeForce RTX 4090": (1008, 82.6, 1.29),
}


@pytest.mark.parametrize("gpu", GPUS, ids=lambda gpu: gpu.name)
def test_what_is_derived_is_what_is_published(gpu: GPU) -> None:
    """Bus x clock x 2, and SMs x lanes x 2 x clock."""
    assert gpu.fp32_peak
    assert gpu.fp64_peak
    derived = gpu.bandwidth / 1e9, gpu.fp32_peak / 1e12, gpu.fp64_peak / 1e12
    assert derived == pytest.approx(PUBLISHED[gpu.name], rel=0.006)


@pytest.mark.parametrize(
    ("name", "per_clock"),
    [
        ("Tesla V100-SXM2-16GB", 512),
        ("NVIDIA A100-SXM4-80GB", 1024),
        ("NVIDIA GeForce RTX 4090", 256),
    ],
)
def test_tensor_peaks_follow_from_the_boost_clock_up_to_ada(name: str, per_clock: int) -> None:
    """Multiply-adds an SM a clock; the H100's data sheet counts a lower clock."""
    gpu = of(name)
    assert gpu
    derived = gpu.multiprocessors * per_clock * 2 * gpu.boost_mhz * 1e6
    assert gpu.tensor_peak == pytest.approx(derived, rel=0.003)


@pytest.mark.parametrize("gpu", GPUS, ids=lambda gpu: gpu.name)
def test_every_figure_has_a_source(gpu: GPU) -> None:
    """One that is cited apart names a figure that exists."""
    figures = {each.name for each in fields(GPU)} - {"cited"}
    assert all(gpu.source(figure) for figure in figures)
    assert set(gpu.cited) <= figures


def test_a_gpu_is_found_by_any_of_its_names() -> None:
    """As the driver spells it; others are unknown."""
    v100 = of("Tesla V100-SXM2-32GB")
    assert v100 is of("Tesla V100-SXM2-16GB")
    assert v100
    assert v100.sm is MULTIPROCESSORS[7, 0]
    assert of("NVIDIA H200") is of("nvidia h200")
    assert of("NVIDIA H200 NVL") is None


class Told(FakeGPU):
    """A GPU whose driver says these attributes."""

    def __init__(self, name: str, **attributes: int) -> None:
        super().__init__(name)
        self._attributes = {ATTRIBUTES[key]: value for key, value in attributes.items()}

    def attribute(self, number: int) -> int:
        """Return the attribute it was given."""
        return self._attributes[number]


H200 = {
    **{"clock_khz": 1_980_000, "multiprocessors": 132, "memory_khz": 3_201_000, "bus_bits": 6016},
    **{"l2": 60 << 20, "threads": 2048, "major": 9, "minor": 0, "blocks": 32},
    **{"shared": 228 * KIB, "shared_per_block": 227 * KIB, "reserved": KIB},
}


def test_a_driver_gives_what_the_table_has() -> None:
    """All but L2, of which the data sheet says 50 MB and the driver 60 MiB."""
    said, known = datasheet.from_driver(Told("NVIDIA H200", **H200)), of("NVIDIA H200")
    assert known
    assert (said.bandwidth, said.fp32_peak) == (known.bandwidth, known.fp32_peak)
    for figure in ("capability", "warps", "blocks", "shared", "shared_per_block", "reserved"):
        assert getattr(said.sm, figure) == getattr(known.sm, figure)
    assert said.source("multiprocessors") == said.sm.source == DRIVER


def test_of_an_unknown_gpu_the_driver_does_not_say_everything() -> None:
    """Neither lanes nor latency; what is missing is None, never a guess."""
    gpu = datasheet.from_driver(Told("NVIDIA R100", **{**H200, "major": 13}))
    assert (gpu.fp32_peak, gpu.fp64_peak, gpu.tensor_peak, gpu.dram_latency) == (None,) * 4
    assert gpu.in_flight_kib is None


def test_an_architecture_without_a_row_is_refused() -> None:
    """The message says where a row is to be added."""
    assert multiprocessor("sm_90a") is MULTIPROCESSORS[9, 0]
    assert multiprocessor("sm_120") is MULTIPROCESSORS[12, 0]
    with pytest.raises(LookupError, match=r"SM of sm_61, only of 7\.0, .*MULTIPROCESSORS"):
        multiprocessor("sm_61")
