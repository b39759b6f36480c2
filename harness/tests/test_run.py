"""Whole runs with the real conftest: with and without GPU, baseline and plugins."""

from __future__ import annotations

import json

import pytest

from harness.baselines import PUBLISHED
from harness.devices import opening
from harness.pytest_benchmarks import ROUNDS
from harness.tests.fakes import MEGABYTE, FakeGPU
from harness.tests.rehearsal import BROKEN, LADDER, Run, recording
from kernels import CompilerMissing

pytest_plugins = ["pytester"]


def test_without_a_gpu_the_recording_is_judged_and_labelled(run: Run) -> None:
    """Ratios from the newest baseline; the skipped rungs are one line, which says where to look."""
    run.store(recording())
    run.write(ladder=LADDER)
    result = run.on(None)
    assert result.ret == 0
    text = result.stdout.str()
    assert "it counts, and has no clock (no driver here)" in text
    assert "baseline: nvidia-h200/0001_a.json" in text
    assert "has no clock; what was recorded stands in baselines/nvidia-h200/0001_a.json" in text
    assert text.count("SKIPPED [") == text.count("SKIPPED [2]") == 1
    claim = run.claims()["reduce.v3-over-v2"]
    assert claim["verdict"] == "holds"
    assert [each["kind"] for each in claim["evidence"]] == ["counted", "recorded"]
    assert claim["evidence"][1]["device"] == "NVIDIA H200, 2026-12-01"


def test_with_no_recording_either_the_claim_is_undecided(run: Run) -> None:
    """The header says how to record; nothing is created in baselines/."""
    result = run.on(None)
    assert result.ret == 0
    assert "none with pairs; record one on a GPU: `tox -e record`" in result.stdout.str()
    assert "V2 / V3: not measured (no recording), needs >= 1.3" in result.stdout.str()
    assert run.claims()["reduce.v3-over-v2"]["verdict"] == "undecided"
    assert not (run.pytester.path / "baselines").exists()


def test_a_gpu_without_a_baseline_measures_and_records(run: Run) -> None:
    """Live evidence; the JSON has samples bit for bit, pairs and facts, and can be promoted."""
    run.write(ladder=LADDER)
    result = run.on(FakeGPU(noise=0), "--benchmark-json=build/baseline.json")
    assert result.ret == 0
    assert "none for NVIDIA H200; record one on a GPU" in result.stdout.str()
    assert [each["kind"] for each in run.claims()["reduce.v3-over-v2"]["evidence"]] == [
        "counted",
        "timed",
    ]
    recorded = json.loads((run.pytester.path / "build" / "baseline.json").read_text())
    assert recorded["machine_info"] == {"gpu": "NVIDIA H200"}
    assert recorded["device"]["clock"] == "cupti"
    assert len(recorded["pairs"]["reduce.v3-over-v2"]["V2 / V3"]["seconds"]) == 8
    bench = recorded["benchmarks"][0]
    assert bench["stats"]["data"] == [1e-4] * ROUNDS
    assert bench["options"]["timer"] == "device_clock"
    facts = {"kernel": "reduce_v1", "GB/s": 10.0, "percent of peak": 0.2, "clock": "cupti"}
    assert facts.items() <= bench["extra_info"].items()
    assert not (run.pytester.path / "baselines").exists()


def test_a_stored_bandwidth_is_that_of_the_median_beside_it(run: Run) -> None:
    """Twenty samples have no middle one: theirs is the mean of two."""
    run.write(ladder=LADDER)
    assert run.on(FakeGPU(noise=0.2), "--benchmark-json=build/baseline.json").ret == 0
    recorded = json.loads((run.pytester.path / "build" / "baseline.json").read_text())
    for bench in recorded["benchmarks"]:
        rate = MEGABYTE / bench["stats"]["median"] / 1e9
        assert bench["extra_info"]["GB/s"] == round(rate, 1)


def test_the_page_shows_the_recording_that_the_run_is_judged_from(run: Run) -> None:
    """On a GPU its own, which is not what was measured just now."""
    run.store(recording())
    for gpu in (None, FakeGPU(), FakeGPU("NVIDIA B200")):
        run.on(gpu)
        page = (run.pytester.path / "build" / "report.html").read_text("utf-8")
        assert page.count("NVIDIA H200, recorded 2026-12-01") == (gpu is None or "H" in gpu.name)


@pytest.mark.parametrize("options", [(), ("-W", "error")], ids=["plain", "warnings-are-errors"])
def test_a_gpu_with_a_baseline_compares(run: Run, options: tuple[str, ...]) -> None:
    """Bare --benchmark-compare finds this GPU's folder."""
    run.store(recording())
    run.write(ladder=LADDER)
    result = run.on(FakeGPU(), "--benchmark-compare", "--benchmark-json=out/x.json", *options)
    assert result.ret == 0
    assert (run.pytester.path / "out" / "x.json").exists()
    assert "baseline: nvidia-h200/0001_a.json" in result.stdout.str()
    assert "test_the_ladder_is_timed[reduce_v1] (0001_a)" in result.stdout.str()
    assert "test_the_ladder_is_timed[reduce_v1] (NOW)" in result.stdout.str()


def test_comparing_before_anything_is_recorded_is_no_error(
    run: Run, recwarn: pytest.WarningsRecorder
) -> None:
    """The first night on a new card: a remark of pytest-benchmark, exit 0."""
    run.write(ladder=LADDER)
    assert run.on(FakeGPU(), "--benchmark-compare").ret == 0
    assert "Can't compare. No benchmark files" in str(recwarn.pop().message)


def test_another_gpu_is_not_compared(run: Run) -> None:
    """A clean usage error that says what to do."""
    run.store(recording())
    run.write(ladder=LADDER)
    path = "--benchmark-compare=baselines/nvidia-h200/0001_a.json"
    result = run.on(FakeGPU("NVIDIA B200"), path)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "the baseline is of NVIDIA H200, this is NVIDIA B200" in result.stderr.str()
    assert "`tox -e record` (baselines/nvidia-b200/)" in result.stderr.str()


@pytest.mark.parametrize("gpu", [FakeGPU(), None], ids=["gpu", "no-gpu"])
def test_the_published_table_can_be_looked_at_on_any_gpu(run: Run, gpu: FakeGPU | None) -> None:
    """It was measured on a card that nobody here has."""
    run.write(ladder=LADDER)
    # the real suite may be imported in this very process, so its name is taken
    run.store(json.loads(PUBLISHED.read_text().replace("test_reduce_ladder.py", "test_ladder.py")))
    result = run.on(gpu, "--benchmark-compare=baselines/nvidia-h200/0001_a.json")
    assert result.ret == 0
    assert not gpu or "nvidia-h200/0001_a)" in result.stdout.str()
    nothing = "--benchmark-compare: there is no GPU: nothing is timed, so nothing is compared"
    assert (nothing in result.stdout.str()) is (gpu is None)


def test_without_the_benchmark_plugin_claims_are_still_timed(run: Run) -> None:
    """Only the rungs need it."""
    run.write(ladder=LADDER)
    result = run.on(FakeGPU(), "-p", "no:benchmark")
    result.assert_outcomes(passed=1, skipped=2)
    assert "pytest-benchmark is off" in result.stdout.str()
    assert run.claims()["reduce.v3-over-v2"]["evidence"][1]["kind"] == "timed"


def test_with_benchmarks_disabled_nothing_is_timed(run: Run) -> None:
    """Recorded pairs of this GPU stand in, and the rungs say what is recorded."""
    run.store(recording())
    run.write(ladder=LADDER)
    gpu = FakeGPU()
    result = run.on(gpu, "--benchmark-disable")
    result.assert_outcomes(passed=1, skipped=2)
    assert "nothing is timed in this run; what was recorded stands in" in result.stdout.str()
    assert run.claims()["reduce.v3-over-v2"]["evidence"][1]["kind"] == "recorded"
    assert gpu.log == []


def test_only_benchmarks(run: Run) -> None:
    """No claim was asked for, so none is reported."""
    run.write(ladder=LADDER)
    run.on(FakeGPU(), "--benchmark-only").assert_outcomes(passed=2, skipped=1)
    assert not (run.pytester.path / "build" / "claims.json").exists()


def test_no_benchmarks(run: Run) -> None:
    """Claims time themselves."""
    run.write(ladder=LADDER)
    run.on(FakeGPU(), "--benchmark-skip").assert_outcomes(passed=1, skipped=2)
    assert run.claims()["reduce.v3-over-v2"]["evidence"][1]["kind"] == "timed"


def test_in_parallel_nothing_is_timed_and_every_claim_comes_home(run: Run) -> None:
    """Workers share one GPU: times would be of both."""
    run.store(recording())
    run.write(ladder=LADDER, broken=BROKEN)
    plugin = """
        from harness.devices import opening
        from harness.tests.fakes import FakeGPU
        opening.open_device = lambda wanted: FakeGPU()
    """
    run.pytester.makepyfile(fake_gpu=plugin)
    options = ("-p", "fake_gpu", "-p", "no:cacheprovider", "-n", "2")
    result = run.pytester.runpytest_subprocess(*options)
    result.assert_outcomes(passed=1, failed=1, skipped=2)
    claims = run.claims()
    assert list(claims) == ["reduce.wrong", "reduce.v3-over-v2"]
    assert claims["reduce.v3-over-v2"]["evidence"][1]["kind"] == "recorded"
    assert "1 holds  0 refuted  0 undecided  1 broken" in result.stdout.str()


def test_a_required_gpu_that_is_absent_is_a_usage_error(run: Run) -> None:
    """Never a wall of skips at night; collecting needs none."""
    result = run.on(None, "--gpu=require")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "no driver here" in result.stderr.str()
    assert run.on(None, "--gpu=require", "--collect-only").ret == 0


def test_a_missing_compiler_is_a_usage_error(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """With or without the header; one message, not one error a test."""

    def refuse(wanted: str) -> None:
        raise CompilerMissing("install the compiler")

    monkeypatch.setattr(opening, "open_device", refuse)
    for options in (("-q",), (), ("--gpu=emulate",)):
        result = run.pytester.runpytest_inprocess(*options)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert "ERROR: install the compiler" in result.stderr.str()


def test_collecting_opens_no_device(
    run: Run, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    """Nor do --help and --markers."""

    def refuse(wanted: str) -> None:
        raise AssertionError("opened")

    monkeypatch.setattr(opening, "open_device", refuse)
    for options in (("--collect-only", "--benchmark-compare"), ("--help",), ("--markers",)):
        assert run.pytester.runpytest_inprocess(*options).ret == 0


def test_a_spoilt_baseline_is_named_and_the_one_before_it_used(run: Run) -> None:
    """In the header, and again under the table."""
    run.store(recording())
    (run.pytester.path / "baselines" / "nvidia-h200" / "0002_b.json").write_text('{"bench')
    result = run.on(None)
    assert result.ret == 0
    assert result.stdout.str().count("0002_b.json cannot be read") == 2
    assert run.claims()["reduce.v3-over-v2"]["verdict"] == "holds"


def test_the_recording_of_another_gpu_can_be_chosen(run: Run) -> None:
    """By its folder; an unknown one is a usage error."""
    run.store(recording())
    other = recording(ratio=1.1) | {"machine_info": {"gpu": "NVIDIA B200"}, "datetime": "2020"}
    run.store(other, "nvidia-b200/0001_a.json")
    assert run.on(None).ret == 0
    assert run.on(None, "--baseline-gpu=nvidia-b200").ret == 1
    result = run.on(None, "--baseline-gpu=nope")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "no baseline with pairs for 'nope'" in result.stderr.str()


def test_a_comparison_without_a_gpu_says_that_it_compares_nothing(
    run: Run, recwarn: pytest.WarningsRecorder
) -> None:
    """Exit 0 and no table would look like a comparison that found nothing."""
    run.store(recording())
    run.write(ladder=LADDER)
    result = run.on(None, "--benchmark-compare")
    assert result.ret == 0
    assert "no GPU: nothing is timed, so nothing is compared" in result.stdout.str()
