"""A night on which the machine itself moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from harness.baselines.settings import Document
from harness.baselines.shape import COPY, COPY_RUNS
from harness.gate.limits import limit, percent
from harness.gate.verdicts import Row, Status

SHARE: Final = 0.5  # of the compared benchmarks, from which on they moved together


def moved(rows: Sequence[Row], before: Document, now: Document) -> tuple[list[Row], str]:
    """Take back what the machine did: most benchmarks moved, and a plain copy of the driver too.

    The copy runs none of the kernels here. A benchmark that moved further than the copy keeps its
    verdict. Returns the rows, and what happened in words, if it did.
    """
    there, here = before.get("device", {}).get(COPY), now.get("device", {}).get(COPY)
    if not (there and here):
        return list(rows), ""
    ratio = there / here  # of the times
    runs = [1 / rate for rate in before["device"].get(COPY_RUNS) or [there]]
    allowed = limit(runs, 0.0)
    low, high = allowed.bound
    if low <= ratio <= high:
        return list(rows), ""
    status = Status.SLOWER if ratio > high else Status.FASTER
    with_it = [row for row in rows if row.status is status]
    if len(with_it) < SHARE * sum(row.compared for row in rows):
        return list(rows), ""
    words = (
        f"environment changed: {len(with_it)} benchmarks and a plain copy ({percent(ratio)}) are "
        f"{status} together; look at the machine, then record again"
    )
    return [_excused(row, status, ratio, high) for row in rows], words


def _excused(row: Row, status: Status, copy: float, slack: float) -> Row:
    if row.status is not status or row.ratio is None:
        return row
    beyond = row.ratio > copy * slack if status is Status.SLOWER else row.ratio < copy / slack
    if beyond:
        return replace(row, why=f"further than the machine ({percent(copy)}): {row.why}")
    return replace(row, status=Status.NOT_COMPARABLE, why=f"moved with the machine: {row.why}")
