"""Judge a night: `python -m harness.gate build/nightly.json`.

Exit 0: nothing became slower, nothing is missing, no claim is broken. 1: something is. 2: a file is
damaged, or cannot be read or written. 3: no verdict (no baseline, another environment, or too
little compared).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Final

from harness.baselines import ROOT, Baseline, BaselineError, newest, read, slug, write_whole
from harness.gate.compare import Exit, Night, compare, confirmed
from harness.gate.damage import damage
from harness.gate.verdicts import Status
from harness.report import summarise
from harness.report.night import as_json, markdown, text
from harness.spelling import printable

AGAIN: Final = "again.json"
FILES: Final = {"gate.md": markdown, "gate.json": as_json}


def main(arguments: list[str] | None = None) -> int:
    """Print the table, write build/gate.md and build/gate.json, and return the exit code."""
    chosen = _parser().parse_args(arguments)
    try:
        return _gated(chosen)
    except (BaselineError, OSError, UnicodeError) as error:
        print(error, file=sys.stderr)
        return Exit.UNUSABLE


def _gated(chosen: argparse.Namespace) -> int:
    chosen.out.mkdir(parents=True, exist_ok=True)
    for name in FILES:  # last night's must not be taken for tonight's
        (chosen.out / name).unlink(missing_ok=True)
    against, night = judge(chosen.tonight, chosen.baseline, chosen.root)
    if chosen.confirm and night.of(Status.SLOWER):
        night = confirm(night, chosen)
    print(printable(text(night, against), sys.stdout.encoding))
    _write(night, against, chosen.out)
    return night.exit


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m harness.gate", description=__doc__)
    parser.add_argument("tonight", type=Path, help="the run's --benchmark-json file")
    parser.add_argument(
        "--baseline", metavar="FILE", help="instead of the newest promoted one of the same GPU"
    )
    parser.add_argument(
        "--confirm", action="store_true", help="time what is slower again, in a second process"
    )
    parser.add_argument("--root", type=Path, default=ROOT, help="where the baselines are")
    parser.add_argument("--out", type=Path, default=Path("build"), help="where to write")
    return parser


def judge(
    tonight: Path, baseline: str | None, root: Path, *, whole: bool = True
) -> tuple[str, Night]:
    """Return what the night is held against, in words, and the verdicts.

    `whole` is as in `compare`.

    Raises
    ------
    BaselineError
        A file cannot be read, or holds what no verdict can rest on.
    """
    now = _sound(read(tonight, made_by="tox -e nightly"))
    before = _promoted(now, root) if baseline is None else _named(baseline)
    against = f"against {before.path.name} ({before.label})" if before else f"on {now.gpu}"
    return against, compare(before.document if before else None, now.document, whole=whole)


def _named(baseline: str) -> Baseline:
    if not baseline:
        raise BaselineError("--baseline is empty: name a file, or leave the option out")
    return _sound(read(Path(baseline)))


def _promoted(now: Baseline, root: Path) -> Baseline | None:
    """Return the newest, if there is one; an older one in place of a damaged one is no anchor."""
    problems: list[str] = []
    found = newest(root / slug(now.gpu), problems)
    if problems:
        raise BaselineError("\n".join(problems))
    return found and _sound(found)


def _sound(found: Baseline) -> Baseline:
    if wrong := damage(found.document):
        raise BaselineError(f"{found.path} is damaged ({wrong}): record again")
    return found


def confirm(night: Night, chosen: argparse.Namespace) -> Night:
    """Time the slower benchmarks again in a new process, with other placements in memory."""
    path = chosen.out / AGAIN
    path.unlink(missing_ok=True)
    names = [row.name for row in night.of(Status.SLOWER)]
    options = ["--gpu=require", "--benchmark-only", f"--benchmark-json={path}"]
    print(f"{len(names)} slower: timing them again", flush=True)
    subprocess.run([sys.executable, "-m", "pytest", "-q", *options, "--", *names], check=False)
    try:
        _, again = judge(path, chosen.baseline, chosen.root, whole=False)
        return confirmed(night, again)
    except BaselineError as error:
        print(f"not timed again: {error}", file=sys.stderr)
        return night


def _write(night: Night, against: str, folder: Path) -> None:
    for name, rendered in FILES.items():
        write_whole(folder / name, rendered(night, against))
    for problem in summarise(markdown(night, against)):  # the night is judged all the same
        print(problem, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
