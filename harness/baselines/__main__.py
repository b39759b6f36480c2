"""Show what a recording would change, and promote it: `python -m harness.baselines --help`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

from harness.baselines import ROOT, BaselineError, newest, read, slug
from harness.baselines.settings import Document, cards
from harness.gate.compare import compare
from harness.gate.limits import limit, resolution
from harness.gate.noise import usual
from harness.gate.promotion import promote, together
from harness.gate.samples import timings
from harness.report.night import text
from harness.spelling import printable

WIDEST: Final = 5  # limits that are shown
RUNS_HELP: Final = "build/baseline.json, or several recordings of the same code and model"


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return 1 if a file cannot be used or written."""
    chosen = _parser().parse_args(arguments)
    try:
        print(printable(chosen.action(chosen.file, chosen.root), sys.stdout.encoding))
    except (BaselineError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m harness.baselines", description=__doc__)
    actions = parser.add_subparsers(required=True)
    table = {
        "diff": (difference, "show what promoting the recordings would change"),
        "promote": (promotion, "copy the recordings into baselines/<gpu>/ as one new file"),
    }
    for name, (action, does) in table.items():
        command = actions.add_parser(name, help=does, description=does)
        command.add_argument("file", type=Path, nargs="+", help=RUNS_HELP)
        command.add_argument("--root", type=Path, default=ROOT)
        command.set_defaults(action=action)
    return parser


def difference(files: list[Path], root: Path) -> str:
    """Return the table of what differs from the newest baseline of the same GPU."""
    new = together(files)
    problems: list[str] = []
    current = newest(root / slug(new.gpu), problems)
    found = compare(current.document if current else None, new.document)
    against = f"against {current.path}" if current else f"the first of {new.gpu}"
    return "\n".join([*problems, text(found, against), *told(new.document)])


def promotion(files: list[Path], root: Path) -> str:
    """Promote, and say what is left to do."""
    path = promote(files[0], root, files[1:])
    done = f"promoted to {path}: review it, then commit"
    return "\n".join([*told(read(path).document), done])


def told(document: Document) -> list[str]:
    """Return what the runs behind a baseline are worth: which cards, and the widest limits."""
    found = timings(document).values()
    noise = usual(each.runs for each in found)
    allowed = {each.name: limit(each.runs, resolution(each.clock), noise) for each in found}
    widest = sorted(allowed, key=lambda name: allowed[name].value, reverse=True)[:WIDEST]
    return [
        recorded_on(document),
        f"limits, the widest of {len(allowed)}:",
        *(f"  {100 * allowed[name].value:.3g} % ({allowed[name].why})  {name}" for name in widest),
    ]


def recorded_on(document: Document) -> str:
    """Say how many cards it was recorded on.

    >>> recorded_on({"device": {"cards": ["GPU-a", "GPU-b"]}})
    'recorded on 2 cards: GPU-a, GPU-b'
    """
    found = cards(document)
    if not found:
        return "recorded on a card without a UUID, or on several"
    return f"recorded on {len(found)} card{'s' * (len(found) > 1)}: {', '.join(found)}"


if __name__ == "__main__":
    sys.exit(main())
