"""What all reports are made from: the device, and one row per claim."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from harness.evidence import Evidence
from harness.spelling import bound, interval, shown
from harness.timing import Outcome

Row = dict[str, Any]
LEGEND: Final = {  # the kinds of evidence, as build/claims.json names them
    "counted": "must equal what is expected, exactly",
    "timed": "a ratio of two times of this run, with its 99 % interval",
    "cause": "such a ratio of a kernel and one without the mechanism, or the mechanism alone",
    "recorded": "either of the two, of times that a GPU took earlier, judged here by the same code",
}
VERDICTS: Final = {
    "holds": "as the sentence says",
    "refuted": "not as written; what is right is asserted instead, and the evidence is of that",
    "undecided": "the interval straddles the bound, or nothing was measured",
    "broken": "the evidence is not as expected: this alone fails a run",
}
WORDS: Final = VERDICTS | LEGEND  # that the reports explain
WORST_FIRST: Final[tuple[Outcome, ...]] = ("outside", "straddles", "inside")
WEIGHTS: Final = {"timed": 0, "recorded": 0, "cause": 1, "recorded cause": 1, "counted": 2}


@dataclass(frozen=True)
class Ledger:
    """The claims of one run; `claims` are the rows of build/claims.json.

    `partial` says in words how much of the claims this is; empty if it is all of them. `pictures`
    are those that the page shows, by section.
    """

    device: dict[str, Any]
    claims: list[Row]
    partial: str = ""
    pictures: Mapping[str, str] = field(default_factory=dict)

    def sections(self) -> dict[str, list[Row]]:
        """Return the claims by section, both in the order stated."""
        grouped: dict[str, list[Row]] = {}
        for row in self.claims:
            grouped.setdefault(row["section"], []).append(row)
        return grouped

    def totals(self) -> dict[str, int]:
        """Return how many claims got each verdict."""
        found = Counter(row["verdict"] for row in self.claims)
        return {verdict: found[verdict] for verdict in VERDICTS}

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
    what, value, needed = evidence["what"], evidence["value"], evidence["bound"]
    if evidence["kind"] == "counted":
        sign = "=" if value == needed else f"is not {shown(needed)} but"
        return f"{what} {sign} {shown(value)}"
    if value is None:
        return f"{what}: not measured ({evidence['device']}), needs {bound(needed)}"
    return f"{what} = {interval(value, evidence['interval'])}, needs {bound(needed)}"


def instead(row: Row) -> str:
    """Return what is right where the sentence is wrong, else nothing."""
    return str(row["finding"]) if row["verdict"] == "refuted" else ""


def says(row: Row) -> str:
    """Return the sentence of a claim, and that it is ours if the seminar does not make it."""
    return f"{row['says']} (ours)" if row["ours"] else str(row["says"])


def label(evidence: Row) -> str:
    """Return the kind of a piece of evidence; a recorded cause is both."""
    kind = str(evidence["kind"])
    return f"{kind} cause" if evidence.get("of") == "cause" else kind


def place(evidence: Row) -> str:
    """Return where a number is from, and of a time of this run its clock; nothing without one."""
    if evidence["value"] is None:
        return ""
    clock = evidence["clock"] if evidence["kind"] != "recorded" else None
    return f"{evidence['device']} ({clock})" if clock else str(evidence["device"])


def source(evidence: Row) -> str:
    """Return how and where a piece of evidence was taken."""
    how = "timed" if evidence["kind"] == "cause" else evidence["kind"]
    where = place(evidence)
    return f"{how} on {where}" if where else f"not {how}"


def as_evidence(row: Row) -> Evidence:
    """Return a piece of evidence as it was before it was written."""
    return Evidence(**(row | _numbers(row)))


def _numbers(evidence: Row) -> Row:
    """Return a ratio's value and interval as numbers again: JSON spells what is not finite."""
    if evidence["kind"] == "counted" or evidence["value"] is None:
        return {}
    ends = evidence["interval"]
    return {
        "value": float(evidence["value"]),
        "interval": ends and tuple(map(float, ends)),
    }


def ranked(evidence: list[Row]) -> list[Row]:
    """Return what failed, what is open, what the test calls decisive, times, causes and counts.

    Of its kind, what clears its bound by the least comes first.
    """

    def rank(each: Row) -> tuple[int, bool, int, float]:
        read, weight = as_evidence(each), WEIGHTS[label(each)]
        return WORST_FIRST.index(read.outcome), not read.decisive, weight, read.room

    return sorted(evidence, key=rank)


def deciding(evidence: list[Row]) -> list[Row]:
    """Return the headline of a claim: the first as ranked, and what else decides it."""
    in_order = ranked(evidence)
    return in_order[:1] + [each for each in in_order[1:] if each.get("decisive")]


def elsewhere(ledger: Ledger) -> str:
    """Say whose times they are, if nothing was timed in this run."""
    timed = ledger.device.get("clock")
    return "" if timed else "Times are those of that card: a run on yours judges it."


def usual_sources(ledger: Ledger) -> dict[str, str]:
    """Return where most evidence of each label comes from."""
    found: dict[str, Counter[str]] = {}
    for evidence in (each for row in ledger.claims for each in row["evidence"]):
        found.setdefault(label(evidence), Counter())[source(evidence)] += 1
    return {name: counts.most_common(1)[0][0] for name, counts in sorted(found.items())}


def origin(ledger: Ledger) -> str:
    """Return where most counts and most times come from, as one phrase."""
    usual = usual_sources(ledger)
    counts = [usual.pop("counted")] if "counted" in usual else []
    times = [usual[name] for name in WEIGHTS if name in usual][:1]
    return "; ".join([*counts, *(f"times {each.removeprefix('timed ')}" for each in times)])
