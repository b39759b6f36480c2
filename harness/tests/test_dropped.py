"""A single impossible sample is dropped and taken again, and told; a habit of them is an error."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest

from harness.claims import Claim, Verdict, statement
from harness.devices import Launch
from harness.ratios import Measured
from harness.tests.fakes import FakeGPU, FakeWorkload
from harness.timing import WARM_UP, Budget, ImplausibleTime
from harness.watch import ATTEMPTS, NotComparable, Watch
from harness.workbench import Workbench

COPY = FakeWorkload("copy")
ROUNDS = 20
LUCKY = 0.07e-6  # a megabyte at three times the peak
CALM: dict[str, Any] = {"throttle_reasons": []}
HOT = {"throttle_reasons": ["hardware slowdown"]}


class Glitch(FakeGPU):
    """Gives the times of `wrong` for the samples of these numbers, the warm-up apart."""

    def __init__(self, wrong: Mapping[int, float], warm_up: int = WARM_UP) -> None:
        super().__init__()
        self._wrong, self._warm_up = wrong, warm_up

    @property
    def taken(self) -> int:
        """Samples so far."""
        return sum(line.startswith("time") for line in self.log) - self._warm_up

    def seconds(self, launch: Launch) -> float:
        """Return the wrong time, if this is its turn."""
        right = super().seconds(launch)
        return self._wrong.get(self.taken - 1, right)


def every(step: int) -> dict[int, float]:
    """Make every `step`-th sample a lucky one."""
    return dict.fromkeys(range(0, 100, step), LUCKY)


@pytest.mark.parametrize(
    ("wrong", "cause"),
    [
        ({7: 0.0}, "copy took 0.0 s: the clock was read before the kernel ended"),
        ({7: -1.78e-3}, "copy took -0.00178 s: the clock was read before the kernel ended"),
        ({7: math.nan}, "copy took nan s: the clock returned no time"),
        ({7: math.inf}, "copy took inf s: the clock returned no time"),
        ({7: 0.4e-6}, "copy took 0.400 us, an empty kernel takes 0.5 us or more"),
        ({7: LUCKY}, "14286 GB/s, above the 4800 GB/s of the memory: the input was still in L2"),
        ({0: LUCKY}, "the input was still in L2"),
        ({19: LUCKY, 20: 0.0}, "the input was still in L2"),
        ({3: LUCKY, 12: LUCKY}, "the input was still in L2"),
        ({-1: 0.0, -2: math.nan, -3: LUCKY}, ""),
    ],
)
def test_an_impossible_sample_is_dropped_and_taken_again(
    wrong: dict[int, float], cause: str
) -> None:
    """Twenty good ones are kept; the first reason is told; a warm-up counts for nothing."""
    gpu = Glitch(wrong)
    bench = Workbench(gpu)
    seconds = bench.rounds(COPY, ROUNDS)
    dropped = sum(number >= 0 for number in wrong)
    assert len(seconds) == ROUNDS
    assert all(0.9e-4 < each < 1.1e-4 for each in seconds)
    assert (len(bench.watch.dropped), gpu.taken) == (dropped, ROUNDS + dropped)
    assert cause in "".join(bench.watch.dropped[:1])


@pytest.mark.parametrize(
    ("wrong", "taken"),
    [
        (every(1), ATTEMPTS),  # the input fits L2, or Launch.bytes is too large
        (every(2), 2 * ATTEMPTS - 1),
        (every(8), 17),
        ({0: 0.0, 5: math.nan, 21: LUCKY}, 22),  # of three kinds, the last among those taken again
    ],
    ids=["all", "half", "an-eighth", "three-kinds"],
)
def test_what_repeats_is_an_error_with_its_likely_cause(
    wrong: dict[int, float], taken: int
) -> None:
    """The third is one too many, at once."""
    gpu = Glitch(wrong)
    with pytest.raises(ImplausibleTime, match=r"copy moved .* above the 4800 GB/s .* still in L2"):
        Workbench(gpu).rounds(COPY, ROUNDS)
    assert gpu.taken == taken


def test_what_was_dropped_before_is_forgotten() -> None:
    """It is told of one measurement, the last."""
    bench = Workbench(Glitch({7: 0.0}))
    for told in (1, 0):
        bench.rounds(COPY, ROUNDS)
        assert len(bench.watch.dropped) == told


@pytest.mark.parametrize(
    ("readings", "wrong", "outcome"),
    [
        ([CALM], {3: 0.0, 9: 0.0}, 2),
        ([HOT, CALM], {3: 0.0}, 1),
        ([HOT, HOT, CALM], {}, 0),
        ([HOT, HOT, CALM], {3: 0.0}, NotComparable),
        ([HOT, CALM], {3: 0.0, 30: 0.0}, ImplausibleTime),
    ],
)
def test_disturbed_blocks_and_impossible_samples_share_one_budget(
    readings: list[dict[str, Any]], wrong: dict[int, float], outcome: Any
) -> None:
    """Two are thrown away; the third says what it was."""
    remaining, now = iter(readings), iter(range(100))
    watch = Watch(lambda: next(remaining), pause=lambda _: None, clock=lambda: next(now))
    bench = Workbench(Glitch(wrong), watch=watch)
    if isinstance(outcome, int):
        bench.rounds(COPY, ROUNDS)
        assert len(watch.dropped) == outcome
    else:
        with pytest.raises(outcome):
            bench.rounds(COPY, ROUNDS)


SLOW, FAST = FakeWorkload("slow", 1.5e-4), FakeWorkload("fast", 1e-4)


def asked(wrong: dict[int, float]) -> tuple[Measured, Claim]:
    """Return the ratios of a GPU with these samples, and a claim that asks for them."""
    ratios = Measured(Workbench(Glitch(wrong, 2 * WARM_UP)), Budget(pairs=8))
    return ratios, Claim(statement("reduce.x", "x"), lambda: ratios, "gpu")


def test_a_pair_is_taken_again_and_the_claims_row_says_so() -> None:
    """All four of its runs; what is stored is possible, and has the reason beside it."""
    ratios, claim = asked({5: math.nan})
    claim.timed("V2 / V3", SLOW, FAST, at_least=1.3)
    stored = ratios.pairs["reduce.x"]["V2 / V3"]
    assert claim.verdict is Verdict.HOLDS
    assert len(stored["seconds"]) == 8
    assert all(0.9e-4 < each < 1.6e-4 for pair in stored["seconds"] for each in pair)
    (why,) = stored["dropped samples"]
    assert claim.notes == [f"V2 / V3: 1 impossible sample was dropped and taken again ({why})"]


def test_a_ratio_of_impossible_times_is_an_error_and_never_stored() -> None:
    """Above the peak every other time."""
    ratios, claim = asked(every(2))
    with pytest.raises(ImplausibleTime, match="above the 4800 GB/s"):
        claim.timed("V2 / V3", SLOW, FAST, at_least=1.3)
    assert (ratios.pairs, claim.evidence) == ({}, [])


def test_nothing_is_told_of_good_samples() -> None:
    """The usual row is as short as ever."""
    ratios, claim = asked({})
    claim.timed("V2 / V3", SLOW, FAST, at_least=1.3)
    assert "dropped samples" not in ratios.pairs["reduce.x"]["V2 / V3"]
    assert claim.notes == []
