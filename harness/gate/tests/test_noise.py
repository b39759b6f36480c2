"""What all benchmarks say of the noise of one: how much it counts, and that it costs no alarms."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import median

import numpy as np
import pytest

from harness.baselines.shape import RUNS
from harness.gate.compare import compare
from harness.gate.limits import limit, one_more, resolution
from harness.gate.noise import MANY, UNKNOWN, Noise, usual
from harness.gate.tests.nights import night

Random = np.random.Generator
Spreads = Callable[[Random], "np.ndarray[tuple[int], np.dtype[np.float64]]"]
BENCHMARKS = 85  # as on an H200
BASELINES = 15

# Of the runs of each benchmark, in relative standard deviation.
POPULATIONS: dict[str, Spreads] = {
    "as on an H200, each another": lambda r: 1e-3 / np.sqrt(r.chisquare(1, BENCHMARKS)),
    "much alike": lambda r: 6e-3 / np.sqrt(r.chisquare(4, BENCHMARKS)),
    "all alike": lambda r: np.full(BENCHMARKS, 3e-3),
    "half of them exact": lambda r: np.where(r.random(BENCHMARKS) < 0.5, 1e-5, 5e-3),
}


def runs(random: Random, spreads: Spreads, count: int) -> list[list[float]]:
    """Return the medians of `count` runs of each benchmark, around 100 us."""
    apart = spreads(random)[:, np.newaxis] * random.normal(0, 1, (BENCHMARKS, count))
    return [[1e-4 * math.exp(each) for each in row] for row in apart]


@pytest.mark.parametrize("count", [3, 5])
@pytest.mark.parametrize("population", POPULATIONS)
def test_one_more_run_stays_below_the_limit_whatever_the_noise_is(
    population: str, count: int
) -> None:
    """No more than a one-sided 0.5 % of all lie above it, as far as 1275 runs can tell."""
    random, above = np.random.default_rng(count), 0
    for _ in range(BASELINES):
        together = runs(random, POPULATIONS[population], count + 1)
        noise = usual(each[:count] for each in together)
        for *before, now in together:
            above += now / median(before) > limit(before, 0.0, noise).bound[1]
    expected = 0.005 * BASELINES * BENCHMARKS
    assert above < expected + 3 * math.sqrt(expected)


def test_what_is_common_to_all_narrows_the_limit_of_three_runs_most() -> None:
    """Three runs alone say little of their noise, five more: the median limit of each, in %."""
    widths = {}
    for count in (3, 5):
        together = runs(np.random.default_rng(1), POPULATIONS["much alike"], count)
        noise = usual(together)
        widths[count] = [median(one_more(each, by) for each in together) for by in (UNKNOWN, noise)]
    alone, shared = zip(*widths.values(), strict=True)
    assert shared[0] < 0.6 * alone[0]
    assert shared[1] < 0.9 * alone[1]
    assert shared[1] < shared[0]


def test_a_night_is_held_against_limits_that_know_all_benchmarks() -> None:
    """The narrower limit stands in the row."""
    together = runs(np.random.default_rng(2), POPULATIONS["much alike"], 3)
    medians = {f"t.py::t[{number}]": each for number, each in enumerate(together)}
    before = night(
        {name: [median(each)] * 20 for name, each in medians.items()},
        {name: {RUNS: each} for name, each in medians.items()},
    )
    noise = usual(together)
    found = {row.name: row.limit for row in compare(before, before).rows}
    expected = {
        name: limit(each, resolution("cupti"), noise).value for name, each in medians.items()
    }
    assert found == expected


@pytest.mark.parametrize(("freedom", "variance"), [(1.0, 4e-6), (4.0, 1e-5), (30.0, 1e-5)])
def test_what_noise_was_drawn_from_is_found(freedom: float, variance: float) -> None:
    """Of 2000 benchmarks: variances scattered as an inverse chi-square of that freedom."""
    random = np.random.default_rng(7)
    spreads = np.sqrt(variance * freedom / random.chisquare(freedom, 2000))
    found = usual(np.exp(random.normal(0, 1, (2000, 5)) * spreads[:, np.newaxis]).tolist())
    assert found.variance == pytest.approx(variance, rel=0.2)
    assert found.freedom == pytest.approx(freedom, rel=0.35)


def test_what_all_say_counts_no_more_than_all_their_runs() -> None:
    """Variances that are all alike seem known without end: 30 of two degrees of freedom are 60."""
    assert usual([[1.0, 1.01, 1.02]] * MANY).freedom == pytest.approx(60)


def test_a_benchmark_keeps_its_own_noise_as_far_as_it_is_known() -> None:
    """The mean of both by their freedom; where nothing is usual, its own alone."""
    own = [1.0, math.exp(0.02)]  # a variance of 2e-4 with one degree of freedom
    both = Noise(1e-4, freedom=3).and_of(own)
    assert both.variance == pytest.approx(1.25e-4)
    assert both.freedom == 4
    assert UNKNOWN.and_of(own).variance == pytest.approx(2e-4)


@pytest.mark.parametrize(
    "benchmarks",
    [
        [],
        [[1.0, 1.1, 1.2]] * (MANY - 1),
        [[1.0]] * MANY,
        [[0.0, 0.0, 0.0]] * MANY,
        [[1.0, math.inf, 1.0]] * MANY,
    ],
)
def test_too_few_benchmarks_say_nothing(benchmarks: list[list[float]]) -> None:
    """Nor does one that ran once, or whose times are none."""
    assert usual(benchmarks) == UNKNOWN


def test_runs_that_all_agree_leave_the_least_limit() -> None:
    """A clock's steps may hide all noise; a logarithm of nothing is not taken."""
    noise = usual([[1e-4] * 3] * MANY)
    assert limit([1e-4] * 3, 0.0, noise).why == "least limit"
