"""The gate on what an H200 recorded: silent where nothing changed, red where a slow-down shows."""

from __future__ import annotations

from functools import cache
from math import log
from statistics import median, stdev
from typing import Any, Final

import numpy as np
import pytest

from harness.baselines import ROOT, read
from harness.baselines.shape import RUNS
from harness.gate.limits import limit, resolution
from harness.gate.noise import UNKNOWN, Noise, usual
from harness.gate.samples import Timing, timings
from harness.gate.verdicts import Status, judged
from harness.pytest_benchmarks import ROUNDS

RECORDED: Final = ROOT / "nvidia-h200" / "0003_2026-11-30.json"
V7: Final = "suites/test_reduce_ladder.py::test_the_ladder_is_timed[reduce_v7]"
MERGED: Final = 5
NIGHTS: Final = 10
STEP: Final = 0.001  # of the slow-downs that are tried


@cache
def recorded() -> list[Timing]:
    """Return the benchmarks of the recording."""
    return list(timings(read(RECORDED).document).values())


@cache
def between() -> float:
    """Return the relative standard deviation of runs: of half of the benchmarks it is smaller."""
    return median(stdev(map(log, timing.runs)) for timing in recorded())


def drawn(timing: Timing, random: np.random.Generator, factor: float = 1.0) -> tuple[float, ...]:
    """Return one more run: its samples drawn from the recorded ones, and a level of its own."""
    level = factor * np.exp(random.normal(0, between()))
    return tuple(float(each) for each in random.choice(timing.samples, ROUNDS) * level)


def anchored(timing: Timing, random: np.random.Generator) -> Timing:
    """Return a baseline that was merged from several runs."""
    runs = tuple(median(drawn(timing, random)) for _ in range(MERGED))
    return _with(timing, runs, median=median(runs))


def _with(timing: Timing, runs: tuple[float, ...], **changed: Any) -> Timing:
    fields = {**vars(timing), "runs": runs, "facts": {**timing.facts, RUNS: list(runs)}}
    return Timing(**(fields | changed))


def statuses(factor: float, nights: int, seed: int) -> dict[str, list[Status]]:
    """Return what each benchmark gets when it takes `factor` times as long."""
    random = np.random.default_rng(seed)
    baseline = [anchored(timing, random) for timing in recorded()]
    noise = usual(timing.runs for timing in baseline)
    return {
        timing.name: [
            judged(before, _night(timing, random, factor), None, noise).status
            for _ in range(nights)
        ]
        for timing, before in zip(recorded(), baseline, strict=True)
    }


def _night(timing: Timing, random: np.random.Generator, factor: float) -> Timing:
    seconds = drawn(timing, random, factor)
    return Timing(timing.name, median(seconds), seconds, (median(seconds),), timing.facts)


def test_no_change_is_never_slower_and_never_faster() -> None:
    """Each benchmark, ten nights."""
    found = [status for each in statuses(1.0, NIGHTS, seed=1).values() for status in each]
    assert len(found) == NIGHTS * len(recorded())
    assert found.count(Status.SLOWER) + found.count(Status.FASTER) == 0
    assert found.count(Status.SAME) > 0.98 * len(found)


@pytest.mark.parametrize(("slowdown", "red"), [(0.01, 0.6), (0.02, 0.8), (0.05, 0.95)])
def test_a_planted_slow_down_goes_red(slowdown: float, red: float) -> None:
    """In at least so large a share of the benchmarks; none becomes faster."""
    found = [status for each in statuses(1 + slowdown, 1, seed=2).values() for status in each]
    assert found.count(Status.SLOWER) >= red * len(found)
    assert Status.FASTER not in found


def smallest(timing: Timing, before: Timing, noise: Noise = UNKNOWN) -> float:
    """Return the smallest slow-down in steps of 0.1 % that goes red on the recorded samples."""
    for step in range(1, 200):
        factor = 1 + STEP * step
        seconds = tuple(each * factor for each in timing.samples)
        now = Timing(timing.name, median(seconds), seconds, (median(seconds),), timing.facts)
        if judged(before, now, None, noise).status is Status.SLOWER:
            return STEP * step
    raise AssertionError("20 % were not seen")


def test_the_smallest_slow_down_that_goes_red() -> None:
    """V7 on an H200, of five runs, of the ten that are recorded, or of one.

    It is the limit, 1.3 % of ten runs, and what a night's own samples spread: they have two states
    3 % apart, and their interval begins up to 1.8 % lower. Of the ten runs, 1.5 to 3.1 % goes red.
    """
    v7 = next(timing for timing in recorded() if timing.name == V7)
    noise = usual(timing.runs for timing in recorded())
    five, once = anchored(v7, np.random.default_rng(1)), _with(v7, (v7.median,))
    for before, least, most in ((five, 0.005, 0.03), (v7, 0.005, 0.035), (once, 0.05, 0.07)):
        row = judged(before, v7, None, noise)
        assert row.limit
        assert row.interval
        expected = (1 + row.limit) / row.interval[0] - 1
        assert smallest(v7, before, noise) == pytest.approx(expected, abs=STEP)
        assert least < expected <= most


def test_what_six_claims_found_of_v7_is_noise_that_the_limit_knows() -> None:
    """The same kernel in six places in memory is no change.

    What goes red is beyond the limit by no more than a night's own samples spread: the lower end of
    their interval is one of them.
    """
    found: dict[int, float] = {}
    for claim in read(RECORDED).document["pairs"].values():
        for each in claim.values():
            for side, name in enumerate((each["numerator"], each["denominator"])):
                if name.startswith("reduce_v7[BLOCK=256] "):
                    found[len(found)] = median(pair[side] for pair in each["seconds"])
    runs, noise = tuple(found.values()), usual(timing.runs for timing in recorded())
    v7 = next(timing for timing in recorded() if timing.name == V7)
    before = _with(v7, runs, median=median(runs))
    assert len(runs) == 6
    assert all(judged(before, _at(v7, run), None, noise).status is Status.SAME for run in runs)
    allowed, night = limit(runs, resolution("cupti"), noise).value, _at(v7, median(runs))
    farthest = (1 + allowed) * median(runs) / min(night.samples) - 1
    assert allowed < smallest(night, before, noise) <= farthest + STEP


def _at(timing: Timing, middle: float) -> Timing:
    """Return the recorded samples around another median."""
    seconds = tuple(each * middle / timing.median for each in timing.samples)
    return Timing(timing.name, middle, seconds, (middle,), timing.facts)
