"""Every public case of wrong timing (T) and of baselines and CI (B) is accounted for.

It is tried on synthetic nights, or names the test that tries it, or says why it cannot occur.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Final

import pytest

from harness.gate.compare import Exit, compare
from harness.gate.noise import UNKNOWN, Noise
from harness.gate.tests.cases import CASES, Case
from harness.gate.tests.nights import NAMES, all_by, night, only, promoted, samples
from harness.gate.verdicts import Status
from harness.report.night import headlines

ROOT: Final = Path(__file__).parents[3]
# One public report of each case: owner/repository#thread on GitHub.
PUBLIC: Final = {
    "B01": "ionelmc/pytest-benchmark#276",
    "B03": "synaptent/aragora#7847",
    "B05": "scipy/scipy#4592",
    "B07": "sipyourdrink-ltd/bernstein#5919",
    "B09": "Nano-Collective/nanotune#163",
    "B11": "ionelmc/pytest-benchmark#205",
    "B13": "ionelmc/pytest-benchmark#255",
    "B15": "mypyc/mypyc-benchmark-results#4",
    "B17": "ionelmc/pytest-benchmark#167",
    "B19": "conbench/conbench#608",
    "B21": "raullenchai/Rapid-MLX#1557",
    "B23": "synaptent/aragora#394",
    "B25": "namecheap/fast_mail_parser#128",
    "B27": "SauersML/gam#2422",
    "B29": "pytorch/FBGEMM#5932",
    "B31": "samuelcolvin/pytest-speed#5",
    "T01": "TristanBilot/mlx-benchmark#21",
    "T03": "cupy/cupy#7185",
    "T05": "cupy/cupy#5678",
    "T07": "Genesis-Embodied-AI/genesis-world#2722",
    "T09": "NVIDIA/TileGym#118",
    "T11": "uxlfoundation/oneDNN#4529",
    "T13": "NVIDIA/nvbench#206",
    "T15": "NVIDIA/nvbench#207",
    "T17": "baidu-research/DeepBench#104",
    "T19": "NVIDIA/nvbench#184",
    "T21": "ROCm/rocm-libraries#6379",
    "T23": "pytorch/pytorch#172523",
    "T25": "microsoft/WSL#6425",
    "T27": "yetanotherco/lambda_vm#754",
    "T29": "ORNL/HeCBench#326",
    "T31": "tonyd2wild/DeepSeek-V4.1-Flash-vLLM-DGX-Spark#1",
}

GREEN, RED, NO_VERDICT = Exit.GREEN, Exit.RED, Exit.NO_VERDICT
GPU: Final = "harness/devices/tests/test_gpu.py"
CLOCKS: Final = "harness/devices/tests/test_clocks.py"
BASELINES: Final = "harness/tests/test_baselines.py"
ELSEWHERE: Final = {
    "B07": f"{BASELINES}::test_a_truncated_baseline_is_named_kept_and_skipped",
    "B11": f"{BASELINES}::test_the_newest_is_the_last_by_name_that_holds_anything",
    "B17": "harness/gate/tests/test_command.py::test_what_cannot_be_used_is_exit_2",
    "B19": "harness/gate/tests/test_creep.py::test_creep_is_caught_on_the_second_night",
    "B27": "harness/tests/test_run.py::test_a_required_gpu_that_is_absent_is_a_usage_error",
    "B29": "harness/tests/test_run_claims.py::test_ci_does_not_fix_the_inputs",
    "T01": f"{GPU}::test_the_clock_shows_the_time_a_kernel_is_known_to_take",
    "T03": f"{CLOCKS}::test_events_give_seconds_of_their_milliseconds",
    "T05": f"{GPU}::test_the_clock_shows_the_time_a_kernel_is_known_to_take",
    "T07": "harness/tests/test_workbench.py::test_rounds_are_counted_after_a_warm_up",
    "T19": f"{CLOCKS}::test_a_host_that_is_always_too_slow_is_an_error_not_a_number",
    "T23": "harness/tests/test_datasheet.py::test_what_is_derived_is_what_is_published",
}
CANNOT_OCCUR: Final = {
    "T17": "workloads draw their inputs from a seeded generator; there is no option for zeros",
    "T29": "arrays are plain device memory, copied before the first launch; none is managed",
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.id}-{case.what}")
def test_a_public_case_gets_the_right_verdict(case: Case) -> None:
    """The status and reason of the first benchmark, and the exit code of the night."""
    found = compare(case.before, case.now)
    row = next(row for row in found.rows if row.name == NAMES[0])
    assert (row.status, found.exit) == (case.status, case.exit), row.why
    assert case.why in row.why


def test_every_public_case_is_accounted_for() -> None:
    """Tried here, tried by a test that exists, or impossible for a stated reason."""
    here = {case.id for case in CASES} - {"own"}
    assert sorted(here | ELSEWHERE.keys() | CANNOT_OCCUR.keys()) == sorted(PUBLIC)
    for test in ELSEWHERE.values():
        file, _, name = test.partition("::")
        assert f"def {name}(" in (ROOT / file).read_text("utf-8"), test


def test_the_others_are_judged_as_ever() -> None:
    """One throttled, renamed or slower benchmark hides nothing of its neighbours."""
    found = compare(promoted(), only([0.0] * 20))
    assert {row.status for row in found.rows[1:]} == {Status.SAME}
    assert found.exit is GREEN


def test_a_rename_is_missing_and_new() -> None:
    """Red until it is promoted: a benchmark must not leave silently."""
    times = {name: samples(seed=seed) for seed, name in enumerate([*NAMES[1:], "new"])}
    found = compare(night(), night(times))
    assert [row.name for row in found.of(Status.MISSING)] == NAMES[:1]
    assert [row.name for row in found.of(Status.NEW)] == ["new"]
    assert found.exit is RED


def test_what_differs_harmlessly_is_noted() -> None:
    """A driver or a minor version may explain a change; it does not forbid the comparison."""
    found = compare(night(), night(driver="590.2", nvrtc="13.5"))
    assert found.notes == ["driver 580.1 -> 590.2", "NVRTC 13.2 -> 13.5"]
    assert found.exit is GREEN


def test_a_broken_claim_and_a_missing_one_fail_the_night() -> None:
    """Also where there is no baseline, or nothing compares."""
    broken = night(claims={"reduce.v3": "broken"})
    assert compare(night(), broken).broken == ["reduce.v3"]
    for before in (night(), None, night(gpu="NVIDIA B200")):
        assert compare(before, broken).exit is RED
    gone = compare(night(claims={"reduce.v3": "holds", "reduce.v4": "holds"}), night())
    assert (gone.missing_claims, gone.exit) == (["reduce.v4"], RED)
    refuted = compare(night(), night(claims={"reduce.v3": "refuted"}))
    assert refuted.exit is GREEN


def test_a_night_that_asked_for_times_alone_owes_no_claims() -> None:
    """It says so; benchmarks are owed as ever, and a broken claim stays broken."""
    both = night(claims={"reduce.v3": "holds", "reduce.v4": "holds"})
    times = {"no claims": "--benchmark-only"}
    found = compare(both, night() | times)
    assert (found.missing_claims, found.exit) == ([], GREEN)
    assert found.notes == ["claims of the baseline that --benchmark-only left out: 1"]
    assert compare(both, night({}) | times).exit is RED
    assert compare(both, night(claims={"reduce.v3": "broken"}) | times).exit is RED
    assert compare(night(), night() | times).notes == []


def test_a_night_that_compares_too_little_has_no_verdict() -> None:
    """All samples of five of eight benchmarks throttled is no pass."""
    times = {name: samples(1.2e-4) for name in NAMES[:5]} | {name: samples() for name in NAMES[5:]}
    facts = {
        name: {"throttle_reasons": ["hardware slowdown"], "sm_clock_mhz": 1600}
        for name in NAMES[:5]
    }
    found = compare(night(), night(times, facts))
    assert [row.status for row in found.rows] == [Status.NOT_COMPARABLE] * 5 + [Status.SAME] * 3
    assert found.exit is NO_VERDICT


@pytest.mark.parametrize(("apart", "told"), [(0, []), (1, []), (2, ["not comparable: 2 of 10"])])
def test_many_benchmarks_that_do_not_compare_are_noted(apart: int, told: list[str]) -> None:
    """More than a tenth: the night is green all the same."""
    names = [f"t.py::t[{number}]" for number in range(10)]
    times = {name: samples() for name in names}
    found = compare(night(times), night(times | {name: [0.0] * 20 for name in names[:apart]}))
    assert (found.notes, found.exit) == (told, GREEN)


def test_a_disturbed_benchmark_has_no_time_of_tonight() -> None:
    """Its baseline's alone: nothing was held against it."""
    disturbed = night({name: samples() for name in NAMES[1:]})
    row = compare(night(), disturbed | {"not comparable": {NAMES[0]: "shared"}}).rows[0]
    assert (row.before, row.now, row.ratio) == (median(samples(seed=0)), None, None)


def test_claims_that_a_night_leaves_undecided_are_noted() -> None:
    """It timed them on a GPU, so they should have been decided."""
    claims = {"reduce.v3": "undecided", "reduce.v4": "undecided", "reduce.v5": "holds"}
    found = compare(night(claims=claims), night(claims=claims))
    assert (found.notes, found.exit) == (["claims left undecided: 2, such as reduce.v3"], GREEN)


def test_what_is_new_is_no_part_of_what_must_compare() -> None:
    """Half of the baseline's benchmarks is enough, however many others there are."""
    times = {name: samples() for name in NAMES}
    half = {name: [0.0] * 20 for name in NAMES[:4]}
    new = {f"new{number}": samples() for number in range(20)}
    assert compare(night(times), night(times | half | new)).exit is GREEN
    less = {name: [0.0] * 20 for name in NAMES[:5]}
    found = compare(night(times), night(times | less | new))
    assert found.exit is NO_VERDICT
    assert headlines(found)[0] == "3 of 8 benchmarks could be compared: fewer than half"


def test_what_the_baselines_runs_say_is_no_matter_of_tonights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The noise of all benchmarks is that of the baseline's runs."""
    seen: list[list[tuple[float, ...]]] = []

    def usual(runs: Iterable[tuple[float, ...]]) -> Noise:
        seen.append(list(runs))
        return UNKNOWN

    monkeypatch.setattr("harness.gate.compare.usual", usual)
    compare(promoted(), night())
    assert [len(runs) for runs in seen[0]] == [5] * len(NAMES)


def test_the_claims_of_a_recording_are_those_with_verdicts_or_else_with_pairs() -> None:
    """An older recording has pairs alone."""
    old = night() | {"claims": {}, "pairs": {"reduce.v4": {}}}
    assert compare(old, night()).missing_claims == ["reduce.v4"]
    both = night() | {"pairs": {"reduce.v4": {}}}
    assert compare(both, night()).missing_claims == []


def test_a_machine_that_became_faster_is_no_speed_up() -> None:
    """Nothing is said to promote."""
    found = compare(night(), all_by(1 / 1.14, **{"copy GB/s": 4327.4 * 1.14}))
    assert not found.of(Status.FASTER)
    assert found.exit is NO_VERDICT
    assert "faster together; look at the machine" in found.environment


def test_a_baseline_of_few_runs_is_noted() -> None:
    """The verdicts are the same."""
    found = compare(promoted(count=4), night())
    assert [note.partition(";")[0] for note in found.notes] == ["limits of fewer than 5 runs: 8"]
    assert compare(promoted(), night()).notes == []
