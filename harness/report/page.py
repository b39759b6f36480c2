"""The claims as one self-contained HTML page: effect and cause apart, each interval drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from harness.report.ledger import (
    Ledger,
    Row,
    finding,
    instead,
    label,
    origin,
    ranked,
    source,
)
from harness.spelling import shown

TEMPLATES: Final = Environment(
    loader=PackageLoader("harness.report", "templates"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=StrictUndefined,
)
MARGIN: Final = 0.12
TITLES: Final = {"counted": "counted", "timed": "effect", "cause": "cause"}


@dataclass(frozen=True)
class Plot:
    """An interval before its bound on a logarithmic axis; everything in percent of the width."""

    low: float
    high: float
    value: float
    bound_low: float
    bound_high: float
    one: float | None


def page(ledger: Ledger) -> str:
    """Return build/report.html."""
    template = TEMPLATES.get_template("page.html")
    facts = {key: shown(value) for key, value in ledger.device.items() if value not in (None, [])}
    return template.render(
        device=ledger.device["name"],
        origin=origin(ledger),
        partial=ledger.partial,
        facts={key: value for key, value in facts.items() if key != "name"},
        totals=ledger.totals(),
        sections=ledger.sections(),
        groups=groups,
        briefs=briefs,
        finding=finding,
        instead=instead,
        source=source,
        plot=plot,
    )


def groups(row: Row) -> dict[str, list[Row]]:
    """Return a claim's evidence as what was counted, the effect, and the cause."""
    evidence = row["evidence"]
    found = {title: [e for e in evidence if label(e) == kind] for kind, title in TITLES.items()}
    return {title: rows for title, rows in found.items() if rows}


def briefs(row: Row) -> dict[str, Row]:
    """Return the first of each kind as a closed card shows it; a count only where it decides."""
    found: dict[str, Row] = {}
    for each in ranked(row["evidence"]):
        title = TITLES[label(each)]
        if title != "counted" or not found:
            found.setdefault(title, each)
    return found


def plot(evidence: Row) -> Plot | None:
    """Return the drawing of a ratio and its bound, or None if it cannot be drawn."""
    if not evidence["interval"]:
        return None
    low, high, value = map(float, (*evidence["interval"], evidence["value"]))
    least, most = evidence["bound"]
    if not all(0 < each < math.inf for each in (low, high, value)):
        return None  # a logarithmic axis has no place for it
    place = _axis([low, high, value, *(end for end in (least, most) if end)])
    one = place(1.0)
    return Plot(
        place(low),
        place(high),
        place(value),
        place(least) if least else 0.0,
        place(most) if most else 100.0,
        one if 0 < one < 100 else None,
    )


def _axis(values: list[float]) -> Any:
    """Return the function from a ratio to percent of the width, with some air at both ends."""
    logs = [math.log(value) for value in values]
    width = max(logs) - min(logs) or 1.0
    start, span = min(logs) - MARGIN * width, width * (1 + 2 * MARGIN)
    return lambda value: round(100 * (math.log(value) - start) / span, 2)
