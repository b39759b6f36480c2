"""The claims table at the end of a run: two or three lines a claim, by section."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Any, Final, Protocol

from harness.report.ledger import (
    LEGEND,
    Ledger,
    Row,
    finding,
    instead,
    label,
    place,
    ranked,
    says,
    source,
    usual_sources,
)

COLOURS: Final = {"holds": "green", "refuted": "cyan", "undecided": "yellow", "broken": "red"}
WIDEST: Final = 118
NARROWEST: Final = 80
PIPED: Final = 100
INDENT: Final = 13
KIND: Final = max(map(len, LEGEND))
FINDINGS: Final = 3


class Terminal(Protocol):
    """The part of pytest's terminal reporter that the table needs."""

    def section(self, title: str, sep: str = "=", **markup: bool) -> None: ...
    def write(self, content: str, **markup: bool) -> None: ...
    def write_line(self, line: str, **markup: bool) -> None: ...


def show(terminal: Any, ledger: Ledger, problems: list[str]) -> None:
    """Print the table, the totals and what went wrong while reporting."""
    width = max(NARROWEST, min(terminal._screen_width, WIDEST)) if terminal.isatty else PIPED
    usual = usual_sources(ledger)
    terminal.ensure_newline()
    terminal.section(f"claims on {ledger.device['name']}", bold=True)
    if usual:
        terminal.write_line("; ".join(dict.fromkeys(usual.values())), light=True)
    for section, rows in ledger.sections().items():
        terminal.write_line("")
        terminal.write_line(section, bold=True)
        for row in rows:
            _show_claim(terminal, row, width, usual)
    terminal.write_line("")
    for line in _folded((_after(kind, means) for kind, means in LEGEND.items()), width):
        terminal.write_line(line, light=True)
    _show_totals(terminal, ledger)
    for problem in [*([ledger.partial] if ledger.partial else []), *problems]:
        terminal.write_line(problem, yellow=True)


def _show_claim(terminal: Terminal, row: Row, width: int, usual: dict[str, str]) -> None:
    colour = {COLOURS[row["verdict"]]: True}
    terminal.write(f"  {row['verdict']:<{INDENT - 2}}", **colour)
    for number, line in enumerate(headline(row, width)):
        terminal.write_line(line if number == 0 else " " * INDENT + line)
    for line in details(row, width, usual):
        terminal.write_line(" " * INDENT + line, light=True)


def headline(row: Row, width: int) -> list[str]:
    """Return the claim's name and sentence, with what was published, folded to `width`."""
    name = row["id"].partition(".")[2]
    published = f" (published: {row['published']})" if row["published"] else ""
    return textwrap.wrap(f"{name}: {says(row)}{published}", width - INDENT, subsequent_indent="  ")


def details(row: Row, width: int, usual: dict[str, str]) -> list[str]:
    """Return the decisive numbers and the note, folded to `width`."""
    chosen = decisive(row["evidence"])
    hidden = len(row["evidence"]) - len(chosen)
    lines = [_after("instead", instead(row))] if instead(row) else []
    lines += [_found(evidence, usual) for evidence in chosen]
    lines += [f"and {hidden} more in build/report.html"] if hidden else []
    lines += [row["note"]] if row.get("note") else []
    return _folded(lines, width - INDENT)


def _found(evidence: Row, usual: dict[str, str]) -> str:
    name, where = label(evidence), place(evidence)
    unusual = where and source(evidence) != usual[name]
    return _after(name, finding(evidence)) + (f"; on {where}" if unusual else "")


def _after(word: str, text: str) -> str:
    return f"{word:<{KIND}}  {text}"


def _folded(lines: Iterable[str], width: int) -> list[str]:
    hanging = " " * (KIND + 2)
    folded = (textwrap.wrap(line, width, subsequent_indent=hanging) for line in lines)
    return [line for lines in folded for line in lines]


def decisive(evidence: list[Row]) -> list[Row]:
    """Return the few pieces a verdict hangs on."""
    return ranked(evidence)[:FINDINGS]


def _show_totals(terminal: Terminal, ledger: Ledger) -> None:
    for verdict, count in ledger.totals().items():
        terminal.write(f"{count} {verdict}  ", **{COLOURS[verdict]: count > 0})
    terminal.write_line("· build/report.html, claims.md, claims.json")
