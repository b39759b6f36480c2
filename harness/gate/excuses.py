"""What beside the code may have moved a time: in words, and how far at most.

An excuse has a size. What moved further than the largest is the kernel's own doing: a drift and a
lowered clock are one cause, seen twice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from harness.gate.limits import percent
from harness.gate.samples import CLOCKS, Timing
from harness.timing import CONFIDENCE
from harness.watch import CLOCK_MAY_FALL

# Of a clock that nobody read. A run drops its samples when it sees the clock fall further.
UNREAD: Final = CLOCK_MAY_FALL / (1 - CLOCK_MAY_FALL)


@dataclass(frozen=True)
class Excuse:
    """A share of the time, 0.02 for 2 %, and what may have cost it."""

    share: float
    why: str


def drifts(samples: Sequence[float], limit: float) -> list[Excuse]:
    """Return what the samples' own drift may have moved, where it is more than `limit`.

    Their median lies in the middle of it, so half a drift away from either end.
    """
    found = trend(samples)
    if abs(found) <= limit:
        return []
    return [Excuse(abs(found) / 2, f"its own samples drift by {percent(1 + found)} in the run")]


def trend(samples: Sequence[float]) -> float:
    """Return by what share the samples rise from the first to the last, at least; 0 if unsure.

    Theil and Sen's slope, the end of its 99 % interval that is nearer to zero.

    >>> trend([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])
    1.6
    """
    from scipy.stats import theilslopes

    slope = theilslopes(samples, alpha=CONFIDENCE)
    low, high = float(slope.low_slope), float(slope.high_slope)
    if math.isnan(low + high) or low <= 0 <= high:
        return 0.0
    nearest = low if low > 0 else high
    return nearest * (len(samples) - 1) / sorted(samples)[len(samples) // 2]


def throttling(before: Timing, now: Timing, slower: bool) -> list[Excuse]:
    """Return what lowered clocks explain: slower tonight, or faster than a slowed baseline.

    What throttles both nights alike explains no difference.
    """
    when, slow, fast = ("tonight", now, before) if slower else ("in the baseline", before, now)
    reasons = slow.throttled - fast.throttled
    if not reasons:
        return []
    share = _lowered(fast, slow)
    what = f"throttled {when} by {', '.join(sorted(reasons))}"
    return [Excuse(share, f"{what}, whose clocks explain {percent(1 + share)}")]


def _lowered(fast: Timing, slow: Timing) -> float:
    """Return by what share a kernel bound by the clock that fell most takes longer."""
    read = [(fast.mhz(clock), slow.mhz(clock)) for clock in CLOCKS]
    shares = [high[1] / low[0] - 1 for high, low in read if high and low]
    return max(0.0, *shares) if shares else UNREAD
