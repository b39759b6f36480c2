"""A whole self-test on a GPU that is none: what is counted, stored and printed."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.comparison import BUDGET, RULE, Rule
from harness.devices import Launch, NoGPU, Routine
from harness.devices.clocks import ClockError
from harness.devices.emulator import EmulatedDevice, Fault
from harness.selftest import __main__ as program
from harness.selftest import session
from harness.selftest.calibration import CannotPlant
from harness.selftest.plants import CardCopy, planted
from harness.selftest.repeats import exit_codes
from harness.selftest.session import Plan, run
from harness.selftest.targets import missed
from harness.selftest.trials import Proving, Versus
from harness.tests.fakes import FakeGPU, FakeWorkload
from harness.timing import Budget, ImplausibleTime
from harness.watch import NotComparable, Watch
from harness.workbench import Workbench
from harness.workloads.access import Update
from harness.workloads.reduction import Reduction
from kernels import Kernel

V7 = FakeWorkload("reduce_v7", 64e-6)
SMALL = 1 << 12
PYTHON = shlex.quote(sys.executable)  # its path may hold a space
NO_ALARM = {"slower": 0, "faster": 0, "broken": 0, "not comparable": 0}
QUICK = Rule(budget=Budget(pairs=64, seconds=2.0, first=16))


def plan(**changed: Any) -> Plan:
    def slowed(_: Proving, slowdown: float) -> tuple[FakeWorkload, float]:
        return FakeWorkload(f"slow {slowdown}", 64e-6 * (1 + slowdown)), slowdown

    given: dict[str, Any] = {
        "slowed": slowed,
        "subjects": {"reduce_v7": V7, "copy": FakeWorkload("copy", 125e-6)},
        "wrong": {"lost": FakeWorkload("lost", right=0)},
        "trials": 6,
        "sabotage_trials": 3,
        "rule": QUICK,
    }
    return Plan(old=V7, benchmark="reduce_v7", **given | changed)


def silent(_: str) -> None:
    pass


def result(gpu: FakeGPU, **changed: Any) -> dict[str, Any]:
    return run(Workbench(gpu, 16), plan(**changed), 60.0, silent)


def test_the_same_is_the_same_and_the_planted_is_slower() -> None:
    """0.2 % noise, so every verdict falls within 64 pairs."""
    document = result(FakeGPU(noise=0.002))
    assert document["aa"] == {"trials": 6} | NO_ALARM
    assert [row["flagged"] for row in document["sabotage"]] == [3, 3, 3]
    assert [row["slowdown"] for row in document["sabotage"]] == [0.02, 0.01, 0.05]
    assert document["wrong_kernels"] == {"lost": True}
    assert set(document["smallest_detectable_change"]) == {"reduce_v7", "copy"}
    assert missed(document) == []


def test_a_card_too_noisy_to_tell_misses_the_target() -> None:
    """30 % noise hides 1 %: nothing is flagged, and that is what it says."""
    document = result(FakeGPU(noise=0.3), trials=2)
    assert document["aa"]["slower"] == document["aa"]["faster"] == 0
    assert "reduce_v7, 1% slower: flagged in 0 of 3 trials" in missed(document)


def test_what_goes_wrong_while_it_is_timed_is_broken() -> None:
    """Right before the trials, wrong after them."""
    document = result(FakeGPU(), subjects={"rots": FakeWorkload("rots", right=1)}, trials=1)
    assert document["aa"] == NO_ALARM | {"trials": 2, "broken": 1}
    assert document["details"]["rots"]["why"] == ["rots is wrong"]
    assert missed(document) == ["A/A: 1 of 2 comparisons broke"]


def test_a_wrong_kernel_that_passes_is_missed() -> None:
    """The check would be worth nothing."""
    document = result(FakeGPU(), wrong={"lost": FakeWorkload("lost")}, trials=1)
    assert "lost: a wrong kernel was not noticed" in missed(document)


def test_a_sample_that_is_refused_is_broken() -> None:
    """The clock saw two kernels."""

    class Broken(FakeGPU):
        def seconds(self, launch: Launch) -> float:
            if str(launch.kernel) == "copy":
                raise ClockError("CUPTI recorded copy, copy")
            return super().seconds(launch)

    document = result(Broken(), trials=2)
    assert document["aa"]["broken"] == 1


def test_a_disturbed_trial_is_neither_slower_nor_broken() -> None:
    """The GPU throttles all the time: nothing is stored of it."""
    hot = Watch(lambda: {"throttle_reasons": ["hardware slowdown"]}, pause=lambda seconds: None)
    bench = Workbench(FakeGPU(), 16, hot)
    document = run(bench, plan(slowdowns=(), trials=2), 60.0, silent)
    assert document["aa"] == NO_ALARM | {"trials": 0, "not comparable": 2}
    assert document["details"]["copy"]["verdicts"] == {"not comparable": 1}
    assert missed(document) == ["A/A: 2 of 2 trials were not comparable"]
    assert document["smallest_detectable_change"] == {}


@pytest.mark.parametrize(
    "why",
    [
        CannotPlant("none costs 1%"),
        NotComparable("the GPU throttles"),
        ImplausibleTime("a sample of 0 s"),
        AssertionError("wait-12 gives 3"),
    ],
    ids=lambda why: type(why).__name__,
)
def test_what_cannot_be_planted_is_said_and_missed(why: Exception) -> None:
    """The rest of the night goes on, and nobody takes it for a slow-down that went unseen."""

    def slowed(proving: Proving, slowdown: float) -> Any:
        raise why

    said: list[str] = []
    document = run(Workbench(FakeGPU(), 16), plan(slowed=slowed), 60.0, said.append)
    assert f"reduce_v7 planted 1%: {why}" in said
    assert document["aa"]["trials"] == 6
    assert document["sabotage"][1]["measured"] is None
    assert "reduce_v7, 1% slower: there was no trial" in missed(document)


@pytest.mark.usefixtures("rehearsed")
def test_no_wait_is_sought_once_the_time_is_up(tmp_path: Path) -> None:
    """It would take seconds that the night does not have."""
    proving = Proving(Workbench(Rehearsal()), RULE, -1.0)
    with pytest.raises(CannotPlant, match="the time is up"):
        session.plan(tmp_path, 1, 1).slowed(proving, 0.01)


def test_the_time_is_kept() -> None:
    """None left: no trial, and no crash, but no success either."""
    document = run(Workbench(FakeGPU(), 16), plan(), -1.0, silent)
    assert "A/A: there was no trial" in missed(document)
    assert "reduce_v7, 1% slower: there was no trial" in missed(document)


def test_every_trial_draws_an_order_of_its_own() -> None:
    """Else whatever an order costs would be the same in all of them, and never average out."""
    gpu = FakeGPU(noise=0)
    rule = Rule(budget=Budget(pairs=16, first=16))
    versus = Versus("x", FakeWorkload("new", 2e-4), FakeWorkload("old", 1e-4))
    Proving(Workbench(gpu), rule, 60.0).trials([versus], 5)
    timed = [line for line in gpu.log if line.startswith("time")]
    length = len(timed) // 5
    orders = {tuple(timed[start : start + length]) for start in range(0, len(timed), length)}
    assert len(orders) == 5


class Rehearsal(EmulatedDevice):
    """The emulated device with a clock: bytes at 4 TB/s, and what a planted wait does not hide."""

    hidden = 400  # cycles
    clock = "cupti"
    peak_bandwidth = 4.8e12

    def __init__(self) -> None:
        super().__init__()
        self._noise = np.random.default_rng(0)

    def launch(self, kernel: Kernel, grid: int, block: int, *arguments: Any, **more: Any) -> None:
        """Run a kernel that waits as the rung it is made of: the emulated device has no clock.

        What it calls a fault, a GPU shows as a wrong result or a changed guard byte.
        """
        if "-wait-" in kernel.source:
            kernel = Kernel("reduce_ladder", kernel.name, kernel.defines)
        try:
            super().launch(kernel, grid, block, *arguments, **more)
        except Fault as error:
            raise AssertionError(str(error)) from error

    def copy(self, source: Any, target: Any, size: int) -> Any:
        """Return a copy that is made when it is called."""

        def run() -> None:
            target.values[:] = source.values

        return run

    def attribute(self, number: int) -> int:
        return {13: 1_980_000}[number]

    def copy_bandwidth(self) -> float:
        return 4e12

    def seconds(self, launch: Launch) -> float:
        cycles = 0
        if isinstance(launch.kernel, Routine):
            launch.kernel.call()
        elif "-wait-" in launch.kernel.source:
            cycles = max(0, int(launch.kernel.source.rpartition("-")[2]) - self.hidden)
        seconds = 60e-6 + launch.bytes / 4e12 + cycles / 1.98e9
        return seconds * float(self._noise.normal(1, 0.002))


@pytest.fixture
def rehearsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real workloads and plants, made small."""
    small = Reduction("reduce_v7", SMALL)
    subjects = {
        "reduce_v5": Reduction("reduce_v5", SMALL),
        "reduce_v7": small,
        "update_aos": Update("aos", 256),
        "update_soa": Update("soa", 256),
        "card_copy": CardCopy(SMALL),
    }
    monkeypatch.setattr(session, "SUBJECTS", subjects)
    monkeypatch.setattr(session, "V7", small)
    monkeypatch.setattr(session, "SMALL", SMALL)
    monkeypatch.setattr(
        session, "planted", lambda plant, folder, n=SMALL: planted(plant, folder, n)
    )


@pytest.mark.usefixtures("rehearsed")
@pytest.mark.parametrize("slowdown", [0.01, 0.05])
def test_a_planted_slowdown_is_one_of_time(tmp_path: Path, slowdown: float) -> None:
    """A third of the 1 % would hide, were the wait not corrected by what it costs."""
    gpu = Rehearsal()
    proving = Proving(Workbench(gpu), RULE, 60.0)
    kernel, measured = session.plan(tmp_path, 1, 1).slowed(proving, slowdown)
    slow, quick = kernel.prepare(gpu), session.V7.prepare(gpu)
    assert measured == pytest.approx(slowdown, abs=4e-4)
    took = np.median([gpu.seconds(slow) for _ in range(4000)])
    assert took / np.median([gpu.seconds(quick) for _ in range(4000)]) == pytest.approx(
        1 + slowdown, abs=4e-4
    )


@pytest.mark.usefixtures("rehearsed")
def test_the_program_as_it_runs_on_a_gpu(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Through the command line."""
    monkeypatch.setattr(program, "_gpu", Rehearsal)
    path = tmp_path / "gpu" / "selftest.json"
    options = ["--trials", "5", "--sabotage-trials", "2", "--output", str(path)]
    code = program.main([*options, "--repeat", f"{PYTHON} -c 'raise SystemExit(0)'", "2"])
    document = json.loads(path.read_text())
    assert document["aa"] == {"trials": 5} | NO_ALARM
    assert [row["flagged"] for row in document["sabotage"]] == [2, 2, 2]
    assert document["repeat_runs"] == [0, 0]
    assert all(document["wrong_kernels"].values())
    assert code == 0, capsys.readouterr().out


@pytest.mark.parametrize("options", [[], ["--repeat", "python -m harness.gate.night", "5"]])
def test_without_a_gpu_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    """Exit code 2: nothing was tested, and nothing repeated."""

    def none() -> None:
        raise NoGPU("no NVIDIA driver is loaded")

    monkeypatch.setattr(program, "_gpu", none)
    monkeypatch.setattr(program, "visible_gpus", list)
    monkeypatch.setattr(program, "exit_codes", lambda *_: pytest.fail("repeated"))
    assert program.main(options) == 2
    assert capsys.readouterr().err == "no NVIDIA driver is loaded\n"


def test_repeats_alone_keep_what_is_stored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """And a run that fails is a target missed."""
    path = tmp_path / "selftest.json"
    path.write_text(json.dumps(result(FakeGPU())))
    monkeypatch.setattr(program, "_gpu", FakeGPU)
    command = f"{PYTHON} -c 'raise SystemExit(3)'"
    code = program.main(["--only-repeat", "--repeat", command, "2", "--output", str(path)])
    assert code == 1
    assert json.loads(path.read_text())["repeat_runs"] == [3, 3]
    assert json.loads(path.read_text())["aa"]["trials"] == 6


def test_python_is_the_one_that_runs_this() -> None:
    """That of the PATH may lack pytest; a path of one's own is left alone."""
    seen: list[list[str]] = []
    for command in ("python -m x", "/usr/bin/python -m x"):
        exit_codes(command, 1, lambda words: len(seen.append(words) or []))  # type: ignore[func-returns-value]
    assert [words[0] for words in seen] == [sys.executable, "/usr/bin/python"]


def test_a_command_is_read_without_a_shell() -> None:
    """Quotes hold together, and nothing else happens to it."""
    seen: list[list[str]] = []
    assert exit_codes("a 'b c' $HOME", 2, lambda words: len(seen.append(words) or [])) == [0, 0]  # type: ignore[func-returns-value]
    assert seen == [["a", "b c", "$HOME"]] * 2
    with pytest.raises(ValueError, match="no command to repeat"):
        exit_codes(" ", 5)


def test_the_budget_is_within_two_seconds_of_gpu_time() -> None:
    """512 blocks of two runs of each, 64 us a run."""
    assert BUDGET.pairs * 4 * 64e-6 < BUDGET.seconds
