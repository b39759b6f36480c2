"""Whole runs where something is damaged, missing or cannot be written: words, never a traceback."""

from __future__ import annotations

import importlib.util
import json
from typing import Any

import pytest

from harness import rig
from harness.devices import opening
from harness.devices.driver import Unusable
from harness.tests.fakes import FakeGPU
from harness.tests.rehearsal import LADDER, Run, recording
from kernels import CompilerMissing

pytest_plugins = ["pytester"]

GIVEN = """
from hypothesis import given, strategies

@given(strategies.integers())
def test_given(number):
    pass
"""
NEWEST = "nvidia-h200/0002_b.json"


def ended(result: pytest.RunResult, message: str) -> None:
    """Hold a run to a usage error in words."""
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in result.stderr.str()
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()


@pytest.mark.parametrize("options", [(), ("-p", "no:cacheprovider")], ids=["cache", "no-cache"])
def test_a_checkout_that_cannot_be_written(run: Run, options: tuple[str, ...]) -> None:
    """Files stand where folders would be made: that stops even root."""
    run.store(recording())
    run.write(given=GIVEN)
    for name in (".pytest_cache", ".hypothesis", "build"):
        (run.pytester.path / name).write_text("")
    result = run.pytester.runpytest_subprocess("--gpu=emulate", *options)
    assert result.ret == 0
    result.assert_outcomes(passed=2, warnings=1 + (not options))
    assert "1 holds  0 refuted" in result.stdout.str()
    assert "claims.json not written" in result.stdout.str()


@pytest.mark.parametrize(
    "content",
    [
        *("", '{"bench', "[]", "null", "\x00\x01", '{"benchmarks": ["x"]}'),
        json.dumps(recording() | {"datetime": 5}),
        json.dumps(recording() | {"benchmarks": [{"fullname": "a", "name": "a", "stats": {}}]}),
    ],
    ids=["empty", "cut", "list", "null", "binary", "entry", "datetime", "stats"],
)
def test_a_damaged_newest_baseline_does_not_stop_a_comparison(run: Run, content: str) -> None:
    """It is named and kept, and the one before it is compared with."""
    run.store(recording())
    run.write(ladder=LADDER)
    damaged = run.pytester.path / "baselines" / NEWEST
    damaged.write_text(content)
    result = run.on(FakeGPU(), "--benchmark-compare")
    assert result.ret == 0
    assert "0002_b.json" in result.stdout.str()
    assert "test_the_ladder_is_timed[reduce_v1] (0001_a)" in result.stdout.str()
    assert damaged.read_text() == content


@pytest.mark.parametrize("chosen", [f"=baselines/{NEWEST}", "=0002"])
@pytest.mark.parametrize("stats", [None, {"median": 1e-4}], ids=["cut", "no-mean"])
def test_a_damaged_baseline_that_was_asked_for_is_a_usage_error(
    run: Run, chosen: str, stats: Any
) -> None:
    """By path or by number."""
    content = recording()
    content["benchmarks"][0]["stats"] = stats
    run.store(recording())
    run.store(content, NEWEST)
    ended(run.on(FakeGPU(), f"--benchmark-compare{chosen}"), "cannot compare: ")


@pytest.mark.parametrize("tests", ["suites", "suites/test_ladder.py"])
def test_tests_behind_the_option_are_no_recording(run: Run, tests: str) -> None:
    """The option has swallowed it: nothing is damaged, and there is nothing to record again."""
    run.write(ladder=LADDER)
    result = run.on(FakeGPU(), "--benchmark-compare", tests)
    ended(result, f"{tests}: --benchmark-compare takes a path that follows it for a recording")


@pytest.mark.parametrize(
    "option",
    ["--benchmark-autosave", "--benchmark-save=x", f"--benchmark-json=baselines/{NEWEST}"],
)
def test_a_run_never_writes_a_baseline(run: Run, option: str) -> None:
    """Nor removes the one that it would have replaced."""
    run.store(recording(), NEWEST)
    run.write(ladder=LADDER)
    ended(run.on(FakeGPU(), option), "a run never writes a baseline: record with --benchmark-json")
    kept = run.pytester.path / "baselines" / NEWEST
    assert json.loads(kept.read_text()) == recording()
    assert len(list(kept.parent.iterdir())) == 1


@pytest.mark.parametrize("option", ["--benchmark-json=build/x.json", "--benchmark-autosave"])
def test_a_place_that_cannot_be_written_ends_the_run_before_it_begins(
    run: Run, option: str
) -> None:
    """Pytest-benchmark would find out after the last test."""
    (run.pytester.path / "build").write_text("")
    ended(run.on(FakeGPU(), option), "cannot be written")


@pytest.mark.parametrize("error", [Unusable("CUDA error 999"), CompilerMissing("install NVRTC")])
def test_a_device_that_cannot_be_opened_is_a_usage_error(
    run: Run, monkeypatch: pytest.MonkeyPatch, error: RuntimeError
) -> None:
    """Also with --gpu=auto: a broken driver is not the absence of a GPU."""

    def refuse(wanted: str) -> None:
        raise error

    monkeypatch.setattr(opening, "open_device", refuse)
    ended(run.pytester.runpytest_inprocess(), f"ERROR: {error}")


def test_without_a_compiler_nothing_is_started(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The emulated device opens without it, and could run nothing."""

    def refuse(architecture: str) -> None:
        raise CompilerMissing("NVRTC cannot be loaded")

    monkeypatch.setattr(rig, "probe_compiler", refuse)
    ended(run.on(None), "ERROR: NVRTC cannot be loaded")


def test_without_scipy_nothing_is_started(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """One message, not one error a ratio."""
    found = importlib.util.find_spec
    monkeypatch.setattr(
        "harness.pytest_claims.find_spec", lambda name: None if name == "scipy" else found(name)
    )
    ended(run.on(None), "SciPy cannot be imported, which judges every ratio: `pip install scipy`")


def test_python_that_drops_assertions_is_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every check would pass."""
    monkeypatch.setenv("PYTHONOPTIMIZE", "1")
    ended(run.pytester.runpytest_subprocess("--gpu=emulate"), "python -O drops every assertion")
