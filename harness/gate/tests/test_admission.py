"""What may not become part of a baseline: no times, copies of a run, disturbed runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from harness.baselines import ROOT, Baseline, BaselineError, read
from harness.baselines.merging import merged
from harness.gate.admission import refuse_copies, refuse_disturbed, refuse_untrue
from harness.gate.tests.nights import BYTES, DEVICE, NAMES, all_by, night, only, samples


def runs(*documents: dict[str, Any]) -> list[Baseline]:
    """Return recordings run1.json, run2.json ..."""
    return [Baseline(Path(f"run{at}.json"), each) for at, each in enumerate(documents, 1)]


def with_median(seconds: float) -> dict[str, Any]:
    """Return a night whose first benchmark has samples as ever, and this median."""
    document = night()
    document["benchmarks"][0]["stats"]["median"] = seconds
    return document


def twice() -> dict[str, Any]:
    """Return a night with its first benchmark once more."""
    document = night()
    document["benchmarks"].append(document["benchmarks"][0])
    return document


TOO_FAST = 0.99 * BYTES / (DEVICE["peak GB/s"] * 1e9)
TELEMETRY = {"throttle_reasons": ["hardware thermal slowdown"]}


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (only([0.0] * 20), "a sample took 0.0 s: the clock was read before the kernel ended"),
        (only([*samples(), -1e-4]), "a sample took -0.0001 s"),
        (with_median(-1.0), "a sample took -1.0 s"),
        (with_median(1e308), r"1e\+308 s is no time of 1e-09 to 1000 s"),
        (only([1e-12] * 20, bytes=None), "1e-12 s is no time"),
        (only(samples(TOO_FAST, 1e-4)), "above the 4815 GB/s of the memory"),
        (with_median(TOO_FAST), "above the 4815 GB/s of the memory"),
        (only([*samples(), TOO_FAST]), "above the 4815 GB/s of the memory"),
        (
            only(samples(), throttle_reasons=["hardware slowdown"]),
            r"the GPU throttles \(hardware slowdown\)",
        ),
        (only(samples(), telemetry=TELEMETRY), r"throttles \(hardware thermal slowdown\)"),
    ],
)
def test_a_time_that_cannot_be_true_is_refused(document: dict[str, Any], why: str) -> None:
    """With the file, the benchmark, the reason and what to do."""
    (run,) = runs(document)
    message = (
        rf"^run1\.json: benchmark .*\[a\] cannot be stored \(.*{why}.*\): record that run again$"
    )
    with pytest.raises(BaselineError, match=message):
        refuse_untrue(run)


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (twice(), "benchmark .* stands there 2 times"),
        (only(samples(), clock=["cupti"]), "'clock' of .* is"),
        (only(samples(), telemetry={"sm_clock_mhz": []}), "'sm_clock_mhz' in the telemetry"),
        (night(claims={"reduce.v3": "Broken"}), "the verdict on reduce.v3 is 'Broken'"),
    ],
)
def test_what_the_gate_would_refuse_is_no_anchor(document: dict[str, Any], why: str) -> None:
    """Every night after would end with exit code 2."""
    (run,) = runs(document)
    message = rf"^run1\.json is damaged \({why}.*\): record that run again$"
    with pytest.raises(BaselineError, match=message):
        refuse_untrue(run)


@pytest.mark.parametrize(
    "document",
    [
        night(),
        only(samples(), throttle_reasons=["software power cap"]),
        only(samples(1.02 * TOO_FAST, 1e-4)),
        night() | {"device": {}},
        *(read(path).document for path in sorted((ROOT / "nvidia-h200").glob("0*.json"))),
    ],
)
def test_what_was_recorded_undisturbed_is_let_in(document: dict[str, Any]) -> None:
    """Software caps the power of a matrix product all the time; all that is promoted passes too."""
    admitted = runs(document)
    refuse_untrue(*admitted)
    refuse_copies(admitted)
    refuse_disturbed(admitted)


OTHERS = [all_by(factor) for factor in (1.0, 1.002, 0.999, 1.001)]


def by_one(factor: float) -> dict[str, Any]:
    """Return a fifth run, whose first benchmark took so many times as long."""
    return only(samples(1e-4 * factor)) | {"datetime": "2026-12-02"}


def everything_by(factor: float, count: int = len(NAMES)) -> dict[str, Any]:
    """Return a run of some benchmarks that all took so many times as long."""
    document = all_by(factor)
    return document | {"benchmarks": document["benchmarks"][:count]}


@pytest.mark.parametrize(
    ("disturbed", "why"),
    [
        (by_one(1.5), r"test\[a\] is \+[45]\d\.\d+ % from the median of all runs$"),
        (by_one(0.8), r"test\[a\] is -[12]\d\.\d+ % from the median of all runs$"),
        (everything_by(1.5), r"its 8 benchmarks moved together, by \+[45]\d\.\d+ %$"),
        (everything_by(1.04), r"its 8 benchmarks moved together, by \+[34]\.\d+ %$"),
        (everything_by(0.95, 5), r"its 5 benchmarks moved together, by -[45]\.\d+ %$"),
        (everything_by(1.5, 3), r"test\[a\] is \+.* of all runs, and 2 more benchmarks so$"),
    ],
)
def test_a_run_that_was_disturbed_is_named(disturbed: dict[str, Any], why: str) -> None:
    """It alone, wherever it stands: with it, limits of 60 % let all slow-downs pass."""
    for place in range(len(OTHERS) + 1):
        mixed = runs(*OTHERS[:place], disturbed, *OTHERS[place:])
        with pytest.raises(BaselineError) as refused:
            refuse_disturbed(mixed)
        told, *rest = str(refused.value).splitlines()
        assert re.fullmatch(rf"run{place + 1}\.json: (.*::)?{why}", told)
        assert rest == ["a run so far from the others hides slow-downs: record it again"]


@pytest.mark.parametrize(
    "last", [by_one(1.08), everything_by(1.02), everything_by(1.09, 3), everything_by(1.0, 1)]
)
def test_what_runs_may_differ_by_is_let_in(last: dict[str, Any]) -> None:
    """Of few benchmarks nobody knows whether they moved together by chance."""
    refuse_disturbed(runs(*OTHERS, last))


def test_of_two_runs_that_lie_apart_both_are_named() -> None:
    """Which of them was disturbed, a third will tell."""
    with pytest.raises(BaselineError, match=r"(?s)run1\.json: .*\nrun2\.json: "):
        refuse_disturbed(runs(all_by(1.0), all_by(1.5)))


@pytest.mark.parametrize(("clock", "refused"), [("cupti", True), ("events", False)])
def test_a_step_of_the_clock_is_no_disturbance(clock: str, refused: bool) -> None:
    """Events of half a microsecond see 3 us and no more as 3.5 us; CUPTI counts in 32 ns."""
    short = runs(*(only(samples(each), clock=clock, bytes=1) for each in (3e-6, 3.01e-6, 3.5e-6)))
    if not refused:
        return refuse_disturbed(short)
    with pytest.raises(BaselineError, match=r"run3\.json: .*is \+1\d\.\d+ %"):
        refuse_disturbed(short)
    return None


def test_a_run_is_counted_once() -> None:
    """Five copies of it have no noise; a date or a name more makes no other run of it."""
    one, other, third = OTHERS[:3]
    copied = one | {"datetime": "2026-12-09T02:00:00+00:00"}
    for same in (
        [one, copied],
        [other, one, third, copied],
        [merged(runs(one, other, third)), other],
    ):
        with pytest.raises(BaselineError, match=r"hold the same run, .*: name each recording once"):
            refuse_copies(runs(*same))
    refuse_copies(runs(merged(runs(one, other)), third))
    refuse_copies(runs(one, everything_by(1.002)))
