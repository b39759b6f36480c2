"""What became of one benchmark: numbers in, a status and its reason out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import quantiles
from typing import Final

from harness.baselines.definition import changes, source_changed
from harness.gate.excuses import Excuse, drifts, throttling
from harness.gate.limits import Limit, limit, percent, resolution
from harness.gate.noise import UNKNOWN, Noise
from harness.gate.samples import Timing, first_of, plausible
from harness.spelling import duration
from harness.timing import ImplausibleTime, Interval, ratio, refuse_implausible, told

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
    throttled = throttling(before, now, slower=found.value > 1)
    status, why = _with_source(*placed(found, allowed, samples, throttled), before, now)
    lost = first_of(refused, len(now.samples)), told(now.dropped)
    words = "; ".join(filter(None, (why, *lost)))
    row = replace(row, status=status, why=words, limit=allowed.value)
    return replace(row, ratio=found.value, interval=found.ends)


def placed(
    found: Interval, allowed: Limit, samples: Sequence[float], throttled: Sequence[Excuse] = ()
) -> tuple[Status, str]:
    """Say where the ratio lies: a change needs its whole interval beyond what can be excused.

    How far it moved is asked first. A drift, lowered clocks or a coarse clock explain a change up
    to their own size, and nothing above it.
    """
    within = f"limit {100 * allowed.value:.3g} % ({allowed.why})"
    if found.ends is None:
        return Status.NOT_COMPARABLE, f"{len(samples)} samples: their spread is unknown, take 8"
    drifted = drifts(samples, allowed.value)
    if found.against(allowed.bound) == "outside":
        return _moved(found, allowed, [*drifted, *throttled], within)
    if allowed.value >= UNRESOLVED and allowed.steps:
        return Status.NOT_COMPARABLE, f"too short for its clock: {within}"
    if drifted:
        return Status.NOT_COMPARABLE, drifted[0].why
    low, high = allowed.bound
    if low <= found.value <= high:
        return Status.SAME, f"{percent(found.value)}, {within}"
    quartiles = [duration(each) for each in quantiles(samples, n=4)[::2]]
    return Status.NOT_COMPARABLE, (
        f"undecided: between {percent(found.low)} and {percent(found.high)}, {within}; "
        f"quartiles {' and '.join(quartiles)}, apart if the card has two states"
    )


def _moved(
    found: Interval, allowed: Limit, excuses: Sequence[Excuse], within: str
) -> tuple[Status, str]:
    """Say of a time beyond its limit whether it is beyond what excuses it as well."""
    why = "; ".join([f"{percent(found.value)}, {within}", *(each.why for each in excuses)])
    excused = max((each.share for each in excuses), default=0.0)
    explained = replace(allowed, value=allowed.value + excused)
    if found.against(explained.bound) != "outside":
        return Status.NOT_COMPARABLE, why
    return (Status.SLOWER, why) if found.value > 1 else (Status.FASTER, f"{why}; promote")


def _with_source(status: Status, why: str, before: Timing, now: Timing) -> tuple[Status, str]:
    """Say that the source was edited; that does not excuse a kernel that became slower."""
    edited = "; ".join(source_changed(before.facts, now.facts))
    if not edited:
        return status, why
    changed = status in (Status.SAME, Status.FASTER)
    return Status.CHANGED if changed else status, f"{edited}; {why}"
