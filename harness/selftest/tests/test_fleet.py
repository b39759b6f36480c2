"""The odd GPU out is named, with how far it is off."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.selftest import fleet
from harness.tests.fakes import FakeGPU, FakeWorkload

H200 = "NVIDIA H200"


def cards(*microseconds: float, model: str = H200) -> dict[str, dict[str, Any]]:
    return {
        f"GPU-{number}": {"name": model, "place": "", "seconds": {"reduce_v7": each * 1e-6}}
        for number, each in enumerate(microseconds)
    }


@pytest.mark.parametrize(
    ("probes", "said"),
    [
        (cards(64.0, 64.3, 63.8, 64.1), []),
        (
            cards(64.0, 64.0, 70.4, 64.0),
            ["GPU-2: reduce_v7 is 10.0% slower than the median of 4 NVIDIA H200"],
        ),
        (
            cards(64.0, 64.0, 57.6),
            ["GPU-2: reduce_v7 is 10.0% faster than the median of 3 NVIDIA H200"],
        ),
        (
            cards(64.0, 70.4),
            [
                "reduce_v7: the two NVIDIA H200 differ by 10.0%, GPU-1 is the slower; "
                "with two of them nobody can say which is odd"
            ],
        ),
        (cards(64.0), []),
        (cards(64.0, 64.0, 64.0) | {"L40S": cards(300.0, model="NVIDIA L40S")["GPU-0"]}, []),
        ({}, []),
    ],
)
def test_the_odd_one_is_named(probes: dict[str, Any], said: list[str]) -> None:
    """Against the median of its own model, 3 % allowed."""
    assert list(fleet.odd_ones(probes)) == said


def test_a_probe_times_every_subject_once() -> None:
    """Medians, with the model's name and where it is."""

    class Placed(FakeGPU):
        bus_id = "0000:19:00.0"

    subjects = {"v7": FakeWorkload("v7", 64e-6), "copy": FakeWorkload("copy", 125e-6)}
    found = fleet.probe(Placed(noise=0), subjects)
    assert found == {
        "name": H200,
        "place": "0000:19:00.0",
        "seconds": {"v7": 64e-6, "copy": 125e-6},
    }


def started(answers: dict[str, str]) -> Callable[[str], Callable[[], str]]:
    def start(name: str) -> Callable[[], str]:
        def output() -> str:
            if answers[name].startswith("!"):
                raise RuntimeError(answers[name][1:])
            return answers[name]

        return output

    return start


def test_all_are_started_before_any_is_waited_for_and_a_failure_is_named() -> None:
    """The last line of what a probe prints is its answer."""
    good = "a warning\n" + json.dumps(cards(64.0)["GPU-0"])
    probes, failed = fleet.collected(["0", "1", "2"], started({"0": good, "1": "!dead", "2": ""}))
    assert probes == {"GPU 0": cards(64.0)["GPU-0"]}
    assert failed[0] == "GPU 1 was not timed: dead"
    assert failed[1].startswith("GPU 2 was not timed")


def test_the_run_fails_if_one_is_odd(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One process each, with that GPU visible and no other."""
    times = {"0": 64.0, "3": 64.0, "5": 70.4}
    answers = {name: json.dumps(cards(each)["GPU-0"]) for name, each in times.items()}
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,3,5")
    monkeypatch.setattr(fleet, "_started", started(answers))
    assert fleet.main() == 1
    assert "GPU 5: reduce_v7 is 10.0% slower" in capsys.readouterr().out
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,3")
    assert fleet.main() == 0
    assert "2 GPUs agree within 3%" in capsys.readouterr().out
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert fleet.main() == 0
    assert "one GPU alone: there is no other" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("names", "place", "labels"),
    [
        (["0"], "GPU-5a6f at 0000:19:00.0", ["GPU-5a6f at 0000:19:00.0"]),
        (["GPU-5a6f"], "", ["GPU-5a6f"]),
        (["MIG-1c2d", "MIG-9e8f"], "GPU-5a6f at 0000:19:00.0", ["MIG-1c2d", "MIG-9e8f"]),
    ],
)
def test_a_gpu_is_called_by_its_place_and_a_slice_by_its_uuid(
    names: list[str], place: str, labels: list[str]
) -> None:
    """All slices of a GPU are at one place; none may hide another."""
    answer = json.dumps(cards(64.0)["GPU-0"] | {"place": place})
    probes, _ = fleet.collected(names, started(dict.fromkeys(names, answer)))
    assert list(probes) == labels


def test_no_gpu_is_no_agreement(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 2."""
    monkeypatch.setitem(os.environ, "CUDA_VISIBLE_DEVICES", "")
    assert fleet.main() == 2


def test_a_probe_sees_its_own_gpu_and_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A real process, which says what it may see: on one GPU all of them would agree."""
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho "$CUDA_VISIBLE_DEVICES"\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    names = ["0", "3", "GPU-5a6f"]
    assert [fleet._started(name)().strip() for name in names] == names


def test_a_probe_that_ends_badly_says_its_last_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """A real process, which finds no GPU here."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(RuntimeError, match="it said nothing"):
        fleet._started("0")()
