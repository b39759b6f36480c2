"""The claims as a GitHub table."""

from __future__ import annotations

from typing import Final

from harness.report.ledger import (
    WORDS,
    Ledger,
    Row,
    elsewhere,
    finding,
    instead,
    label,
    origin,
    place,
    ranked,
    says,
)

HEAD = ["verdict", "claim", "what it says, and why", "published", "evidence"]
SHOWN: Final = 12  # pieces of evidence of one claim


def markdown(ledger: Ledger) -> str:
    """Return build/claims.md: totals, what the kinds of evidence mean, then one table a section."""
    totals = ", ".join(f"{count} {verdict}" for verdict, count in ledger.totals().items())
    where = origin(ledger) or f"run on {ledger.device['name']}"
    lines = ["# Claims", "", cell(where), "", totals, ""]
    lines += [cell(ledger.partial), ""] if ledger.partial else []
    lines += [elsewhere(ledger), ""] if elsewhere(ledger) else []
    lines += [*(f"- **{word}**: {means}" for word, means in WORDS.items()), ""]
    for section, rows in ledger.sections().items():
        lines += [f"## {section}", "", _line(HEAD), _line(["---"] * len(HEAD))]
        lines += [_line(_cells(row)) for row in rows]
        lines += [""]
    return "\n".join(lines)


def _cells(row: Row) -> list[str]:
    found = [cell(_found(each)) for each in ranked(row["evidence"])]
    if more := len(found[SHOWN:]):
        found[SHOWN:] = [f"and {more} more in report.html"]
    found += [cell(row["note"])] if row.get("note") else []
    sentence = cell(says(row))
    sentence += f"<br>*instead:* {cell(instead(row))}" if instead(row) else ""
    sentence += f"<br>*why:* {cell(row['why'])}" if row["why"] else ""
    return [
        row["verdict"],
        f"`{row['id']}`",
        sentence,
        cell(row["published"] or ""),
        "<br>".join(found),
    ]


def _found(evidence: Row) -> str:
    where = place(evidence)
    return f"{label(evidence)}: {finding(evidence)}" + (f" ({where})" if where else "")


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def cell(text: str) -> str:
    r"""Return `text` so that it stays inside its cell, and is text.

    >>> cell("a | b")
    'a \\| b'
    """
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("|", "\\|").replace("\n", " ")
