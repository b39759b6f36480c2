"""Nights in a row: the anchor is the promoted baseline, so that nothing creeps past it."""

from __future__ import annotations

from itertools import pairwise

import pytest

from harness.gate.compare import Exit, compare
from harness.gate.tests.nights import NAMES, night, only, promoted, samples
from harness.gate.verdicts import Status

SLOWER, SAME = Status.SLOWER, Status.SAME


def drifting(nights: int) -> list[list[float]]:
    """Return the samples of nights that are each 4 % slower than the one before."""
    return [samples(1e-4 * 1.04**night, seed=night) for night in range(1, nights + 1)]


@pytest.mark.parametrize(("runs", "caught"), [(1, 2), (5, 1)])
def test_creep_is_caught_on_the_second_night(runs: int, caught: int) -> None:
    """+4 % a night: under the default of 5 % for one night, and on the first where noise is known.

    Every later night stays red: nothing is forgotten until somebody promotes.
    """
    before = night() if runs == 1 else promoted(count=runs)
    statuses = [compare(before, only(seconds)).rows[0].status for seconds in drifting(10)]
    assert statuses == [SAME] * (caught - 1) + [SLOWER] * (11 - caught)


def test_a_rolling_anchor_would_have_slept() -> None:
    """The same ten nights, each held against the one before: no alarm, +48 % in the end."""
    nights = [samples(), *drifting(10)]
    assert all(compare(only(a), only(b)).exit is Exit.GREEN for a, b in pairwise(nights))


def test_one_outlier_night_is_red_and_the_next_is_green() -> None:
    """A night leaves no trace: neither as an anchor nor as noise."""
    before = promoted()
    nights = [only(samples(middle)) for middle in (1e-4, 1.3e-4, 1e-4)]
    assert [compare(before, each).exit for each in nights] == [Exit.GREEN, Exit.RED, Exit.GREEN]


def test_an_outlier_among_the_baselines_runs_widens_the_limit_and_keeps_the_anchor() -> None:
    """The median of five runs is not moved by one; that such runs happen is known noise."""
    facts = {"run medians": [1e-4, 1.001e-4, 0.999e-4, 1.0005e-4, 1.3e-4]}
    times = {name: samples(seed=seed) for seed, name in enumerate(NAMES)}
    before = night(times, {NAMES[0]: facts})
    row = compare(before, only(samples(1.3e-4))).rows[0]
    assert row.status is SAME
    assert row.ratio == pytest.approx(1.3, rel=0.01)
    assert row.limit is not None
    assert row.limit > 0.3
