"""`python -m harness.gate.night`: what follows what."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.gate import night
from harness.gate.__main__ import main

USAGE, INTERRUPTED, NOTHING = 4, 2, 5


@pytest.mark.parametrize("code", [USAGE, INTERRUPTED, NOTHING])
def test_a_run_that_did_not_take_place_is_not_judged(code: int) -> None:
    """Without a GPU there is one message, and it is pytest's."""
    called: list[str] = []
    assert night.main([], lambda words: called.append(words[0]) or code) == code  # type: ignore[func-returns-value]
    assert called == ["pytest"]


@pytest.mark.parametrize(
    ("codes", "ends"),
    [
        ((0, 0, 0), 0),
        ((1, 0, 0), 1),
        ((0, 3, 0), 3),
        ((1, 3, 2), 1),
        ((0, 0, 1), 6),
        ((0, 0, 2), 6),
    ],
)
def test_a_broken_claim_does_not_keep_the_gate_from_judging(
    codes: tuple[int, ...], ends: int
) -> None:
    """All three run, and the first failure is the night's."""
    given, called = iter(codes), list[str]()

    def call(words: Sequence[str]) -> int:
        called.append(words[0])
        return next(given)

    assert night.main(["-x"], call) == ends
    assert called == ["pytest", "harness.gate", "harness.selftest"]


def test_the_options_go_to_pytest() -> None:
    """And no further."""
    called: list[Sequence[str]] = []
    night.main(["-k", "v7"], lambda words: called.append(words) or 0)  # type: ignore[func-returns-value]
    assert [words[-2:] == ["-k", "v7"] for words in called] == [True, False, False]


def test_a_night_of_times_alone_ends_with_the_gate() -> None:
    """What is repeated to see that the gate stays green."""
    called: list[str] = []
    night.main(["--benchmark-only"], lambda words: called.append(words[0]) or 0)  # type: ignore[func-returns-value]
    assert called == ["pytest", "harness.gate"]


def test_a_module_gives_its_exit_code() -> None:
    """As the gate's, where a file is missing."""
    assert night.module(["harness.gate", "--help"]) == 0
    assert night.module(["harness.gate"]) == 2


def test_a_night_that_was_never_recorded_is_recorded_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is nothing to restore."""
    assert main([str(tmp_path / "nightly.json"), "--out", str(tmp_path)]) == 2
    assert "it is not there): run `tox -e nightly` on a GPU first" in capsys.readouterr().err
