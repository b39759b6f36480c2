"""The claims of a run as a table in the terminal, as JSON, as Markdown and as one HTML page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from harness.baselines import write_whole
from harness.report.ledger import Ledger
from harness.report.markdown import markdown
from harness.report.page import page
from harness.report.terminal import show

FILES: Final = {"claims.json": Ledger.as_json, "claims.md": markdown, "report.html": page}


def write(ledger: Ledger, folder: Path) -> list[str]:
    """Write the reports into `folder`, and Markdown to $GITHUB_STEP_SUMMARY; return what failed."""
    problems = []
    for name, rendered in FILES.items():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(folder / name, rendered(ledger))
        except OSError as error:
            problems.append(f"{folder / name} not written: {error}")
    return problems + summarise(markdown(ledger))


def summarise(text: str) -> list[str]:
    """Add Markdown to the job's summary on GitHub, if there is one; return what failed."""
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if not summary:
        return []
    try:
        with open(summary, "a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        return [f"{summary} not written: {error}"]
    return []


__all__ = ["Ledger", "show", "summarise", "write"]
