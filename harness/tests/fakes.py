"""A GPU that is none, with times that a test chooses, and what it would have recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from harness.devices import Array, Device, Launch
from kernels import Kernel

MEGABYTE = 1_000_000
STATS = {
    **dict.fromkeys(("min", "max", "mean", "median", "total"), 1e-4),
    **{"stddev": 0.0, "iqr": 0.0, "outliers": "0;0", "rounds": 1, "iterations": 1},
}
ENTRY = {"numerator": "a", "denominator": "b", "clock": "cupti"}
PAIRS = {"reduce.x": {"a / b": {**ENTRY, "seconds": [[1.5e-4, 1e-4]] * 128}}}


class FakeGPU:
    """Takes as long as a launch's first argument says, give or take `noise`."""

    architecture = "sm_90"
    multiprocessors = 132
    bulk_copies = 232_448
    clock = "cupti"
    peak_bandwidth = 4.8e12

    def __init__(self, name: str = "NVIDIA H200", noise: float = 0.002) -> None:
        self.name = name
        self.log: list[str] = []
        self._noise = noise
        self._random = Random(1)

    def put(self, values: NDArray[Any]) -> Array:
        """Not needed: workloads here have no arrays."""
        raise NotImplementedError

    def repeat(self, values: NDArray[Any], size: int) -> Array:
        """Not needed either."""
        raise NotImplementedError

    def empty(self, size: int, dtype: DTypeLike) -> Array:
        """Not needed either."""
        raise NotImplementedError

    def get(self, array: Array) -> NDArray[Any]:
        """Not needed either."""
        raise NotImplementedError

    def launch(
        self, kernel: Kernel, grid: int, block: int, *arguments: Any, shared: int = 0
    ) -> None:
        """Note that the kernel ran."""
        self.log.append(f"launch {kernel}")

    def seconds(self, launch: Launch) -> float:
        """Return the chosen time with noise, to the nanosecond."""
        self.log.append(f"time {launch.kernel}")
        return round(float(launch.arguments[0]) * self._random.gauss(1, self._noise), 9)

    def copy_bandwidth(self) -> float:
        """Bytes per second."""
        return 4.1e12

    def attribute(self, number: int) -> int:
        """Not needed: the data sheet knows an H200."""
        raise NotImplementedError


@dataclass(frozen=True)
class FakeWorkload:
    """Takes `seconds`, moves a megabyte; `wrong` after that many checks."""

    name: str
    seconds: float = 100e-6
    right: int = 1000
    prepared: list[str] = field(default_factory=list, compare=False)

    def prepare(self, device: Device) -> Launch:
        """Return a launch whose check fails once it has been right often enough."""
        self.prepared.append(self.name)
        kernel = Kernel("vector", self.name)
        checks = iter(range(self.right))

        def check() -> None:
            device.launch(kernel, 1, 32)
            assert next(checks, None) is not None, f"{self.name} is wrong"

        return Launch(kernel, 1, 32, (self.seconds,), MEGABYTE, check)


def script(
    samples: Sequence[tuple[float, float]],
) -> Callable[[int, int], list[tuple[float, float]]]:
    """Return a `measure` for buy_pairs that hands out these pairs in turn."""
    remaining = iter(samples)
    return lambda count, seed: [next(remaining) for _ in range(count)]


def around(value: float, count: int = 256, spread: float = 0.01) -> list[tuple[float, float]]:
    """Return pairs whose ratios are normal around `value`."""
    ratios = np.random.default_rng(0).normal(value, spread, count)
    return [(float(ratio) * 1e-4, 1e-4) for ratio in ratios]


def document(gpu: str = "NVIDIA H200", **changed: Any) -> dict[str, Any]:
    """Return what pytest-benchmark writes, with pairs."""
    bench: dict[str, Any] = {
        "fullname": "t.py::t[v1]",
        "name": "t[v1]",
        "param": "v1",
        "group": None,
    }
    bench |= {"params": {"w": "long"}, "options": {}, "extra_info": {}}
    bench["stats"] = STATS | {"data": [1.23456789123e-4] * 100}
    machine: dict[str, Any] = {"machine_info": {"gpu": gpu}}
    facts = {"datetime": "2026-12-01T02:00:00+00:00", "benchmarks": [bench], "pairs": PAIRS}
    return machine | facts | changed
