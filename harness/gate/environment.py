"""A night on which the machine itself moved, or is another one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final

from harness.baselines.settings import Document, cards
from harness.baselines.shape import COPY, COPY_RUNS
from harness.gate.limits import Limit, limit, percent
from harness.gate.samples import Timing, memory_peak
from harness.gate.verdicts import Row, Status

BOUND: Final = 0.6  # of the peak, from which on it is the memory that a benchmark waits for
SHARE: Final = 0.5  # of those that were compared, from which on they moved together
PLACEMENT: Final = 0.02  # two placements of the copy's own buffers lay 1.5 % apart on an H200


@dataclass(frozen=True)
class Copy:
    """The driver's plain copy, which runs none of the kernels here, where it moved.

    `ratio` is that of its times, now / before.
    """

    ratio: float
    allowed: Limit

    @property
    def status(self) -> Status:
        """What it would be called if it were a benchmark."""
        return Status.SLOWER if self.ratio > 1 else Status.FASTER

    def told(self, rows: Sequence[Row]) -> list[str]:
        """Return it as a note, where something is slower or it moved by more than a placement."""
        slower = any(row.status is Status.SLOWER for row in rows)
        return [self.note] if slower or abs(self.ratio - 1) > PLACEMENT else []

    @property
    def note(self) -> str:
        """What a night has to say of it."""
        within = f"limit {100 * self.allowed.value:.3g} %, {self.allowed.why}"
        return (
            f"a plain copy of the driver is {percent(self.ratio)} ({within}): look at the machine"
        )


def copied(before: Document, now: Document) -> Copy | None:
    """Return the driver's copy if both know it, and if it moved beyond its own limit."""
    there, here = before.get("device", {}).get(COPY), now.get("device", {}).get(COPY)
    if not (there and here):
        return None
    runs = [1 / rate for rate in before["device"].get(COPY_RUNS) or [there]]
    found = Copy(there / here, limit(runs, 0.0))
    low, high = found.allowed.bound
    return None if low <= found.ratio <= high else found


def memory_bound(recorded: Iterable[Timing], before: Document) -> frozenset[str]:
    """Return the names of those that reach BOUND of the peak: they move with the copy."""
    if not (peak := memory_peak(before)):
        return frozenset()
    return frozenset(
        each.name for each in recorded if each.facts.get("bytes", 0) >= BOUND * peak * each.median
    )


def moved(rows: Sequence[Row], bound: Set[str], copy: Copy) -> tuple[list[Row], str]:
    """Take back what the machine did: what is `bound` by memory moved, mostly, as the copy did.

    A benchmark that moved further than the copy keeps its verdict. Returns the rows, and what
    happened in words, if it did.
    """
    compared = [row for row in rows if row.name in bound and row.compared]
    with_it = sum(row.status is copy.status for row in compared)
    if not with_it or with_it < SHARE * len(compared):
        return list(rows), ""
    words = (
        f"environment changed: {with_it} of {len(compared)} memory-bound benchmarks and a plain "
        f"copy ({percent(copy.ratio)}) are {copy.status} together; look at the machine, then "
        "record again"
    )
    return [_excused(row, copy) for row in rows], words


def _excused(row: Row, copy: Copy) -> Row:
    """Take a row back, unless all its interval lies further than the copy, by what either may."""
    if row.status is not copy.status or row.interval is None:
        return row
    slack = 1 + max(row.limit or 0.0, copy.allowed.value)
    low, high = row.interval
    slower = copy.status is Status.SLOWER
    if low > copy.ratio * slack if slower else high < copy.ratio / slack:
        return replace(row, why=f"further than the machine ({percent(copy.ratio)}): {row.why}")
    return replace(row, status=Status.NOT_COMPARABLE, why=f"moved with the machine: {row.why}")


def another_card(before: Document, now: Document) -> list[str]:
    """Note a card that is none of the baseline's: H200s differ by up to 4 %."""
    known, here = cards(before), cards(now)
    if not (known and here) or set(known) & set(here):
        return []
    return [f"another card of this model: {', '.join(here)}, not {', '.join(known)}"]
