"""What a ratio is refused for, left undecided for, or noted for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.baselines import Baseline
from harness.claims import Claim, Verdict, statement
from harness.ratios import Measured, Recorded
from harness.tests.fakes import around, document
from harness.tests.test_claims import FAST, SLOW, baseline, claim, measured


@pytest.mark.parametrize(
    ("bound", "message"),
    [
        ({"at_least": -30}, "is bounded by -30; a ratio of times is positive"),
        ({"at_most": 0}, "is bounded by 0;"),
        ({"at_least": float("nan")}, "is bounded by nan"),
        ({"at_most": float("inf")}, "is bounded by inf"),
        ({"at_least": "2"}, "is bounded by '2'"),
        ({"at_least": 2, "at_most": 1}, "at_least=2 above at_most=1; exchange them"),
    ],
)
def test_a_bound_that_makes_no_test_is_refused(bound: Any, message: str) -> None:
    """Before anything is measured."""
    ratios = measured()
    with pytest.raises(ValueError, match=f"reduce.v3-over-v2: V2 / V3 .*{message}"):
        claim(ratios).timed("V2 / V3", SLOW, FAST, **bound)
    assert ratios.pairs == {}


@pytest.mark.parametrize("ratios", [measured(), Recorded(None)], ids=["live", "recorded"])
def test_two_comparisons_of_one_name_are_refused(ratios: Measured | Recorded) -> None:
    """Also of two parameters of one test: the second would replace the first in the baseline."""
    claim(ratios).timed("a / b", SLOW, FAST, at_least=1.3)
    with pytest.raises(ValueError, match=r"reduce\.v3-over-v2 compares 'a / b' twice"):
        claim(ratios).cause("a / b", FAST, SLOW, at_most=1)


SOUND = [[1.5e-4, 1e-4]] * 20


@pytest.mark.parametrize(
    ("changed", "wrong"),
    [
        ({"seconds": [*SOUND, [1e-4]]}, "pair 20 is [0.0001]"),
        ({"seconds": [*SOUND, [1e-4] * 3]}, "pair 20 is"),
        ({"seconds": ["ab"]}, "pair 0 is 'ab'"),
        ({"seconds": [None]}, "pair 0 is None"),
        ({"seconds": [[-1e-4, 1e-4]]}, "pair 0 is [-0.0001, 0.0001]"),
        ({"seconds": [[0, 1e-4]]}, "pair 0 is [0, 0.0001]"),
        (
            {"seconds": [[1e9, 1e-4]]},
            "pair 0 is [1000000000.0, 0.0001], not two times of 1e-09 to 1000 s",
        ),
        ({"seconds": [[1e300, 1e-300]]}, "pair 0 is"),
        ({"seconds": [[10**400, 1e-4]]}, "pair 0 is [1000"),
        ({"seconds": [[True, 1e-4]]}, "pair 0 is [True"),
        ({"seconds": None}, "'seconds' is None"),
        ({"numerator": 5, "seconds": SOUND}, "'numerator' is 5"),
        ({"dropped samples": 3, "seconds": SOUND}, "'dropped samples' is 3"),
        ({}, "'seconds' is missing"),
    ],
)
def test_a_damaged_recording_leaves_the_claim_undecided(
    changed: dict[str, Any], wrong: str
) -> None:
    """The note names file, claim, ratio and pair; nothing broke that was ever measured."""
    recorder = claim(Recorded(baseline(**changed)))
    recorder.timed("V2 / V3", SLOW, FAST, at_least=1.3)
    assert recorder.verdict is Verdict.UNDECIDED
    where = "0001_recorded.json: the pairs of reduce.v3-over-v2, V2 / V3 are damaged"
    assert f"{where} ({wrong}" in recorder.notes[0]


def test_what_another_claim_recorded_of_the_same_workloads_is_the_same_ratio() -> None:
    """A claim that is newer than the recording need not wait for the next; names say what ran."""
    recording = baseline(seconds=SOUND)
    for numerator, denominator, verdict in (
        (SLOW, FAST, Verdict.HOLDS),
        (FAST, SLOW, Verdict.UNDECIDED),
    ):
        other = Claim(statement("little.new", "says"), lambda: Recorded(recording), "host")
        other.timed("slow over fast", numerator, denominator, at_least=1.3)
        assert other.verdict is verdict
    damaged = Claim(statement("a.b", "says"), lambda: Recorded(baseline(seconds=[5])), "host")
    damaged.timed("slow over fast", SLOW, FAST, at_least=1.3)
    assert "the pairs of reduce.v3-over-v2, V2 / V3 are damaged" in damaged.notes[0]


def test_pairs_that_depend_on_each_other_are_noted() -> None:
    """A slow drift: the exact interval is of independent pairs."""
    drift = [[1.5e-4 + number * 1e-8, 1e-4] for number in range(20)]
    recorder = claim(Recorded(baseline(seconds=drift)))
    recorder.timed("V2 / V3", SLOW, FAST, at_least=1.3)
    assert recorder.notes == [
        "V2 / V3: neighbouring pairs are alike (rank correlation 1.00), "
        "so the interval is narrower than 99 % needs"
    ]


def test_samples_that_were_dropped_when_it_was_recorded_are_noted() -> None:
    """The recording is as good, and says the same as the run that made it."""
    recorder = claim(Recorded(baseline(seconds=SOUND, **{"dropped samples": ["zero", "NaN"]})))
    recorder.timed("V2 / V3", SLOW, FAST, at_least=1.3)
    assert recorder.verdict is Verdict.HOLDS
    assert recorder.notes == ["V2 / V3: 2 impossible samples were dropped and taken again (zero)"]


@pytest.mark.parametrize("pairs", [around(1.5, 128), SOUND, SOUND[:1]])
def test_independent_pairs_and_equal_ones_are_not(pairs: Any) -> None:
    """Nothing varies, or nothing follows from it."""
    recorder = claim(Recorded(baseline(seconds=[list(pair) for pair in pairs])))
    recorder.timed("V2 / V3", SLOW, FAST, at_least=1.3)
    assert recorder.notes == []


def test_a_claim_knows_what_its_judged_gpu_is_compiled_for() -> None:
    """Of live times the GPU's, of recorded ones the recording's, whatever is emulated."""
    recording = Baseline(Path("0001.json"), document(device={"architecture": "sm_100"}))
    assert claim(measured()).architecture == "sm_90"
    assert claim(Recorded(recording)).architecture == "sm_100"
    assert claim(Recorded(None)).architecture is None
