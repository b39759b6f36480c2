"""The claims as one self-contained HTML page: each interval drawn, and what is recorded too."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from harness.report.drawing import TEMPLATES
from harness.report.ledger import (
    WORDS,
    Ledger,
    Row,
    deciding,
    elsewhere,
    finding,
    instead,
    label,
    origin,
    place,
    ranked,
    says,
)
from harness.spelling import shown

MARGIN: Final = 0.12


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
        pictures=ledger.pictures,
        legend=WORDS,
        elsewhere=elsewhere(ledger),
        groups=groups,
        briefs=briefs,
        finding=finding,
        instead=instead,
        label=label,
        place=place,
        plot=plot,
        says=says,
    )


def groups(row: Row) -> dict[str, list[Row]]:
    """Return a claim's evidence by kind, what decides it first."""
    found: dict[str, list[Row]] = {}
    for each in ranked(row["evidence"]):
        found.setdefault(label(each), []).append(each)
    return found


def briefs(row: Row) -> list[Row]:
    """Return what a closed card shows: the headline, and the first of each other kind of time."""
    chosen = deciding(row["evidence"])
    for each in ranked(row["evidence"]):
        if label(each) not in ("counted", *map(label, chosen)):
            chosen.append(each)
    return chosen


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
