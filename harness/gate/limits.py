"""How far a median may move with no change at all: by what its baseline's runs say, or by default.

One run's own samples do not say it. On an H200 half of those of V4 lie within 0.4 %, while two of
its placements in memory lie up to 4.9 % apart.

Three runs are the least, and enough where a time has one level. A kernel with two placements needs
five: three may all have met the same. Simulated, with 8 of 80 benchmarks so and 2.6 % between the
two, three runs are red on 25 % of the nights without a change, five on 6 % (of 300 nights each).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from harness.gate.noise import UNKNOWN, Noise
from harness.timing import CONFIDENCE

DEFAULT: Final = 0.05  # what is allowed until three runs are recorded
LEAST: Final = 0.005
RUNS_NEEDED: Final = 3
RUNS_ADVISED: Final = 5
STEPS: Final = 2  # a difference of two readings, each one step wrong
RESOLUTION: Final = {"cupti": 32e-9, "events": 0.5e-6}  # seconds
UNKNOWN_CLOCK: Final = 5e-6


@dataclass(frozen=True)
class Limit:
    """A share of the baseline's time, 0.02 for 2 %, and where it comes from.

    `steps` says that it is the clock which sees no better.
    """

    value: float
    why: str
    steps: bool = False

    @property
    def bound(self) -> tuple[float, float]:
        """The ratios now / baseline that count as the same; as far down as up."""
        return 1 / (1 + self.value), 1 + self.value


def limit(runs: Sequence[float], resolution: float, usual: Noise = UNKNOWN) -> Limit:
    """Return the largest of what the runs' medians allow, LEAST, and two steps of the clock.

    `runs` and `resolution` are seconds; `usual` is the noise of the benchmarks beside it. From
    three runs on, it is the end of the 99 % prediction interval of one more run: Student's t on the
    logarithms of their medians.
    """
    middle = sorted(runs)[len(runs) // 2]
    return max(
        _between(runs, usual),
        Limit(LEAST, "least limit"),
        Limit(STEPS * resolution / middle, f"{STEPS} steps of the clock", True),
        key=lambda limit: limit.value,
    )


def resting_on_few(benchmarks: Iterable[Sequence[float]]) -> list[str]:
    """Note how many limits come from fewer runs than two placements of a kernel take, if any."""
    few = [runs for runs in benchmarks if RUNS_NEEDED <= len(runs) < RUNS_ADVISED]
    if not few:
        return []
    return [
        f"limits of fewer than {RUNS_ADVISED} runs: {len(few)}; a kernel with two placements in "
        "memory may be red without a change: promote more runs"
    ]


def resolution(clock: str | None) -> float:
    """Return the seconds of one step of a clock."""
    return RESOLUTION.get(clock or "", UNKNOWN_CLOCK)


def _between(runs: Sequence[float], usual: Noise) -> Limit:
    if len(runs) < RUNS_NEEDED:
        apart = max(runs) / min(runs) - 1
        return Limit(max(DEFAULT, apart), f"default for {len(runs)} of {RUNS_NEEDED} runs")
    return Limit(one_more(runs, usual), f"{len(runs)} runs")


def one_more(runs: Sequence[float], usual: Noise = UNKNOWN) -> float:
    """Return how far above the others one more run may lie, as a share, with 99 % confidence.

    >>> round(one_more([1.00, 1.01, 1.02]), 3)
    0.12
    >>> round(one_more([1.00, 1.01, 1.02], Noise(1e-4, freedom=4)), 3)
    0.044
    """
    from scipy.stats import t  # takes a second to import

    known = usual.and_of(runs)
    scale = math.sqrt(known.variance * (1 + 1 / len(runs)))
    return math.expm1(scale * float(t.ppf((1 + CONFIDENCE) / 2, known.freedom)))


def percent(value: float) -> str:
    """Return a ratio as a difference in percent.

    >>> percent(1.0213)
    '+2.13 %'
    """
    return f"{100 * (value - 1):+.2f} %"
