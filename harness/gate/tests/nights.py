"""Synthetic recordings: what pytest-benchmark would have written of these samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, Final

import numpy as np

from harness.baselines.shape import RUNS

NAMES: Final = [f"suites/test_x.py::test[{name}]" for name in "abcdefgh"]
BYTES: Final = 9 << 25  # in 100 us, 63 % of the peak
FACTS: Final[dict[str, Any]] = {
    **{"kernel": "reduce_v7[BLOCK=256]", "source": "aa", "grid": 132, "block": 256},
    **{"bytes": BYTES, "clock": "cupti", "throttle_reasons": []},
    **{"sm_clock_mhz": 1980, "memory_clock_mhz": 3201},
}
DEVICE: Final[dict[str, Any]] = {
    **{"mig": False, "power_cap_w": 700.0, "ecc": True, "clock": "cupti", "nvrtc": "13.2"},
    **{"peak GB/s": 4814.3, "copy GB/s": 4327.4, "sm_clock_mhz": 1980, "driver": "580.1"},
}

Samples = Sequence[float]


def samples(
    middle: float = 1e-4, spread: float = 0.003, rounds: int = 20, seed: int = 1
) -> list[float]:
    """Return seconds around `middle`; `spread` is their relative standard deviation."""
    drawn = np.random.default_rng(seed).normal(0, spread, rounds)
    return [float(middle * np.exp(each)) for each in drawn]


def ramp(middle: float, share: float, spread: float = 0.0) -> list[float]:
    """Return 40 samples that rise by a share of `middle` from the first to the last."""
    level = samples(middle, spread, rounds=40)
    return [each * (1 + share * (step / 39 - 0.5)) for step, each in enumerate(level)]


def runs(between: float, count: int = 5, middle: float = 1e-4, seed: int = 2) -> list[float]:
    """Return the medians of `count` runs that lie `between` apart."""
    return samples(middle, between, count, seed)


def benchmark(name: str, seconds: Samples, **facts: Any) -> dict[str, Any]:
    """Return one benchmark; facts None are left out."""
    known = {key: value for key, value in (FACTS | facts).items() if value is not None}
    stats = {"median": median(seconds), "data": list(seconds)}
    return {"fullname": name, "name": name, "extra_info": known, "stats": stats}


def night(
    times: Mapping[str, Samples] | None = None,
    facts: Mapping[str, Mapping[str, Any]] | None = None,
    gpu: str = "NVIDIA H200",
    claims: Mapping[str, str] | None = None,
    **device: Any,
) -> dict[str, Any]:
    """Return a recording; by default of all NAMES, one like the other."""
    if times is None:
        times = {name: samples(seed=seed) for seed, name in enumerate(NAMES)}
    return {
        "machine_info": {"gpu": gpu},
        "datetime": "2026-12-01T02:00:00+00:00",
        "device": DEVICE | device,
        "claims": claims or {"reduce.v3": "holds"},
        "benchmarks": [
            benchmark(name, seconds, **(facts or {}).get(name, {}))
            for name, seconds in times.items()
        ],
    }


def only(seconds: Samples, **facts: Any) -> dict[str, Any]:
    """Return a night on which the first benchmark took these seconds, the others as ever."""
    times = {name: samples(seed=seed) for seed, name in enumerate(NAMES)}
    return night(times | {NAMES[0]: seconds}, {NAMES[0]: facts})


def all_by(factor: float, **device: Any) -> dict[str, Any]:
    """Return a night on which everything took `factor` times as long."""
    times = {name: samples(1e-4 * factor, seed=seed) for seed, name in enumerate(NAMES)}
    return night(times, **device)


def promoted(between: float = 0.001, count: int = 5) -> dict[str, Any]:
    """Return a baseline merged from `count` runs that lie `between` apart."""
    facts = {name: {RUNS: runs(between, count, seed=seed)} for seed, name in enumerate(NAMES)}
    return night(facts=facts)
