"""A night against the promoted baseline: every benchmark and every claim, and the exit code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, Final

from harness.baselines.settings import KEY, Document, incomparable, noted
from harness.baselines.shape import NO_CLAIMS, NOT_COMPARABLE
from harness.gate.environment import another_card, copied, memory_bound, moved
from harness.gate.limits import percent, resting_on_few
from harness.gate.noise import usual
from harness.gate.samples import Timing, memory_peak, timings
from harness.gate.verdicts import Row, Status, judged

COMPARED: Final = 0.5  # of the baseline's benchmarks, below which a night says nothing
MANY: Final = 0.1  # of the benchmarks, above which it is told that they do not compare


class Exit(IntEnum):
    """What the gate's process returns."""

    GREEN = 0
    RED = 1  # slower, missing or broken, and nothing else
    UNUSABLE = 2  # a file cannot be read, or the command line is wrong
    NO_VERDICT = 3  # no baseline, another environment, or too little compared


@dataclass(frozen=True)
class Night:
    """All that the gate found; `environment` says why there is no verdict, `notes` what else."""

    rows: list[Row]
    environment: str = ""
    notes: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    missing_claims: list[str] = field(default_factory=list)

    def of(self, status: Status) -> list[Row]:
        """Return the rows of one status."""
        return [row for row in self.rows if row.status is status]

    @property
    def exit(self) -> Exit:
        """Red for what a change of code must answer for; no verdict if the night shows too little.

        A gate that compared nothing has not passed, and nothing became slower either.
        """
        failed = self.of(Status.SLOWER) + self.of(Status.MISSING)
        if failed or self.broken or self.missing_claims:
            return Exit.RED
        return Exit.NO_VERDICT if self.environment or self.too_few else Exit.GREEN

    @property
    def too_few(self) -> str:
        """Say that too little of the baseline was compared, if so."""
        known = [row for row in self.rows if row.status is not Status.NEW]
        compared = sum(row.compared for row in known)
        if compared >= COMPARED * len(known):
            return ""
        return f"{compared} of {len(known)} benchmarks could be compared: fewer than half"


def compare(before: Document | None, now: Document, *, whole: bool = True) -> Night:
    """Hold the document of a night against a baseline, which may be absent.

    What was timed again is no `whole` night: it owes no claims, and a handful of benchmarks, all of
    them slower before, cannot say that everything moved together.

    Raises
    ------
    BaselineError
        A benchmark of either cannot be read.
    """
    broken = _claims_that_are("broken", now)
    tonight, recorded = timings(now), timings(before) if before else {}
    if not (before and recorded):
        rows = [_new(each) for each in tonight.values()]
        why = "the baseline holds no benchmark" if before else "no baseline of this GPU"
        return Night(rows, f"{why}: promote tonight's run", [], broken)
    gone, unasked = _gone(before, now)
    if differ := [*incomparable(before, now), *_unknown(before, now)]:
        rows = [_apart(recorded[name], tonight.get(name), differ) for name in recorded]
        return Night(rows, f"not comparable: {'; '.join(differ)}", [], broken)
    copy, rows, environment = copied(before, now), _rows(recorded, tonight, now), ""
    if copy and whole:
        rows, environment = moved(rows, memory_bound(recorded.values(), before), copy)
    machine = copy.told(rows) if copy and not environment else []
    if not whole:
        return Night(rows, notes=machine)
    asleep = [] if environment else _asleep(rows)
    rows += [_new(each) for name, each in tonight.items() if name not in recorded]
    notes = [*machine, *asleep, *unasked, *_undecided(now), *_noted(before, now, recorded)]
    return Night(rows, environment, notes, broken, gone)


def _noted(before: Document, now: Document, recorded: Mapping[str, Timing]) -> list[str]:
    """Return what may explain a change, or a verdict that is wrong."""
    few = resting_on_few(each.runs for each in recorded.values())
    return [*noted(before, now), *another_card(before, now), *few]


def confirmed(night: Night, again: Night) -> Night:
    """Return the night after its slower benchmarks were timed in a second process.

    A slow-down must show twice. What could not be timed again stays slower: a second process that
    was throttled, or of another setting, takes nothing back.
    """
    second = {row.name: row for row in again.rows}
    rows = [_second(row, second.get(row.name)) for row in night.rows]
    told = filter(None, (again.environment, *again.notes))
    notes = [f"in the second process: {words}" for words in told]
    return replace(night, rows=rows, notes=[*night.notes, *notes])


def _second(row: Row, again: Row | None) -> Row:
    """Take what the second process says, if it compares; else keep what the first said."""
    if row.status is not Status.SLOWER or again is None:
        return row
    if not again.compared:
        return replace(row, why=f"{row.why}; not timed again: {again.why}")
    assert row.ratio is not None  # no row is slower without
    first = f"{percent(row.ratio)} at first, timed again in a new process"
    return replace(again, why=f"{first}: {again.why}")


def _unknown(before: Document, now: Document) -> list[str]:
    """Return the settings that only the baseline tells: tonight's may be any."""
    return [
        f"{label} {there} -> unknown"
        for label, read in KEY.items()
        if (there := read(before)) is not None and read(now) is None
    ]


def _asleep(rows: Sequence[Row]) -> list[str]:
    """Note that much of the baseline was not judged: a green night then says less than it seems."""
    apart = sum(row.status is Status.NOT_COMPARABLE for row in rows)
    return [f"not comparable: {apart} of {len(rows)}"] if apart > MANY * len(rows) else []


def _undecided(now: Document) -> list[str]:
    names = _claims_that_are("undecided", now)
    return [f"claims left undecided: {len(names)}, such as {names[0]}"] if names else []


def _claims_that_are(verdict: str, now: Document) -> list[str]:
    return [name for name, found in now.get("claims", {}).items() if found == verdict]


def _gone(before: Document, now: Document) -> tuple[list[str], list[str]]:
    """Return the claims that a night lacks; or, of one that asked for times alone, a note."""
    gone = [name for name in _claims(before) if name not in _claims(now)]
    if gone and (option := now.get(NO_CLAIMS)):
        return [], [f"claims of the baseline that {option} left out: {len(gone)}"]
    return gone, []


def _claims(document: Document) -> Sequence[str]:
    found: Mapping[str, Any] = document.get("claims") or document.get("pairs") or {}
    return list(found)


def _rows(
    recorded: Mapping[str, Timing], tonight: Mapping[str, Timing], now: Document
) -> list[Row]:
    disturbed = now.get(NOT_COMPARABLE, {})
    noise = usual(each.runs for each in recorded.values())
    return [
        judged(each, tonight[name], memory_peak(now), noise)
        if name in tonight
        else _absent(each, disturbed.get(name))
        for name, each in recorded.items()
    ]


def _absent(before: Timing, disturbed: str | None) -> Row:
    if disturbed:
        return Row(before.name, Status.NOT_COMPARABLE, disturbed, before.median)
    why = "in the baseline, not measured tonight: renamed, skipped, deselected or disabled"
    return Row(before.name, Status.MISSING, why, before.median)


def _new(now: Timing) -> Row:
    return Row(now.name, Status.NEW, "not in the baseline; promote", None, now.median)


def _apart(before: Timing, now: Timing | None, differ: Sequence[str]) -> Row:
    measured = now.median if now else None
    return Row(before.name, Status.NOT_COMPARABLE, "; ".join(differ), before.median, measured)
