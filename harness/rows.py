"""One row per claim, from what became of the tests that state it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from harness.claims import Claim, Statement, Verdict
from harness.spelling import sentences

WORST_FIRST: Final = (Verdict.BROKEN, Verdict.UNDECIDED, Verdict.REFUTED, Verdict.HOLDS)

MARK: Final = re.compile(r"""@pytest\.mark\.claim\(\s*["']([a-z0-9]+\.[a-z0-9-]+)["']""")


def stated(suites: Path) -> list[str]:
    """Return the id of each claim that the files of a folder state, selected or not."""
    texts = (path.read_text("utf-8") for path in sorted(suites.glob("test_*.py")))
    return [id for text in texts for id in MARK.findall(text)]


def part(rows: Iterable[Mapping[str, Any]], stated: Iterable[str], deselected: bool) -> str:
    """Say how much of the claims a run brought, or nothing if it brought them all."""
    here, every = {row["id"] for row in rows}, set(stated)
    if not (deselected or every - here):
        return ""
    return f"a part of the claims: {len(here)} of this run, {len(every | here)} are stated"


class Phase(Protocol):
    """What pytest reports of the setup, call or teardown of a test."""

    @property
    def outcome(self) -> str: ...
    @property
    def longrepr(self) -> Any: ...


def entry(
    stated: Statement, claim: Claim | None, phases: Mapping[str, Phase]
) -> dict[str, Any] | None:
    """Return the row of a finished test as in build/claims.json, or None if it was never called."""
    outcomes = {phase.outcome for phase in phases.values()}
    if "call" not in phases and outcomes == {"passed"}:
        return None
    notes = list(claim.notes) if claim else []
    if "failed" in outcomes:
        verdict = Verdict.BROKEN
        if not (claim and claim.broken):
            notes += [_reason(phase) for phase in phases.values() if phase.outcome == "failed"]
    elif "skipped" in outcomes or claim is None:
        verdict = Verdict.UNDECIDED
        notes += [_reason(phase) for phase in phases.values() if phase.outcome == "skipped"]
    else:
        verdict = claim.verdict
    row = {
        "id": stated.id,
        "section": stated.section,
        "says": stated.says,
        "ours": stated.ours,
        "published": stated.published,
        "verdict": str(verdict),
        "finding": stated.finding,
        "why": stated.why,
        "evidence": [evidence.as_json() for evidence in claim.evidence] if claim else [],
    }
    return row | ({"note": sentences(notes)} if notes else {})


def _reason(phase: Phase) -> str:
    """Return the first line of a failure, or why a test was skipped."""
    if isinstance(phase.longrepr, tuple):
        return str(phase.longrepr[2])
    crash = getattr(phase.longrepr, "reprcrash", None)
    message = crash.message if crash else str(phase.longrepr)
    return str(message).strip().partition("\n")[0].removeprefix("Failed: ")


def merged(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one row per claim, in the order stated; the worst verdict of its tests stands."""
    claims: dict[str, dict[str, Any]] = {}
    for row in rows:
        claims[row["id"]] = _both(claims[row["id"]], row) if row["id"] in claims else row
    return list(claims.values())


def _both(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    worst = min(one["verdict"], other["verdict"], key=lambda name: WORST_FIRST.index(Verdict(name)))
    notes = sentences(dict.fromkeys(row["note"] for row in (one, other) if "note" in row))
    # a test that two workers ran brings the same twice
    more = [each for each in other["evidence"] if each not in one["evidence"]]
    evidence = one["evidence"] + more
    return {**one, "verdict": worst, "evidence": evidence} | ({"note": notes} if notes else {})
