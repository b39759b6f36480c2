"""A night as text for the terminal, as Markdown for the job's summary, and as JSON."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any, Final

from harness.gate.compare import Exit, Night
from harness.gate.verdicts import Row, Status
from harness.report.markdown import cell
from harness.spelling import duration

SAYS: Final = {
    Exit.GREEN: "nothing became slower, nothing is missing, no claim is broken",
    Exit.RED: "slower, missing or broken",
    Exit.NO_VERDICT: "NO VERDICT, nothing is known to be slower",
}
HEAD: Final = "| status | benchmark | baseline | tonight | why |\n|---|---|---|---|---|"


def text(night: Night, against: str) -> str:
    """Return the table for a terminal: what is not the same, worst first, then the totals."""
    lines = [f"gate {against}", *headlines(night)]
    for row in _worst_first(night):
        lines += [f"  {row.status:<14}  {row.name}  {_times(row)}", f"  {'':<14}  {row.why}"]
    return "\n".join([*lines, totals(night), f"exit {night.exit:d}: {SAYS[night.exit]}"])


def markdown(night: Night, against: str) -> str:
    """Return build/gate.md: the verdict, what is not the same, and the rest folded away."""
    lines = [f"# Gate {cell(against)}", "", f"**{SAYS[night.exit]}** (exit {night.exit:d})", ""]
    lines += [f"- {cell(line)}" for line in [*headlines(night), totals(night)]]
    if rows := _worst_first(night):
        lines += ["", HEAD, *map(_cells, rows)]
    if same := night.of(Status.SAME):
        lines += ["", "<details><summary>the same</summary>", "", HEAD, *map(_cells, same)]
        lines += ["", "</details>"]
    return "\n".join(lines) + "\n"


def as_json(night: Night, against: str) -> str:
    """Return build/gate.json, schema 1."""
    document = {
        "schema": 1,
        "against": against,
        "exit": int(night.exit),
        "says": SAYS[night.exit],
        "environment": night.environment,
        "notes": night.notes,
        "totals": dict(Counter(str(row.status) for row in night.rows)),
        "claims": {"broken": night.broken, "missing": night.missing_claims},
        "benchmarks": [_fields(row) for row in night.rows],
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def headlines(night: Night) -> list[str]:
    """Return what concerns the whole night."""
    lines = [night.environment.upper()[:1] + night.environment[1:]] if night.environment else []
    lines += [f"claim {name} is broken" for name in night.broken]
    gone = night.missing_claims
    lines += [f"claim {name} is in the baseline, but not in this run" for name in gone]
    lines += [night.too_few] if night.too_few and not night.environment else []
    return lines + [f"noted: {note}" for note in night.notes]


def totals(night: Night) -> str:
    """Return how many benchmarks have each status."""
    found = Counter(row.status for row in night.rows)
    return ", ".join(f"{found[status]} {status}" for status in reversed(Status) if found[status])


def _worst_first(night: Night) -> list[Row]:
    order = list(Status)
    # what the whole night is not comparable for is said once
    told = {Status.SAME} | ({Status.NOT_COMPARABLE} if night.environment else set())
    rows = [row for row in night.rows if row.status not in told]
    return sorted(rows, key=lambda row: (order.index(row.status), -(row.ratio or 0)))


def _times(row: Row) -> str:
    return " -> ".join(_time(seconds) for seconds in (row.before, row.now))


def _time(seconds: float | None) -> str:
    return "none" if seconds is None else duration(seconds)


def _finite(seconds: float | None) -> float | None:
    """Return a time that JSON can hold."""
    return seconds if seconds is not None and math.isfinite(seconds) else None


def _cells(row: Row) -> str:
    times = f"{_time(row.before)} | {_time(row.now)}"
    return f"| {row.status} | `{cell(row.name)}` | {times} | {cell(row.why)} |"


def _fields(row: Row) -> dict[str, Any]:
    return {
        "name": row.name,
        "status": str(row.status),
        "why": row.why,
        "baseline": _finite(row.before),
        "tonight": _finite(row.now),
        "ratio": row.ratio,
        "interval": row.interval,
        "limit": row.limit,
    }
