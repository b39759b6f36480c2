"""Compare two launches: cold pairs, and an exact interval for the median of their ratio.

Both launches of a pair run within a millisecond or so, in random order. Clocks, temperature and
neighbours then move both alike and leave the ratio alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from statistics import median
from typing import Final, Literal

from harness.devices import Launch, TimedDevice

Pair = tuple[float, float]
Bound = tuple[float | None, float | None]
Outcome = Literal["inside", "outside", "straddles"]

CONFIDENCE: Final = 0.99
WARM_UP: Final = 3
FIRST_PAIRS: Final = 16


class ImplausibleTime(RuntimeError):
    """A sample that no kernel can have taken; the message names the likely cause."""


@dataclass(frozen=True)
class Ideal:
    """A time to hold a workload against that nobody measures: bytes at the peak, 1 ns a step.

    It stands where a Workload may stand; `seconds` works it out for the device at hand.
    """

    name: str
    seconds: Callable[[TimedDevice], float]


Timed = Launch | float  # what is timed, or the seconds of an Ideal


@dataclass(frozen=True)
class Budget:
    """What one comparison may spend: pairs, and seconds of device time."""

    pairs: int = 256
    seconds: float = 20.0


@dataclass(frozen=True)
class Interval:
    """The median of a ratio, and where it lies with 99 % confidence; unknown ends are infinite."""

    value: float
    low: float
    high: float

    def against(self, bound: Bound) -> Outcome:
        """Say where the interval lies; the bound [at_least, at_most] includes its ends.

        >>> Interval(1.5, 1.4, 1.6).against((1.3, None))
        'inside'
        """
        least = -math.inf if bound[0] is None else bound[0]
        most = math.inf if bound[1] is None else bound[1]
        if least <= self.low and self.high <= most:
            return "inside"
        if self.high < least or most < self.low:
            return "outside"
        return "straddles"


def ratio(pairs: Sequence[Pair]) -> Interval:
    """Return the median of numerator / denominator over `pairs` of seconds.

    The interval is between two order statistics, exact for any distribution
    (scipy.stats.quantile_test). Fewer than eight pairs cannot give 99 %: the ends stay infinite.

    Raises
    ------
    ImplausibleTime
        A sample is zero, negative, infinite or NaN.
    ValueError
        There are no pairs.
    """
    from scipy.stats import quantile_test  # takes a second to import; collection needs none of it

    if not pairs:
        raise ValueError("no pairs: nothing was measured")
    for seconds in (sample for pair in pairs for sample in pair):
        refuse_implausible(seconds)
    ratios = [numerator / denominator for numerator, denominator in pairs]
    ends = quantile_test(ratios, q=1.0, p=0.5).confidence_interval(CONFIDENCE)
    low = -math.inf if math.isnan(ends.low) else float(ends.low)
    high = math.inf if math.isnan(ends.high) else float(ends.high)
    return Interval(median(ratios), low, high)


def measure_pairs(
    device: TimedDevice, numerator: Timed, denominator: Timed, count: int, seed: int
) -> list[Pair]:
    """Time `count` pairs (numerator, denominator) in seconds, each sample with a cold L2.

    Which of the two goes first is drawn for each pair. Warm-up is counted in launches, never in
    time: a slow first launch must not use it up.
    """
    for timed in (numerator, denominator):
        for _ in range(WARM_UP):
            sample(device, timed)
    order = Random(seed)
    return [_pair(device, numerator, denominator, order.random() < 0.5) for _ in range(count)]


def _pair(device: TimedDevice, numerator: Timed, denominator: Timed, swapped: bool) -> Pair:
    if swapped:
        second, first = sample(device, denominator), sample(device, numerator)
    else:
        first, second = sample(device, numerator), sample(device, denominator)
    return first, second


def sample(device: TimedDevice, timed: Timed) -> float:
    """Return the seconds of one cold run, or of the ideal; what memory cannot do is refused.

    Raises
    ------
    ImplausibleTime
        Zero, negative, infinite, NaN, or faster than `launch.bytes` at the peak bandwidth.
    """
    if not isinstance(timed, Launch):
        return timed
    seconds = device.seconds(timed)
    refuse_implausible(seconds, timed.bytes, getattr(device, "peak_bandwidth", None), timed)
    return seconds


def refuse_implausible(
    seconds: float, size: int = 0, peak: float | None = None, what: object = "a sample"
) -> None:
    """Raise ImplausibleTime unless positive and no faster than `size` bytes at `peak` (bytes/s)."""
    name = what.kernel if isinstance(what, Launch) else what
    if not math.isfinite(seconds):
        raise ImplausibleTime(
            f"{name} took {seconds} s: the clock returned no time; nothing was measured"
        )
    if seconds <= 0:
        raise ImplausibleTime(
            f"{name} took {seconds} s: the clock was read before the kernel ended, "
            "or the kernel was never launched"
        )
    if peak and size / seconds > peak:
        raise ImplausibleTime(
            f"{name} moved {size} bytes in {seconds * 1e6:.3f} us, "
            f"{size / seconds / 1e9:.0f} GB/s, above the {peak / 1e9:.0f} GB/s of the memory: "
            "the input was still in L2, the loads were compiled away, or Launch.bytes is too large"
        )


def buy_pairs(
    measure: Callable[[int, int], list[Pair]], bound: Bound, budget: Budget, seed: int
) -> list[Pair]:
    """Measure pairs until their interval clears `bound`, or until the budget is spent.

    `measure(count, seed)` returns `count` new pairs. The number of pairs doubles from look to look
    (16, 32, 64, 128, 256): five looks at 99 % keep a wrong verdict below 2.5 % on each side.
    """
    pairs = measure(min(FIRST_PAIRS, budget.pairs), seed)
    while ratio(pairs).against(bound) == "straddles":
        more = min(len(pairs), budget.pairs - len(pairs))
        spent = sum(map(sum, pairs))
        if more <= 0 or spent * (1 + more / len(pairs)) > budget.seconds:
            break
        pairs += measure(more, seed + len(pairs))
    return pairs
