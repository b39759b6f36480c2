"""Compare two launches: cold pairs, and an exact interval for the median of their ratio.

A pair is a block of four runs, A B B A or B A A B, within two milliseconds or so: clocks,
temperature and neighbours move both alike, and so does whatever drifts steadily.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from random import Random
from statistics import median
from typing import Final, Literal, TypeVar

from harness.devices import Launch, TimedDevice

Pair = tuple[float, float]
Bound = tuple[float | None, float | None]
Outcome = Literal["inside", "outside", "straddles"]
Taken = TypeVar("Taken")

CONFIDENCE: Final = 0.99
WARM_UP: Final = 3
DEPENDENT: Final = 0.5  # rank correlation of a ratio with the one before it
BY_CHANCE: Final = 0.05  # how often independent pairs may show as much: eight do, one time in ten
LAUNCH_FLOOR: Final = 0.5e-6  # seconds; an empty kernel takes about 1 us


class ImplausibleTime(RuntimeError):
    """A sample that no kernel can have taken; the message names the likely cause."""


Drop = Callable[[ImplausibleTime], None]  # notes a sample that is thrown away, or raises it


def refuse(why: ImplausibleTime) -> None:
    """Raise: no sample may be thrown away."""
    raise why


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
    """What one comparison may spend: pairs, seconds of device time; pairs before the first look."""

    pairs: int = 128
    seconds: float = 20.0
    first: int = 8


@dataclass(frozen=True)
class Interval:
    """The median of a ratio, and where it lies with some confidence; unknown ends are infinite."""

    value: float
    low: float
    high: float

    @property
    def ends(self) -> tuple[float, float] | None:
        """Where it lies, if both ends are known."""
        known = math.isfinite(self.low) and math.isfinite(self.high)
        return (self.low, self.high) if known else None

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


def ratio(pairs: Sequence[Pair], confidence: float = CONFIDENCE) -> Interval:
    """Return the median of numerator / denominator over `pairs` of seconds.

    The interval is between two order statistics, exact for any distribution
    (scipy.stats.quantile_test) as long as the pairs are independent; `dependence` says if they are
    not. Fewer than eight pairs cannot give 99 %: the ends stay infinite.

    Raises
    ------
    ImplausibleTime
        A sample is zero, negative, infinite or NaN, or two are too far apart for a ratio.
    ValueError
        There are no pairs.
    """
    if not pairs:
        raise ValueError("no pairs: nothing was measured")
    for seconds in (sample for pair in pairs for sample in pair):
        refuse_implausible(seconds)
    ratios = sorted(numerator / denominator for numerator, denominator in pairs)
    if not 0 < ratios[0] <= ratios[-1] < math.inf:
        raise ImplausibleTime(
            f"a ratio of times is {ratios[0]:g}, another {ratios[-1]:g}: the samples are no times"
        )
    low, high = ranks(len(ratios), confidence)
    return Interval(
        median(ratios),
        -math.inf if low is None else ratios[low - 1],
        math.inf if high is None else ratios[high - 1],
    )


def dependence(pairs: Sequence[Pair]) -> str:
    """Say so if each ratio resembles the one before it: the interval is then too narrow.

    Spearman's rank correlation of neighbours, which needs no distribution either.
    """
    ratios = [numerator / denominator for numerator, denominator in pairs]
    if min(len(set(ratios[:-1])), len(set(ratios[1:]))) < 2:
        return ""  # without any spread there is no correlation
    from scipy.stats import spearmanr

    found = spearmanr(ratios[:-1], ratios[1:], alternative="greater")
    if found.statistic <= DEPENDENT or found.pvalue >= BY_CHANCE:
        return ""
    return (
        f"neighbouring pairs are alike (rank correlation {found.statistic:.2f}), "
        "so the interval is narrower than 99 % needs"
    )


@cache
def ranks(count: int, confidence: float) -> tuple[int | None, int | None]:
    """Return which of `count` sorted values enclose their median, counted from 1.

    >>> ranks(16, 0.99)
    (3, 14)
    """
    from scipy.stats import quantile_test  # takes a second to import; collection needs none of it

    ends = quantile_test(range(1, count + 1), q=1.0, p=0.5).confidence_interval(confidence)
    low, high = (None if math.isnan(end) else int(end) for end in (ends.low, ends.high))
    return low, high


def measure_pairs(
    device: TimedDevice,
    numerator: Timed,
    denominator: Timed,
    count: int,
    seed: int,
    drop: Drop = refuse,
) -> list[Pair]:
    """Time `count` pairs (numerator, denominator) in seconds, each run with a cold L2.

    Each pair is the means of a block of four runs; which of the two is the outer one, A B B A or
    B A A B, is drawn. What a place in the block costs cancels, and so does a steady drift. A pair
    with an impossible sample is dropped, and taken again in the same order.
    """
    for timed in (numerator, denominator):
        warm_up(device, timed)
    random = Random(seed)
    orders = [random.random() < 0.5 for _ in range(count)]
    return [
        possible(partial(_pair, device, numerator, denominator, swapped), drop)
        for swapped in orders
    ]


def _pair(device: TimedDevice, numerator: Timed, denominator: Timed, swapped: bool) -> Pair:
    outer, inner = (denominator, numerator) if swapped else (numerator, denominator)
    first, second, third, last = (sample(device, each) for each in (outer, inner, inner, outer))
    outside, inside = (first + last) / 2, (second + third) / 2
    return (inside, outside) if swapped else (outside, inside)


def warm_up(device: TimedDevice, timed: Timed) -> None:
    """Run it a few times; how long that takes says nothing.

    It is counted in launches, never in time: a slow first launch must not use it up.
    """
    for _ in range(WARM_UP):
        if isinstance(timed, Launch):
            device.seconds(timed)


def possible(take: Callable[[], Taken], drop: Drop) -> Taken:
    """Return what `take` gives: again, for each impossible sample that `drop` lets pass."""
    while True:
        try:
            return take()
        except ImplausibleTime as why:
            drop(why)


def told(dropped: Sequence[str]) -> str:
    """Say how many samples were dropped, and why the first was; nothing if none was.

    >>> told(["copy took 0.0 s"])
    '1 impossible sample was dropped and taken again (copy took 0.0 s)'
    """
    if not dropped:
        return ""
    many = "samples were" if len(dropped) > 1 else "sample was"
    return f"{len(dropped)} impossible {many} dropped and taken again ({dropped[0]})"


def sample(device: TimedDevice, timed: Timed) -> float:
    """Return the seconds of one cold run, or of the ideal; what a GPU cannot do is refused.

    Raises
    ------
    ImplausibleTime
        Zero, negative, infinite, NaN, shorter than an empty kernel, or faster than `launch.bytes`
        at the peak bandwidth.
    """
    if not isinstance(timed, Launch):
        return timed
    seconds = device.seconds(timed)
    refuse_implausible(seconds, timed.bytes, getattr(device, "peak_bandwidth", None), timed)
    return seconds


def refuse_implausible(
    seconds: float, size: int = 0, peak: float | None = None, what: object = "a sample"
) -> None:
    """Raise ImplausibleTime unless positive and no faster than `size` bytes at `peak` (bytes/s).

    A Launch must also take as long as one that does nothing.
    """
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
            "the input was still in L2 (it fits there, or persists there), the loads were compiled "
            "away, or Launch.bytes is too large"
        )
    if isinstance(what, Launch) and seconds < LAUNCH_FLOOR:
        raise ImplausibleTime(
            f"{name} took {seconds * 1e6:.3f} us, an empty kernel takes {LAUNCH_FLOOR * 1e6} us or "
            "more: the record is of something else, or the clock is not this GPU's"
        )


def buy_pairs(
    measure: Callable[[int, int], list[Pair]],
    bound: Bound,
    budget: Budget,
    seed: int,
    confidence: float = CONFIDENCE,
) -> list[Pair]:
    """Measure pairs until their interval clears `bound`, or until the budget is spent.

    `measure(count, seed)` returns `count` new pairs. The number of pairs doubles from look to look
    (8, 16, 32, 64, 128): k looks at confidence c keep a wrong verdict below k (1 - c) / 2 on each
    side, five looks at 99 % below 2.5 %.
    """
    pairs = measure(min(budget.first, budget.pairs), seed)
    while ratio(pairs, confidence).against(bound) == "straddles":
        more = min(len(pairs), budget.pairs - len(pairs))
        spent = 2 * sum(map(sum, pairs))  # a pair is two runs of each
        if more <= 0 or spent * (1 + more / len(pairs)) > budget.seconds:
            break
        pairs += measure(more, seed + len(pairs))
    return pairs
