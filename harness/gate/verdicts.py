"""What became of one benchmark: numbers in, a status and its reason out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import quantiles
from typing import Final

from harness.baselines.definition import changes, source_changed
from harness.gate.limits import Limit, limit, resolution
from harness.gate.noise import UNKNOWN, Noise
from harness.gate.samples import Timing, first_of, plausible
from harness.spelling import duration
from harness.timing import CONFIDENCE, ImplausibleTime, Interval, ratio, refuse_implausible, told

UNRESOLVED: Final = 1.0  # a limit as long as the time itself


class Status(StrEnum):
    """What the gate says of a benchmark; only SLOWER and MISSING fail a night."""

    SLOWER = "slower"
    MISSING = "missing"
    NOT_COMPARABLE = "not comparable"
    CHANGED = "changed"
    FASTER = "faster"
    NEW = "new"
    SAME = "same"


@dataclass(frozen=True)
class Row:
    """One benchmark: its status in one word and its reason in a sentence.

    `before` and `now` are medians in seconds, `ratio` is now / before with its 99 % interval, and
    `limit` the share by which it may differ from 1. None where there is nothing to compare.
    """

    name: str
    status: Status
    why: str
    before: float | None = None
    now: float | None = None
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    limit: float | None = None

    @property
    def compared(self) -> bool:
        """Whether the time was held against the baseline's."""
        return self.ratio is not None and self.status is not Status.NOT_COMPARABLE


def judged(before: Timing, now: Timing, peak: float | None, usual: Noise = UNKNOWN) -> Row:
    """Hold tonight's samples against the median of the baseline.

    `peak` is the memory's, in bytes/s; `usual` is the noise of the baseline's benchmarks. The
    baseline is the fixed anchor: nothing that was measured since it was promoted counts.
    """
    row = Row(before.name, Status.NOT_COMPARABLE, "", before.median, now.median)
    if work := changes(before.facts, now.facts):
        return replace(row, status=Status.CHANGED, why=f"other work: {'; '.join(work)}; promote")
    if before.clock != now.clock:
        return replace(row, why=f"clock {before.clock} -> {now.clock}")
    try:
        for median in (before.median, *before.runs):
            refuse_implausible(median, what="the baseline")
        samples, refused = plausible(now, peak)
        found = ratio([(seconds, before.median) for seconds in samples])
    except ImplausibleTime as error:
        return replace(row, why=str(error))
    allowed = limit(before.runs, resolution(now.clock), usual)
    status, why = placed(found, allowed, samples)
    status, why = _with_source(*_with_telemetry(status, why, before, now), before, now)
    lost = first_of(refused, len(now.samples)), told(now.dropped)
    words = "; ".join(filter(None, (why, *lost)))
    row = replace(row, status=status, why=words, limit=allowed.value)
    return replace(row, ratio=found.value, interval=found.ends)


def placed(found: Interval, allowed: Limit, samples: Sequence[float]) -> tuple[Status, str]:
    """Say where the ratio lies: a change needs its whole interval beyond the limit."""
    within = f"limit {100 * allowed.value:.3g} % ({allowed.why})"
    if found.ends is None:
        return Status.NOT_COMPARABLE, f"{len(samples)} samples: their spread is unknown, take 8"
    if allowed.value >= UNRESOLVED and allowed.steps:
        return Status.NOT_COMPARABLE, f"too short for its clock: {within}"
    if abs(drift := trend(samples)) > allowed.value:
        return Status.NOT_COMPARABLE, f"its own samples drift by {percent(1 + drift)} in the run"
    if found.against(allowed.bound) == "outside":
        slower = found.value > 1
        why = f"{percent(found.value)}, {within}" + ("" if slower else "; promote")
        return Status.SLOWER if slower else Status.FASTER, why
    low, high = allowed.bound
    if low <= found.value <= high:
        return Status.SAME, f"{percent(found.value)}, {within}"
    quartiles = [duration(each) for each in quantiles(samples, n=4)[::2]]
    return Status.NOT_COMPARABLE, (
        f"undecided: between {percent(found.low)} and {percent(found.high)}, {within}; "
        f"quartiles {' and '.join(quartiles)}, apart if the card has two states"
    )


def trend(samples: Sequence[float]) -> float:
    """Return by what share the samples rise from the first to the last, at least; 0 if unsure.

    Theil and Sen's slope, the end of its 99 % interval that is nearer to zero.
    """
    from scipy.stats import theilslopes

    slope = theilslopes(samples, alpha=CONFIDENCE)
    low, high = float(slope.low_slope), float(slope.high_slope)
    if math.isnan(low + high) or low <= 0 <= high:
        return 0.0
    nearest = low if low > 0 else high
    return nearest * (len(samples) - 1) / sorted(samples)[len(samples) // 2]


def percent(value: float) -> str:
    """Return a ratio as a difference in percent.

    >>> percent(1.0213)
    '+2.13 %'
    """
    return f"{100 * (value - 1):+.2f} %"


def _with_telemetry(status: Status, why: str, before: Timing, now: Timing) -> tuple[Status, str]:
    """Take back what a lowered clock explains: slower tonight, or faster than a slowed baseline."""
    explained = {
        Status.SLOWER: ("tonight", now.throttled - before.throttled),
        Status.FASTER: ("in the baseline", before.throttled - now.throttled),
    }
    when, reasons = explained.get(status, ("", frozenset()))
    if not reasons:
        return status, why
    return Status.NOT_COMPARABLE, f"throttled {when} by {', '.join(sorted(reasons))}; {why}"


def _with_source(status: Status, why: str, before: Timing, now: Timing) -> tuple[Status, str]:
    """Say that the source was edited; that does not excuse a kernel that became slower."""
    edited = "; ".join(source_changed(before.facts, now.facts))
    if not edited:
        return status, why
    changed = status in (Status.SAME, Status.FASTER)
    return Status.CHANGED if changed else status, f"{edited}; {why}"
