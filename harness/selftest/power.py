"""How small a change the rule finds, by resampling pairs that were measured on this GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from harness.comparison import Rule
from harness.timing import ranks

TRIALS: Final = 200
WANTED: Final = 0.95
STEPS: Final = 12
LARGEST: Final = 0.5

Ratios = NDArray[np.float64]


def looks(rule: Rule) -> Iterator[int]:
    """Return after how many pairs the rule looks at them."""
    count = min(rule.budget.first, rule.budget.pairs)
    while True:
        yield count
        more = min(count, rule.budget.pairs - count)
        if more <= 0:
            return
        count += more


def flagged(ratios: Ratios, slowdown: float, rule: Rule, trials: int = TRIALS) -> float:
    """Return the share of simulated comparisons that end in `slower`.

    `ratios` are of pairs of one kernel with itself; each trial draws from them, with replacement,
    and multiplies by 1 + `slowdown`.
    """
    drawn = np.random.default_rng(0).choice(ratios, (trials, rule.budget.pairs))
    drawn *= (1 + slowdown) / np.median(ratios)
    least, most = (end or beyond for end, beyond in zip(rule.bound, (-np.inf, np.inf), strict=True))
    open_, slower = np.full(trials, True), np.full(trials, False)
    for count in looks(rule):
        low_rank, high_rank = ranks(count, rule.confidence)
        if low_rank is None or high_rank is None:
            continue
        ordered = np.sort(drawn[:, :count], axis=1)
        low, high = ordered[:, low_rank - 1], ordered[:, high_rank - 1]
        slower |= open_ & (low > most)
        open_ &= ~((low > most) | (high < least) | ((low >= least) & (high <= most)))
    return float(slower.mean())


def smallest_detectable(ratios: Ratios, rule: Rule, wanted: float = WANTED) -> float:
    """Return the least slow-down that is flagged in a share `wanted` of the comparisons."""
    low, high = rule.limit, LARGEST
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if flagged(ratios, middle, rule) >= wanted else (middle, high)
    return round(high, 5)


def blocks(seconds: Sequence[float]) -> Ratios:
    """Return the ratios of a kernel with itself in four consecutive runs, taken as A B B A."""
    runs = np.lib.stride_tricks.sliding_window_view(np.asarray(seconds), 4)
    ratios: Ratios = (runs[:, 0] + runs[:, 3]) / (runs[:, 1] + runs[:, 2])
    return ratios


def recorded(document: dict[str, Any], kernel: str) -> Ratios:
    """Return the blocks of every series of `kernel` in a baseline: its rounds, and its pairs."""
    series = [
        each["stats"]["data"]
        for each in document["benchmarks"]
        if each["extra_info"].get("kernel") == kernel
    ]
    for whats in document["pairs"].values():
        for pairs in whats.values():
            for side, key in enumerate(("numerator", "denominator")):
                if pairs[key].startswith(f"{kernel} "):
                    series.append([pair[side] for pair in pairs["seconds"]])
    return np.concatenate([blocks(seconds) for seconds in series])
