"""Throttled or shared samples are taken again, then refused with the reason; none is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness.claims import Claim, Verdict, statement
from harness.comparison import RULE
from harness.devices.telemetry import THROTTLE_REASONS, reasons
from harness.ratios import Measured
from harness.tests.fakes import FakeGPU, FakeWorkload
from harness.timing import Budget
from harness.watch import ATTEMPTS, FRESH, NotComparable, Watch, trouble
from harness.workbench import Workbench

Measure = Callable[[Workbench], object]

CALM = {"sm_clock_mhz": 1980, "throttle_reasons": [], "other_processes": [], "power_w": 140.0}
HOT = CALM | {"throttle_reasons": ["software thermal slowdown"], "temperature_c": 92}
SLOW = CALM | {"sm_clock_mhz": 1580, "throttle_reasons": ["software power cap"]}
SHARED = CALM | {"other_processes": [4242]}


def watch(*readings: dict[str, Any]) -> tuple[Watch, list[float]]:
    """Return a watch that reads these in turn, the last one for ever, and its pauses."""
    remaining, pauses, now = list(readings), list[float](), [0.0]

    def read() -> dict[str, Any]:
        return remaining.pop(0) if len(remaining) > 1 else remaining[0]

    def clock() -> float:
        now[0] += FRESH
        return now[0]

    return Watch(read, pauses.append, clock), pauses


@pytest.mark.parametrize(
    ("reading", "why"),
    [
        ({}, ""),
        (CALM, ""),
        (CALM | {"throttle_reasons": None, "sm_clock_mhz": None, "other_processes": None}, ""),
        (HOT, "the GPU throttles (software thermal slowdown)"),
        (SLOW, "the SM clock fell from 1980 to 1580 MHz (software power cap)"),
        (CALM | {"sm_clock_mhz": 0}, "the SM clock fell from 1980 to 0 MHz"),
        (CALM | {"sm_clock_mhz": 1965, "throttle_reasons": ["software power cap"]}, ""),
        (CALM | {"throttle_reasons": ["idle", "application clocks"]}, ""),
        (SHARED, "process 4242 computes on the same GPU"),
    ],
)
def test_what_disturbs_a_sample(reading: dict[str, Any], why: str) -> None:
    """A power cap alone does not: it takes 15 MHz from a matrix product."""
    assert trouble(reading, 1980) == why


def test_four_of_the_driver_s_reasons_disturb() -> None:
    """By NVML's bits: a slow-down by hardware, by heat as either sees it, by the power supply."""
    found = {bit for bit in THROTTLE_REASONS if trouble({"throttle_reasons": reasons(bit)}, 0)}
    assert found == {0x8, 0x20, 0x40, 0x80}


def test_disturbed_samples_are_taken_again() -> None:
    """Hot, then calm: what was measured while hot is thrown away."""
    found, pauses = watch(HOT, CALM)
    samples = iter(["hot", "calm"])
    assert found.undisturbed(lambda _: next(samples)) == "calm"
    assert len(pauses) == 1
    assert found.summary()["throttle_reasons"] == []


@pytest.mark.parametrize(
    ("reading", "reason"), [(HOT, "the GPU throttles"), (SHARED, "process 4242 computes")]
)
def test_what_stays_disturbed_is_not_comparable(reading: dict[str, Any], reason: str) -> None:
    """Three attempts, two pauses, then the reason and what to do."""
    found, pauses = watch(reading)
    with pytest.raises(NotComparable, match=f"{reason}.*: free and cool the GPU, then"):
        found.undisturbed(lambda _: 0)
    assert len(pauses) == ATTEMPTS - 1
    assert found.summary() == {}


def test_a_clock_that_falls_during_the_measurement_is_seen() -> None:
    """Against the fastest reading since the start, not against what the card could do."""
    found, _ = watch(CALM, SLOW)
    found.undisturbed(lambda _: 0)
    with pytest.raises(NotComparable, match="fell from 1980 to 1580 MHz"):
        found.undisturbed(lambda _: 0)
    found.start()
    found.undisturbed(
        lambda _: 0
    )  # a card whose clock somebody set to 1580 is comparable to itself


def test_readings_stand_for_a_while() -> None:
    """One costs milliseconds: it is not taken anew for each block."""
    taken: list[dict[str, Any]] = []

    def read() -> dict[str, Any]:
        taken.append(CALM)
        return CALM

    found = Watch(read, clock=lambda: 0.01 * len(taken))
    for _ in range(5):
        found.undisturbed(lambda _: 0)
    assert len(taken) == 1


def test_the_range_of_each_quantity_is_kept() -> None:
    """Least and most of numbers, every word of lists."""
    found, _ = watch(CALM, CALM | {"power_w": 161.5, "throttle_reasons": ["idle"]})
    for _ in range(2):
        found.undisturbed(lambda _: 0)
    assert found.summary() == {
        "sm_clock_mhz": [1980, 1980],
        "throttle_reasons": ["idle"],
        "other_processes": [],
        "power_w": [140.0, 161.5],
    }


def test_a_device_without_an_address_has_nothing_to_watch() -> None:
    """A fake one, or the emulated one."""
    found = Watch.over(FakeGPU())
    assert found.undisturbed(lambda _: 7) == 7
    assert found.summary() == {}


def test_a_claim_on_a_hot_card_is_undecided_and_not_stored() -> None:
    """No value, no NaN, no pairs; the evidence says why."""
    ratios = Measured(Workbench(FakeGPU(), watch=watch(HOT)[0]))
    claim = Claim(statement("reduce.x", "x"), lambda: ratios, "gpu")
    claim.timed("a / b", FakeWorkload("a"), FakeWorkload("b"), at_least=1)
    assert claim.verdict is Verdict.UNDECIDED
    (evidence,) = claim.evidence
    assert (evidence.value, evidence.interval) == (None, None)
    assert "not comparable: the GPU throttles" in evidence.device
    assert ratios.pairs == {}


def test_the_telemetry_is_stored_beside_the_pairs() -> None:
    """As ranges."""
    ratios = Measured(Workbench(FakeGPU(), watch=watch(CALM)[0]))
    claim = Claim(statement("reduce.x", "x"), lambda: ratios, "gpu")
    claim.timed("a / b", FakeWorkload("a"), FakeWorkload("b"), at_least=0.1)
    assert ratios.pairs["reduce.x"]["a / b"]["telemetry"]["sm_clock_mhz"] == [1980, 1980]


WORK = FakeWorkload("a")
each_measurement = pytest.mark.parametrize(
    "measure",
    [
        pytest.param(lambda bench: bench.rounds(WORK, 20), id="rounds"),
        pytest.param(
            lambda bench: bench.pairs(WORK, WORK, (0.1, None), budget=Budget(), seed=0), id="pairs"
        ),
        pytest.param(
            lambda bench: bench.compare(bench.launch(WORK), bench.launch(WORK), RULE, 0),
            id="compare",
        ),
    ],
)


@each_measurement
def test_no_measurement_gives_samples_of_a_hot_card(measure: Measure) -> None:
    """It is refused."""
    with pytest.raises(NotComparable):
        measure(Workbench(FakeGPU(), watch=watch(HOT)[0]))


@each_measurement
def test_a_measurement_is_held_against_itself_alone(measure: Measure) -> None:
    """A card that somebody slowed down since the one before is as good for the next."""
    bench = Workbench(FakeGPU(noise=0), watch=watch(CALM, SLOW)[0])
    for clock in (1980, 1580):
        measure(bench)
        assert bench.watch.summary()["sm_clock_mhz"] == [clock, clock]
