"""The claims as a GitHub table."""

from __future__ import annotations

from harness.report.ledger import Ledger, Row, finding, instead, source

HEAD = ["verdict", "claim", "the seminar says", "published", "evidence"]


def markdown(ledger: Ledger) -> str:
    """Return build/claims.md: totals, then one table a section."""
    totals = ", ".join(f"{count} {verdict}" for verdict, count in ledger.totals().items())
    lines = [f"# Claims on {cell(ledger.device['name'])}", "", totals, ""]
    lines += [cell(ledger.partial), ""] if ledger.partial else []
    for section, rows in ledger.sections().items():
        lines += [f"## {section}", "", _line(HEAD), _line(["---"] * len(HEAD))]
        lines += [_line(_cells(row)) for row in rows]
        lines += [""]
    return "\n".join(lines)


def _cells(row: Row) -> list[str]:
    found = [f"{cell(finding(each))} ({cell(source(each))})" for each in row["evidence"]]
    found += [cell(row["note"])] if row.get("note") else []
    says = cell(row["says"])
    says += f"<br>*instead:* {cell(instead(row))}" if instead(row) else ""
    return [
        row["verdict"],
        f"`{row['id']}`",
        says,
        cell(row["published"] or ""),
        "<br>".join(found),
    ]


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def cell(text: str) -> str:
    r"""Return `text` so that it stays inside its cell, and is text.

    >>> cell("a | b")
    'a \\| b'
    """
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("|", "\\|").replace("\n", " ")
