"""Two variants of one benchmark: slower, faster, the same, or undecided after the budget.

The interval of the median ratio is held against 1 + limit and its inverse. A limit above zero keeps
a difference that nobody cares about from becoming a verdict once enough pairs are bought.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from harness.timing import Bound, Budget, Interval, Pair, buy_pairs, ratio

BUDGET: Final = Budget(pairs=512, seconds=2.0, first=16)
Verdict = Literal["same", "slower", "faster", "undecided"]


@dataclass(frozen=True)
class Rule:
    """When two times count as different.

    Six looks, at 16, 32 ... 512 pairs, each with an interval of 99.9 %: if the true ratio is right
    on the limit, a wrong `slower` comes in at most 6 x 0.05 % = 0.3 % of the comparisons, and far
    less often if nothing changed. On an H200 a reduction that is 1 % slower is flagged in 99 % of
    the trials after 512 pairs at most, 0.13 s of kernel time.

    Parameters
    ----------
    limit
        Relative difference that may be: 0.005 is 0.5 %.
    confidence
        Of the interval at each look.
    budget
        Pairs and device seconds one comparison may take.
    """

    limit: float = 0.005
    confidence: float = 0.999
    budget: Budget = BUDGET

    @property
    def bound(self) -> Bound:
        """The ratios that are no difference."""
        return 1 / (1 + self.limit), 1 + self.limit

    def verdict(self, found: Interval) -> Verdict:
        """Say where the interval of new / old lies.

        >>> Rule().verdict(Interval(1.01, 1.007, 1.013))
        'slower'
        """
        outcome = found.against(self.bound)
        if outcome == "outside":
            return "slower" if found.value > 1 else "faster"
        return "same" if outcome == "inside" else "undecided"


RULE: Final = Rule()


@dataclass(frozen=True)
class Comparison:
    """What became of one comparison, new / old."""

    verdict: Verdict
    interval: Interval
    pairs: list[Pair]


def compare(measure: Callable[[int, int], list[Pair]], rule: Rule, seed: int) -> Comparison:
    """Buy pairs (new, old) from `measure(count, seed)` until the rule has a verdict."""
    pairs = buy_pairs(measure, rule.bound, rule.budget, seed, rule.confidence)
    found = ratio(pairs, rule.confidence)
    return Comparison(rule.verdict(found), found, pairs)
