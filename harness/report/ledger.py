"""What all reports are made from: the device, and one row per claim."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

from harness.evidence import Evidence
from harness.spelling import bound as spelled
from harness.spelling import ratio, shown
from harness.timing import Outcome

Row = dict[str, Any]
KINDS: Final = ("timed", "cause", "counted")  # as they weigh


@dataclass(frozen=True)
class Ledger:
    """The claims of one run; `claims` are the rows of build/claims.json.

    `partial` says in words how much of the claims this is; empty if it is all of them.
    """

    device: dict[str, Any]
    claims: list[Row]
    partial: str = ""

    def sections(self) -> dict[str, list[Row]]:
        """Return the claims by section, both in the order stated."""
        grouped: dict[str, list[Row]] = {}
        for row in self.claims:
            grouped.setdefault(row["section"], []).append(row)
        return grouped

    def totals(self) -> dict[str, int]:
        """Return how many claims got each verdict."""
        found = Counter(row["verdict"] for row in self.claims)
        return {verdict: found[verdict] for verdict in ("holds", "refuted", "undecided", "broken")}

    def as_json(self) -> str:
        """Return build/claims.json, schema 1."""
        document: dict[str, Any] = {"schema": 1, "device": self.device}
        document |= {"partial": True} if self.partial else {}
        document["claims"] = self.claims
        return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def finding(evidence: Row) -> str:
    """Return a piece of evidence as one phrase: what, the number, its interval, the bound.

    >>> finding({"kind": "timed", "what": "V2 / V3", "value": 1.5423, "interval": [1.53, 1.55],
    ...          "bound": [1.3, None]})
    'V2 / V3 = 1.542 [1.53, 1.55], needs >= 1.3'
    """
    what, value, bound = evidence["what"], evidence["value"], evidence["bound"]
    if evidence["kind"] == "counted":
        sign = "=" if value == bound else f"is not {shown(bound)} but"
        return f"{what} {sign} {shown(value)}"
    if value is None:
        return f"{what}: not measured ({evidence['device']}), needs {spelled(bound)}"
    interval = evidence["interval"]
    between = f" [{', '.join(map(ratio, interval))}]" if interval else " (too few pairs)"
    return f"{what} = {ratio(value)}{between}, needs {spelled(bound)}"


def instead(row: Row) -> str:
    """Return what is right where the sentence is wrong, else nothing."""
    return str(row["finding"]) if row["verdict"] == "refuted" else ""


def source(evidence: Row) -> str:
    """Return where a piece of evidence comes from, in the words of the tables."""
    if evidence["kind"] == "recorded":
        known = evidence["value"] is not None
        return f"recorded on {evidence['device']}" if known else "not recorded"
    on = f"{'counted' if evidence['kind'] == 'counted' else 'timed'} on {evidence['device']}"
    return f"{on} ({evidence['clock']})" if evidence["clock"] else on


def label(evidence: Row) -> str:
    """Return "counted", "timed" or "cause"; for a recording, what it recorded."""
    if evidence["kind"] != "recorded":
        return str(evidence["kind"])
    return str(evidence.get("of", "timed"))


def outcome(evidence: Row) -> Outcome:
    """Return where the evidence lies: inside its bound, outside, or astride."""
    return Evidence(**(evidence | _numbers(evidence))).outcome


def _numbers(evidence: Row) -> Row:
    """Return a ratio's value and interval as numbers again: JSON spells what is not finite."""
    if evidence["kind"] == "counted" or evidence["value"] is None:
        return {}
    interval = evidence["interval"]
    return {
        "value": float(evidence["value"]),
        "interval": interval and tuple(map(float, interval)),
    }


def ranked(evidence: list[Row]) -> list[Row]:
    """Return what failed, then what the test calls decisive, then times, causes and counts."""

    def rank(each: Row) -> tuple[bool, bool, int]:
        return outcome(each) == "inside", not each.get("decisive"), KINDS.index(label(each))

    return sorted(evidence, key=rank)


def usual_sources(ledger: Ledger) -> dict[str, str]:
    """Return where most evidence of each label comes from."""
    found: dict[str, Counter[str]] = {}
    for evidence in (each for row in ledger.claims for each in row["evidence"]):
        found.setdefault(label(evidence), Counter())[source(evidence)] += 1
    return {name: counts.most_common(1)[0][0] for name, counts in sorted(found.items())}


def origin(ledger: Ledger) -> str:
    """Return where most counts and most times come from, as one phrase."""
    usual = usual_sources(ledger)
    times = usual.get("timed") or usual.get("cause")
    counts = [usual["counted"]] if "counted" in usual else []
    return "; ".join([*counts, f"times {times.removeprefix('timed ')}"] if times else counts)
