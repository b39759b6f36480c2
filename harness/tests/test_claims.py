"""From numbers to verdicts: a pure function, and the messages of claims that break."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.baselines import Baseline
from harness.claims import Claim, Verdict, statement, verdict
from harness.evidence import Evidence
from harness.ratios import NOTHING_RECORDED, Measured, Recorded
from harness.tests.fakes import FakeGPU, FakeWorkload, around
from harness.workbench import Workbench

SLOW, FAST = FakeWorkload("slow", 1.5e-4), FakeWorkload("fast", 1e-4)


def counted(value: Any, bound: Any) -> Evidence:
    """Return a count."""
    return Evidence("counted", "emulated sm_90", None, "sectors", value, bound)


def timed(low: float, high: float, least: float | None, most: float | None) -> Evidence:
    """Return a live ratio."""
    return Evidence("timed", "NVIDIA H200", "cupti", "a / b", low, [least, most], (low, high))


UNMEASURED = Evidence("recorded", NOTHING_RECORDED, None, "a / b", None, (1.3, None))
HOLDS = [counted(4, 4), timed(1.4, 1.5, 1.3, None)]
STRADDLES = timed(1.2, 1.4, 1.3, None)


@pytest.mark.parametrize(
    ("evidence", "expected", "found"),
    [
        (HOLDS, Verdict.HOLDS, Verdict.HOLDS),
        (HOLDS, Verdict.REFUTED, Verdict.REFUTED),
        ([*HOLDS, counted(5, 4)], Verdict.HOLDS, Verdict.BROKEN),
        ([*HOLDS, counted(float("nan"), float("nan"))], Verdict.HOLDS, Verdict.BROKEN),
        ([*HOLDS, timed(1.0, 1.2, 1.3, None)], Verdict.HOLDS, Verdict.BROKEN),
        ([*HOLDS, timed(1.0, 1.2, None, 0.9)], Verdict.REFUTED, Verdict.BROKEN),
        ([*HOLDS, STRADDLES], Verdict.REFUTED, Verdict.UNDECIDED),
        ([*HOLDS, UNMEASURED], Verdict.HOLDS, Verdict.UNDECIDED),
        ([counted(5, 4), STRADDLES], Verdict.HOLDS, Verdict.BROKEN),
    ],
)
def test_verdicts(evidence: list[Evidence], expected: Verdict, found: Verdict) -> None:
    """Outside breaks, straddling leaves open, else what was expected."""
    assert verdict(evidence, expected) is found


def claim(ratios: Measured | Recorded, **mark: Any) -> Claim:
    """Return a recorder as a test gets it."""
    return Claim(statement("reduce.v3-over-v2", "V3 is faster", **mark), lambda: ratios, "host")


def measured(noise: float = 0.002) -> Measured:
    """Return live ratios of the fake GPU."""
    return Measured(Workbench(FakeGPU(noise=noise)))


def baseline(**pairs: Any) -> Baseline:
    """Return a recording of slow / fast under the claim used here."""
    recorded = {"numerator": "slow", "denominator": "fast", "clock": "cupti", **pairs}
    document = {
        "machine_info": {"gpu": "NVIDIA H200"},
        "datetime": "2026-12-01T02:00:00+00:00",
        "benchmarks": [],
        "pairs": {"reduce.v3-over-v2": {"V2 / V3": recorded}},
    }
    return Baseline(Path("some-gpu/0001_recorded.json"), document)


def test_live_pairs_are_judged_and_kept_for_the_baseline() -> None:
    """Means of two samples of whole nanoseconds, with names and clock."""
    ratios = measured()
    live = claim(ratios)
    live.timed("V2 / V3", SLOW, FAST, at_least=1.3)
    assert live.verdict is Verdict.HOLDS
    kept = ratios.pairs["reduce.v3-over-v2"]["V2 / V3"]
    assert (kept["numerator"], kept["denominator"], kept["clock"]) == ("slow", "fast", "cupti")
    assert kept["seconds"] == [[round(a, 10), round(b, 10)] for a, b in kept["seconds"]]
    assert len(kept["seconds"]) == 8


def test_a_broken_ratio_says_what_where_and_by_how_much() -> None:
    """1.5 is not at least 2; what comes after it is measured all the same."""
    recorder = claim(measured(noise=0))
    recorder.timed("V2 / V3", SLOW, FAST, at_least=2)
    recorder.cause("V3 / V2", FAST, SLOW, at_most=1)
    assert recorder.verdict is Verdict.BROKEN
    with pytest.raises(AssertionError) as broken:
        recorder.conclude()
    assert str(broken.value) == (
        "reduce.v3-over-v2: V2 / V3 is 1.5, 99 % interval 1.5..1.5, outside >= 2; "
        "timed on NVIDIA H200 (cupti)"
    )


def test_a_broken_count_says_what_where_and_what_it_should_be() -> None:
    """Counts are exact."""
    with pytest.raises(AssertionError) as broken:
        claim(measured()).counted("load sectors", 5, 4)
    assert str(broken.value) == "reduce.v3-over-v2: load sectors is 5, not 4, on host"


@pytest.mark.parametrize(
    ("value", "bound"),
    [
        (np.int64(4), 4),
        (np.array([2, 4, 8]), [2, 4, 8]),
        ((2, 4), [2, 4]),
        (Fraction(1, 4), 0.25),
        ({"loads": np.int32(3)}, {"loads": 3}),
    ],
)
def test_counts_of_any_type_are_compared_by_value(value: Any, bound: Any) -> None:
    """NumPy, tuples and fractions are JSON's numbers and lists in the report."""
    recorder = claim(measured())
    recorder.counted("loads", value, bound)
    assert recorder.evidence[0].as_json()["value"] == bound


def test_recorded_pairs_are_judged_by_the_same_code_and_labelled() -> None:
    """GPU and day, never shown as a measurement."""
    pairs = [list(pair) for pair in around(1.5, 20)]
    recorder = claim(Recorded(baseline(seconds=pairs)))
    recorder.cause("V2 / V3", SLOW, FAST, at_least=1.3)
    evidence = recorder.evidence[0].as_json()
    assert recorder.verdict is Verdict.HOLDS
    assert (evidence["kind"], evidence["of"]) == ("recorded", "cause")
    assert (evidence["device"], evidence["clock"]) == ("NVIDIA H200, 2026-12-01", "cupti")


def test_a_recording_breaks_a_claim_too() -> None:
    """Else a changed bound would go unnoticed without a GPU."""
    pairs = [list(pair) for pair in around(1.1, 20)]
    recorder = claim(Recorded(baseline(seconds=pairs)))
    recorder.timed("V2 / V3", SLOW, FAST, at_least=1.3)
    message = r"outside >= 1\.3; recorded on NVIDIA H200, 2026-12-01"
    with pytest.raises(AssertionError, match=message):
        recorder.conclude()


@pytest.mark.parametrize(
    ("recording", "device"),
    [
        (None, "no recording"),
        (baseline(numerator="slow n=2^22", seconds=[]), "but of slow n=2^22 / fast"),
    ],
    ids=["nothing-recorded", "definition-changed"],
)
def test_without_a_fitting_recording_the_claim_is_undecided(
    recording: Baseline | None, device: str
) -> None:
    """Old numbers are not held against new work."""
    recorder = claim(Recorded(recording))
    recorder.timed("V2 / V3", SLOW, FAST, at_least=1.3)
    assert recorder.verdict is Verdict.UNDECIDED
    assert recorder.evidence[0].value is None
    assert device in recorder.evidence[0].device


def test_the_expected_verdict_depends_on_the_gpu_that_was_timed() -> None:
    """Also if it was timed earlier and the run has none."""
    table = {"default": "holds", "nvidia-h200": "refuted"}
    assert claim(measured(), expects=table).expected is Verdict.REFUTED
    assert claim(Recorded(baseline()), expects=table).expected is Verdict.REFUTED
    assert claim(Recorded(None), expects=table).expected is Verdict.HOLDS


def test_a_ratio_needs_a_bound() -> None:
    """A check that cannot fail is none."""
    with pytest.raises(ValueError, match="V2 / V3 has no bound; give at_least, at_most or both"):
        claim(measured()).timed("V2 / V3", SLOW, FAST)


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        (
            {"id": "a.b", "says": "", "expects": {"nvidia-h20O": "refuted"}},
            "'nvidia-h20O', which no GPU .* is called: did you mean 'nvidia-h200'",
        ),
        ({"id": "V3 is faster", "says": ""}, "is not section.name in lower case"),
        (
            {"id": "a.b", "says": "", "expects": "broken"},
            "expects 'broken' on default: say 'holds'",
        ),
        ({"id": "a.b", "says": "", "expects": {"nvidia-h200": "fails"}}, "on nvidia-h200"),
    ],
)
def test_a_malformed_mark_is_refused(mark: dict[str, Any], message: str) -> None:
    """At collection, not in the night."""
    with pytest.raises(ValueError, match=message):
        statement(**mark)
