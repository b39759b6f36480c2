"""A second process: what it takes back of a slow-down, and what it does not."""

from __future__ import annotations

import subprocess
from typing import Any, Final

import pytest

from harness.gate.tests.folders import Folder
from harness.gate.tests.nights import NAMES, all_by, night, only, promoted, ramp, samples

SLOW: Final = only(samples(1.1e-4))
AGAIN: Final[dict[str, tuple[dict[str, Any] | None, int, str]]] = {
    "gone": (night(), 0, "+10.11 % at first, timed again in a new process: +0.00 %"),
    "faster": (only(samples(9e-5)), 0, "at first, timed again"),
    "edited": (only(samples(), source="bb"), 0, "at first, timed again"),
    "confirmed": (SLOW, 1, "at first, timed again"),
    "not-timed": (None, 1, "limit 0.5"),
    "skipped": (night({}), 1, "not timed again: in the baseline, not measured tonight"),
    # what excuses a slow-down in one night does not take back one that was proven in another
    "throttled": (
        only(samples(1.1e-4), throttle_reasons=["hardware slowdown"], sm_clock_mhz=1500),
        1,
        "not timed again: +10.11 %, limit 0.5 % (least limit); throttled tonight by hardware",
    ),
    "drifting": (only(ramp(1.1e-4, 0.15)), 1, "not timed again: +10"),
    "few": (only(samples(rounds=5)), 1, "not timed again: 5 samples"),
    "zeros": (only([0.0] * 20), 1, "not timed again: a sample took 0.0 s"),
    "undecided": (only([1e-4, 2e-4] * 10), 1, "not timed again: undecided"),
    "shared": (night({}) | {"not comparable": {NAMES[0]: "process 7"}}, 1, "again: process 7"),
    "other-grid": (only(samples(), grid=5), 1, "not timed again: other work: grid 132 -> 5"),
    "other-cap": (night(power_cap_w=500.0), 1, "not timed again: power cap"),
    "slow-copy": (all_by(1.1, **{"copy GB/s": 3900}), 1, "at first, timed again"),
}


@pytest.mark.parametrize(("again", "code", "why"), AGAIN.values(), ids=AGAIN)
def test_a_slow_down_must_show_twice(
    folder: Folder,
    monkeypatch: pytest.MonkeyPatch,
    again: dict[str, Any] | None,
    code: int,
    why: str,
) -> None:
    """The second process times only what was slower; what it does not time stays slower."""
    commands: list[list[str]] = []

    def pytest_run(arguments: list[str], check: bool) -> None:
        commands.append(arguments)
        if again is not None:
            folder.write("build/again.json", again)

    folder.write("night.json", SLOW)
    monkeypatch.setattr(subprocess, "run", pytest_run)
    folder.write("build/again.json", night())  # of last night
    assert folder.gate("--confirm") == code
    assert commands[0][-2:] == ["--", NAMES[0]]
    assert "--gpu=require" in commands[0]
    assert why in folder.found()["benchmarks"][0]["why"]


def test_the_second_process_changes_the_slower_rows_alone(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And its setting is told."""
    again = night({name: samples(1.1e-4) for name in NAMES}, power_cap_w=500.0)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: folder.write("build/again.json", again))
    folder.write("night.json", SLOW)
    assert folder.gate("--confirm") == 1
    assert folder.found()["totals"] == {"slower": 1, "same": 7}
    assert folder.found()["notes"] == [
        "in the second process: not comparable: power cap in W 700.0 -> 500.0"
    ]
    again["device"] |= {"power_cap_w": 700.0, "copy GB/s": 3900.0}
    assert folder.gate("--confirm") == 1
    assert folder.found()["totals"] == {"slower": 1, "same": 7}
    (note,) = folder.found()["notes"]
    assert note.startswith("in the second process: a plain copy of the driver is +10.96 %")


def test_the_second_process_is_held_against_the_same_baseline(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that was named, where one was."""
    slow = only(samples(1.1e-4))
    named = folder.write("named.json", promoted())
    folder.write("baselines/nvidia-h200/0001_a.json", slow)
    folder.write("night.json", slow)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: folder.write("build/again.json", slow))
    assert folder.gate("--confirm") == 0
    assert folder.gate("--confirm", "--baseline", str(named)) == 1


def test_nothing_is_timed_again_unasked(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slower night is red at once."""
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("timed again"))
    folder.write("night.json", SLOW)
    assert folder.gate() == 1


def test_nothing_is_timed_again_without_need(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quiet night, or a machine that moved as a whole."""
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("timed again"))
    assert folder.gate("--confirm") == 0
