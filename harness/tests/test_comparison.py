"""A comparison is of new with old as of old with new, and as confident as its rule."""

from __future__ import annotations

import pytest

from harness.comparison import RULE, Rule, Verdict, compare
from harness.tests.fakes import script
from harness.timing import Budget, Interval

OPPOSITE: dict[Verdict, Verdict] = {
    "slower": "faster",
    "same": "same",
    "undecided": "undecided",
}


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (1.00501, 1.02, "slower"),
        (1.00499, 1.02, "undecided"),
        (0.999, 1.00501, "undecided"),
        (0.999, 1.00499, "same"),
    ],
)
def test_half_a_per_cent_is_no_difference_either_way(
    low: float, high: float, verdict: Verdict
) -> None:
    """What is slower than the old is what the old is faster than: the bound is a ratio too."""
    value = (low + high) / 2
    assert RULE.verdict(Interval(value, low, high)) == verdict
    assert RULE.verdict(Interval(1 / value, 1 / high, 1 / low)) == OPPOSITE[verdict]


@pytest.mark.parametrize(("most", "verdict"), [(16, "undecided"), (32, "slower")])
def test_a_verdict_is_as_confident_as_the_rule(most: int, verdict: Verdict) -> None:
    """Sixteen pairs that are all alike cannot give 99.999 %, 32 can."""
    rule = Rule(confidence=0.99999, budget=Budget(pairs=most, first=8))
    found = compare(script([(1.5e-4, 1e-4)] * 32), rule, seed=0)
    assert (found.verdict, len(found.pairs)) == (verdict, most)
