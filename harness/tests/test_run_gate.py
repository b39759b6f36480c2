"""Whole runs, then the gate: what pytest-benchmark sees, and what only the gate sees."""

from __future__ import annotations

import json
import shlex
import sys
from typing import Any

import pytest

from harness.devices import Launch, Workload
from harness.gate import __main__ as gate
from harness.gate.promotion import promote
from harness.selftest.repeats import exit_codes
from harness.tests.fakes import FakeGPU
from harness.tests.rehearsal import BROKEN, ROOT, Run
from harness.watch import NotComparable
from harness.workbench import Workbench

pytest_plugins = ["pytester"]

LADDER = """
import pytest
from harness.tests.fakes import FakeWorkload

@pytest.mark.parametrize("rung", {rungs})
def test_the_ladder_is_timed(bench, rung):
    bench(FakeWorkload(rung, {seconds}))
"""
PLUGIN = """
from harness.devices import opening
from harness.tests.fakes import FakeGPU
opening.open_device = lambda wanted: FakeGPU()
"""
RUNGS = ["reduce_v1", "reduce_v2"]
V2 = "suites/test_ladder.py::test_the_ladder_is_timed[reduce_v2]"
NIGHT = "--benchmark-json=build/nightly.json"
FAIL = ("--benchmark-compare", "--benchmark-compare-fail=median:10%")


class Nights:
    """A checkout with a promoted baseline of two rungs of 100 us, night after night."""

    def __init__(self, run: Run) -> None:
        self.run, self.path = run, run.pytester.path
        self.ladder()
        assert self.run.on(FakeGPU(), NIGHT).ret == 0
        self.file = self.path / "build" / "nightly.json"
        promote(self.file, self.path / "baselines")

    def ladder(self, seconds: float | str = 1e-4, rungs: list[str] = RUNGS) -> None:
        """Write the suite; `seconds` may be an expression of `rung`."""
        self.run.write(ladder=LADDER.format(rungs=rungs, seconds=seconds))

    def apart(self, *options: str) -> int:
        """Run in a process of its own, on a fake GPU, and return its exit code."""
        self.run.pytester.makepyfile(fake_gpu=PLUGIN)
        plugins = ("-p", "fake_gpu", "-p", "no:cacheprovider")
        return int(self.run.pytester.runpytest_subprocess(*plugins, *options).ret)

    def gate(self, *options: str) -> int:
        """Judge the night."""
        places = ("--root", str(self.path / "baselines"), "--out", str(self.path / "build"))
        return gate.main([str(self.file), *places, *options])

    def found(self) -> dict[str, Any]:
        """Return build/gate.json."""
        document: dict[str, Any] = json.loads((self.path / "build" / "gate.json").read_text())
        return document


@pytest.fixture
def nights(run: Run) -> Nights:
    """The baseline is promoted."""
    return Nights(run)


def test_a_night_without_a_change_is_green(nights: Nights) -> None:
    """Five of five, each with other noise."""
    for noise in (0.001, 0.002, 0.003, 0.004, 0.005):
        assert nights.run.on(FakeGPU(noise=noise), NIGHT).ret == 0
        assert nights.gate() == 0
        assert nights.found()["totals"] == {"same": 2}


def test_a_slow_down_is_seen_by_both(nights: Nights) -> None:
    """--benchmark-compare-fail ends the process with 1, the gate too."""
    nights.ladder(1.2e-4)
    assert nights.apart(NIGHT, *FAIL) == 1
    assert nights.gate() == 1
    assert nights.found()["totals"] == {"slower": 2}


@pytest.mark.parametrize("slowdown", [0.02, 0.05])
def test_with_three_runs_promoted_a_planted_slow_down_goes_red(
    nights: Nights, slowdown: float
) -> None:
    """The default of 5 % for a single run would let 2 % pass."""
    runs = [nights.path / f"run{number}.json" for number in (1, 2, 3)]
    for number, path in enumerate(runs, 1):
        nights.run.on(FakeGPU(noise=number / 1000), f"--benchmark-json={path}")
    promote(runs[0], nights.path / "baselines", runs[1:])
    nights.ladder(1e-4 * (1 + slowdown))
    assert nights.run.on(FakeGPU(), NIGHT).ret == 0
    assert nights.gate() == 1
    assert nights.found()["totals"] == {"slower": 2}


def test_a_speed_up_fails_neither(nights: Nights) -> None:
    """The gate says what to do with it."""
    nights.ladder(0.8e-4)
    assert nights.run.on(FakeGPU(), NIGHT, *FAIL).ret == 0
    assert nights.gate() == 0
    assert all(row["why"].endswith("; promote") for row in nights.found()["benchmarks"])


def test_a_missing_benchmark_is_seen_by_the_gate_only(nights: Nights) -> None:
    """Renamed or deselected: pytest-benchmark compares what is there, and is content."""
    nights.ladder(rungs=["reduce_v1", "reduce_v2_renamed"])
    assert nights.run.on(FakeGPU(), NIGHT, *FAIL).ret == 0
    assert nights.gate() == 1
    assert nights.found()["totals"] == {"same": 1, "missing": 1, "new": 1}


@pytest.mark.parametrize("option", ["--benchmark-disable", "--benchmark-skip"])
def test_a_night_that_measured_nothing_leaves_no_file(
    nights: Nights,
    option: str,
    capsys: pytest.CaptureFixture[str],
    recwarn: pytest.WarningsRecorder,
) -> None:
    """Pytest ends with 0 and a remark; the gate must not judge the night before instead."""
    assert nights.run.on(FakeGPU(), NIGHT, *FAIL, option).ret == 0
    assert not nights.file.exists()
    assert nights.gate() == 2
    assert "nightly.json cannot be read" in capsys.readouterr().err


def test_a_night_under_xdist_leaves_no_file(nights: Nights) -> None:
    """Nothing is timed in parallel, and exit 0 says nothing."""
    assert nights.apart("-n", "1", NIGHT) == 0
    assert nights.gate() == 2


def test_collecting_keeps_the_file(nights: Nights, recwarn: pytest.WarningsRecorder) -> None:
    """Only a run that measures replaces it."""
    nights.run.on(FakeGPU(), NIGHT, "--collect-only")
    assert "Not saving anything" in str(recwarn.pop().message)
    assert nights.gate() == 0


def test_a_broken_claim_fails_the_gate_too(nights: Nights) -> None:
    """Its verdict travels in the night's file."""
    nights.run.write(broken=BROKEN)
    assert nights.run.on(FakeGPU(), NIGHT).ret == pytest.ExitCode.TESTS_FAILED
    assert nights.gate() == 1
    assert nights.found()["claims"] == {"broken": ["reduce.wrong"], "missing": []}


def test_a_claim_that_is_gone_fails_the_gate(nights: Nights) -> None:
    """Deselected, renamed or deleted."""
    nights.run.on(FakeGPU(), NIGHT, "--deselect", "suites/test_claims.py::test_faster")
    assert nights.gate() == 1
    assert nights.found()["claims"]["missing"] == ["reduce.v3-over-v2"]


def test_a_night_of_times_alone_is_judged(nights: Nights) -> None:
    """No claim runs, and none is missed; a benchmark that does not run is."""
    nights.run.on(FakeGPU(), NIGHT, "--benchmark-only").assert_outcomes(passed=2, skipped=1)
    assert nights.gate() == 0
    assert nights.found()["notes"] == ["claims of the baseline that --benchmark-only left out: 1"]
    nights.run.on(FakeGPU(), NIGHT, "--benchmark-only", "-k", "reduce_v1")
    assert nights.gate() == 1
    assert nights.found()["totals"] == {"same": 1, "missing": 1}


def test_a_night_of_times_alone_repeats_in_processes_of_its_own(
    nights: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command of the self-test: pytest, the gate, and again; red is timed twice, and alone."""
    for name in ("harness", "kernels"):
        (nights.path / name).symlink_to(ROOT / name)
    nights.run.pytester.makepyfile(fake_gpu=PLUGIN)
    monkeypatch.setenv("PYTHONPATH", str(nights.path))
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p fake_gpu -p no:cacheprovider")
    command = f"{shlex.quote(sys.executable)} -m harness.gate.night --benchmark-only"
    assert exit_codes(command, 2) == [0, 0]
    assert not (nights.path / "build" / "again.json").exists()
    nights.ladder("1.2e-4 if rung == 'reduce_v2' else 1e-4")
    assert exit_codes(command, 1) == [1]
    again = json.loads((nights.path / "build" / "again.json").read_text())
    assert [each["fullname"] for each in again["benchmarks"]] == [V2]


def test_a_disturbed_benchmark_is_not_comparable_and_not_missing(
    nights: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Throttled or shared all the time: skipped, with the reason, and nothing stored."""
    rounds = Workbench.rounds

    def disturbed(bench: Workbench, workload: Workload, count: int) -> list[float]:
        if workload.name == "reduce_v2":
            raise NotComparable("process 7 computes on the same GPU")
        return rounds(bench, workload, count)

    monkeypatch.setattr(Workbench, "rounds", disturbed)
    nights.run.on(FakeGPU(), NIGHT).assert_outcomes(passed=2, skipped=1)
    assert nights.gate() == 0
    row = next(row for row in nights.found()["benchmarks"] if row["name"] == V2)
    assert row["status"] == "not comparable"
    assert row["why"] == "process 7 computes on the same GPU"


class Lucky(FakeGPU):
    """Finds the input of the second rung in L2 for some samples, those of these numbers."""

    def __init__(self, samples: set[int]) -> None:
        super().__init__()
        self._samples = samples

    def seconds(self, launch: Launch) -> float:
        """Return a third of the time at the peak, or the time."""
        right = super().seconds(launch)
        if str(launch.kernel) != "reduce_v2":
            return right
        return 7e-8 if self.log.count("time reduce_v2") in self._samples else right


def test_a_lucky_sample_is_dropped_and_the_gates_row_says_so(nights: Nights) -> None:
    """Neither its benchmark nor the night is lost by it."""
    assert nights.run.on(Lucky({9, 17}), NIGHT).ret == 0
    assert nights.gate() == 0
    row = next(row for row in nights.found()["benchmarks"] if row["name"] == V2)
    assert row["status"] == "same"
    assert "; 2 impossible samples were dropped and taken again (reduce_v2 moved" in row["why"]
    assert "dropped and taken again" in (nights.path / "build" / "gate.md").read_text("utf-8")


def test_lucky_samples_without_end_fail_the_night(nights: Nights) -> None:
    """What fits L2 is timed nowhere: the run says why, the gate that it is missing."""
    result = nights.run.on(Lucky(set(range(100))), NIGHT)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*ImplausibleTime: reduce_v2 moved *the input was still in L2*"])
    assert nights.gate() == 1
    assert nights.found()["totals"] == {"same": 1, "missing": 1}


def test_the_night_has_what_the_gate_needs(nights: Nights) -> None:
    """Digest of the source, host, Python; the claims' verdicts."""
    night = json.loads(nights.file.read_text())
    facts = night["benchmarks"][0]["extra_info"]
    assert len(facts["source"]) == 16
    assert night["device"]["host"]
    assert night["device"]["python"].count(".") == 2
    assert night["claims"] == {"reduce.v3-over-v2": "holds"}


def test_the_night_knows_its_card(nights: Nights, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the driver tells it; another one than the baseline's is noted."""
    gpu = FakeGPU()
    monkeypatch.setattr(gpu, "bus_id", "0000:3b:00.0", raising=False)
    for card in ("GPU-a", "GPU-b"):
        monkeypatch.setattr("harness.rig.uuid_at", {"0000:3b:00.0": card}.get)
        assert nights.run.on(gpu, NIGHT).ret == 0
        assert json.loads(nights.file.read_text())["device"]["cards"] == [card]
        promote(nights.file, nights.path / "baselines")
    monkeypatch.setattr("harness.rig.uuid_at", lambda bus_id: "GPU-c")
    nights.run.on(gpu, NIGHT)
    assert nights.gate() == 0
    assert nights.found()["notes"] == ["another card of this model: GPU-c, not GPU-b"]


def test_a_host_can_be_named(nights: Nights, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rented slice of a host has times of its own."""
    monkeypatch.setenv("CLAIMS_HOST", "slice 1/8")
    nights.run.on(FakeGPU(), NIGHT)
    assert nights.gate() == 3
    assert "-> slice 1/8" in nights.found()["environment"]


def test_comparing_leaves_the_baselines_alone(nights: Nights) -> None:
    """Bare --benchmark-compare finds the promoted file; nothing is added to its folder."""
    stored = sorted((nights.path / "baselines").rglob("*"))
    result = nights.run.on(FakeGPU(), *FAIL)
    assert result.ret == 0
    assert "(0001_" in result.stdout.str()
    assert sorted((nights.path / "baselines").rglob("*")) == stored
