"""`python -m harness.gate.night`: what follows what."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.baselines import ROOT as BASELINES
from harness.gate import night
from harness.gate.__main__ import main

USAGE, INTERRUPTED, NOTHING = 4, 2, 5


@pytest.fixture(autouse=True)
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout of its own: a night removes what lies in build/."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "build").mkdir()
    return tmp_path / "build"


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
        ((0, 1, 1), 1),
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


def test_a_night_does_what_its_name_says() -> None:
    """More inputs than by day, what is slower timed twice, three minutes of self-test at most."""
    called: list[Sequence[str]] = []
    night.main([], lambda words: called.append(words) or 0)  # type: ignore[func-returns-value]
    run, gate, selftest = called
    assert {"--gpu=require", "--hypothesis-profile=nightly"} <= set(run)
    assert gate == ("harness.gate", "build/nightly.json", "--confirm")
    assert selftest[:3] == ("harness.selftest", "--seconds", "180")


def test_the_times_of_the_night_before_are_not_judged(build: Path) -> None:
    """They are gone before anything runs."""
    stale = build / "nightly.json"
    stale.write_text("{}")
    there: list[bool] = []
    night.main([], lambda words: there.append(stale.exists()) or 0)  # type: ignore[func-returns-value]
    assert there == [False, False, False]


@pytest.mark.parametrize(
    "option",
    [
        *("--collect-only", "--co", "--help", "-h", "-n4", "--numprocesses=2", "--gpu=emulate"),
        *("--benchmark-json=build/other.json", "--benchmark-json", "--benchmark-disable"),
    ],
)
def test_an_option_that_leaves_no_times_is_refused(
    option: str, build: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything runs, in words; what lies there stays."""
    (build / "nightly.json").write_text("{}")
    assert night.main(["-k", "v7", option], lambda words: pytest.fail(f"ran {words}")) == USAGE
    assert f"into build/nightly.json: leave out {option}\n" in capsys.readouterr().err
    assert (build / "nightly.json").exists()


def test_times_that_cannot_be_removed_end_the_night(
    build: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a folder of that name: a traceback would be red."""
    (build / "nightly.json").mkdir()
    assert night.main([], lambda words: pytest.fail(f"ran {words}")) == USAGE
    assert "nightly.json" in capsys.readouterr().err


def test_a_night_of_times_alone_ends_with_the_gate() -> None:
    """What is repeated to see that the gate stays green."""
    called: list[str] = []
    night.main(["--benchmark-only"], lambda words: called.append(words[0]) or 0)  # type: ignore[func-returns-value]
    assert called == ["pytest", "harness.gate"]


def test_a_module_gives_its_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the gate's, where a file is missing."""
    monkeypatch.chdir(BASELINES.parent)
    assert night.module(["harness.gate", "--help"]) == 0
    assert night.module(["harness.gate"]) == 2


def test_a_night_that_was_never_recorded_is_recorded_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is nothing to restore."""
    assert main([str(tmp_path / "nightly.json"), "--out", str(tmp_path)]) == 2
    assert "it is not there): run `tox -e nightly` on a GPU first" in capsys.readouterr().err
