"""The limit: the noise between runs, never less than the clock can see."""

from __future__ import annotations

import math
from random import Random

import pytest

from harness.gate.limits import DEFAULT, LEAST, limit, one_more, resolution, resting_on_few

CUPTI = resolution("cupti")


@pytest.mark.parametrize(
    ("runs", "clock", "value", "why"),
    [
        ([1e-4], "cupti", DEFAULT, "default for 1 of 3 runs"),
        ([1e-4, 1.01e-4], "cupti", DEFAULT, "default for 2 of 3 runs"),
        ([1e-4, 1.26e-4], "cupti", 0.26, "default for 2 of 3 runs"),
        ([1e-4] * 3, "cupti", LEAST, "least limit"),
        ([1e-6] * 3, "cupti", 0.064, "2 steps of the clock"),
        ([1e-5] * 3, "events", 0.1, "2 steps of the clock"),
        ([1e-4] * 3, "unheard of", 0.1, "2 steps of the clock"),
    ],
)
def test_the_largest_of_three_counts(runs: list[float], clock: str, value: float, why: str) -> None:
    """Each by name."""
    found = limit(runs, resolution(clock))
    assert found.value == pytest.approx(value)
    assert found.why == why


@pytest.mark.parametrize(
    ("counts", "few"), [((), 0), ((1, 2), 0), ((1, 3), 1), ((3, 4), 2), ((5, 9), 0)]
)
def test_limits_of_three_or_four_runs_are_noted(counts: tuple[int, ...], few: int) -> None:
    """Fewer have the default, and more will have met both placements of a kernel."""
    notes = resting_on_few([1e-4] * count for count in counts)
    assert [note.partition(";")[0] for note in notes] == (
        [f"limits of fewer than 5 runs: {few}"] if few else []
    )


def test_the_bound_is_the_same_up_and_down() -> None:
    """A ratio and its inverse are judged alike."""
    low, high = limit([1e-4] * 3, CUPTI).bound
    assert low * high == pytest.approx(1)


def test_two_level_noise_is_taken_from_between_the_runs() -> None:
    """8 % between runs, 0.3 % within: the samples of one run would promise far too much."""
    random = Random(3)
    wide = [1e-4 * math.exp(random.gauss(0, 0.08)) for _ in range(5)]
    assert limit(wide, CUPTI).value > 0.15
    assert limit(wide, CUPTI).why == "5 runs"


@pytest.mark.parametrize("count", [3, 5, 10])
def test_one_more_run_stays_below_the_limit(count: int) -> None:
    """A one-sided 0.5 % of normal runs lie above it, whatever the number of runs."""
    random = Random(count)
    above = 0
    for _ in range(4000):
        runs = [math.exp(random.gauss(0, 0.01)) for _ in range(count + 1)]
        anchor = math.exp(sum(map(math.log, runs[:-1])) / count)
        above += runs[-1] / anchor > 1 + one_more(runs[:-1])
    assert 0.002 < above / 4000 < 0.009
