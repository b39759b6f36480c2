"""A night in turn: the run, the gate, the self-test: `python -m harness.gate.night`.

A broken claim does not keep the gate from judging the times. A run that never began leaves nothing
to judge, and has said why. A self-test that found the verdicts wanting is no regression, so it has
an exit code of its own. With --benchmark-only a night is a minute of times and their judgement.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest

NIGHT: Final = "build/nightly.json"
RUN: Final = (
    *("pytest", "--gpu=require", "suites", "--hypothesis-profile=nightly"),
    *("--junit-xml=build/junit.xml", f"--benchmark-json={NIGHT}"),
)
# Options that write the times elsewhere, or take none, whereupon pytest ends well all the same.
REFUSED: Final = frozenset(
    {
        *("--benchmark-json", "--benchmark-disable", "--benchmark-skip", "--gpu"),
        *("--collect-only", "--collectonly", "--co", "--numprocesses", "-n", "--dist", "-d"),
        *("--help", "-h", "--version", "-V", "--fixtures", "--markers"),
        *("--setup-only", "--setup-plan", "--cache-show"),
    }
)
TIMES: Final = "--benchmark-only"  # pytest-benchmark's: no property and no claim runs
GATE: Final = ("harness.gate", NIGHT, "--confirm")
SELFTEST: Final = ("harness.selftest", "--seconds", "180", "--output", "build/selftest.json")
WANTING: Final = 6  # of a night; pytest's own end with 5
RAN: Final = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)


def module(words: Sequence[str]) -> int:
    """Run a module with its arguments; return its exit code."""
    return subprocess.run([sys.executable, "-m", *words], check=False).returncode


def _named(option: str) -> set[str]:
    """Return what an option may be called, as `--gpu=auto` or `-n4` has its value with it."""
    return {option.partition("=")[0], option if option.startswith("--") else option[:2]}


def _refuse(why: str) -> int:
    print(why, file=sys.stderr)
    return pytest.ExitCode.USAGE_ERROR


def main(options: Sequence[str], call: Callable[[Sequence[str]], int] = module) -> int:
    """Run pytest with `options`, judge what ran, then the verdicts; return the first failure.

    Times of the night before go first: a run that leaves none must not have those judged.
    """
    if unfit := [each for each in options if _named(each) & REFUSED]:
        return _refuse(f"a night times everything into {NIGHT}: leave out {' '.join(unfit)}")
    try:
        Path(NIGHT).unlink(missing_ok=True)
    except OSError as error:
        return _refuse(str(error))
    ran = call([*RUN, *options])
    if ran not in RAN:
        return ran
    judged = call(GATE)
    doubted = TIMES not in options and call(SELFTEST) != 0
    return ran or judged or (WANTING if doubted else 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
