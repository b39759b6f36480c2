"""A machine that moved: what it may explain, and that it is told where it explains nothing."""

from __future__ import annotations

from typing import Any

import pytest

from harness.baselines.shape import COPY, COPY_RUNS, RUNS
from harness.gate.compare import Exit, Night, compare
from harness.gate.environment import memory_bound
from harness.gate.samples import timings
from harness.gate.tests.nights import BYTES, DEVICE, night, samples
from harness.gate.verdicts import Status

BOUND = [f"t.py::bound[{number}]" for number in range(10)]
FREE = [f"t.py::free[{number}]" for number in range(14)]  # of memory: they move few bytes
SLOW_COPY: dict[str, Any] = {COPY: DEVICE[COPY] / 1.14}
SLOWER_COPY: dict[str, Any] = {COPY: DEVICE[COPY] / 1.05}
FAST_COPY: dict[str, Any] = {COPY: DEVICE[COPY] * 1.14}
TOLD = "a plain copy of the driver is +14.00 % (limit 5 %, default for 1 of 3 runs)"


def tonight(factors: dict[str, float] | None = None, **device: Any) -> dict[str, Any]:
    """Return a night of all; those named took `factor` times as long, or no time at all."""
    times = {name: samples(1e-4) for name in [*BOUND, *FREE]}
    for name, factor in (factors or {}).items():
        times[name] = samples(1e-4 * factor) if factor else [0.0] * 20
    return night(times, {name: {"bytes": 1 << 20} for name in FREE}, **device)


def judged(factors: dict[str, float], **device: Any) -> Night:
    """Hold such a night against one without a change."""
    return compare(tonight(), tonight(factors, **device))


def test_what_waits_for_memory_is_known_by_its_bytes() -> None:
    """At 60 % of the peak and more; of an unknown peak nothing is."""
    recorded = timings(tonight()).values()
    assert memory_bound(recorded, tonight()) == set(BOUND)
    assert memory_bound(recorded, {"device": {"peak GB/s": 0.0}}) == set()
    assert memory_bound(recorded, {}) == set()
    at: dict[str, Any] = {"peak GB/s": BYTES / 1e-4 / 0.6 / 1e9}
    exact = timings(night({"a": [1e-4] * 20, "b": [1.001e-4] * 20})).values()
    assert memory_bound(exact, night({}, **at)) == {"a"}


def test_a_slower_memory_moves_what_is_bound_by_it() -> None:
    """Ten of 24 benchmarks, and the copy: no verdict, and nothing slower."""
    found = judged(dict.fromkeys(BOUND, 1.14), **SLOW_COPY)
    assert (found.exit, found.of(Status.SLOWER)) == (Exit.NO_VERDICT, [])
    assert len(found.of(Status.SAME)) == len(FREE)
    assert found.environment.startswith("environment changed: 10 of 10 memory-bound benchmarks")
    assert not any("copy" in note for note in found.notes)


@pytest.mark.parametrize(("slower", "excused"), [(1, False), (4, False), (5, True), (6, True)])
def test_half_of_what_is_bound_by_memory_must_move(slower: int, excused: bool) -> None:
    """Else the night is red; that the copy moved is told all the same."""
    found = judged(dict.fromkeys(BOUND[:slower], 1.14), **SLOW_COPY)
    assert found.exit is (Exit.NO_VERDICT if excused else Exit.RED)
    assert any(note.startswith(TOLD) for note in found.notes) is not excused


def test_what_could_not_be_compared_is_not_counted() -> None:
    """Three of six, where ten were recorded."""
    factors = dict.fromkeys(BOUND[:3], 1.14) | dict.fromkeys(BOUND[6:], 0.0)
    assert judged(factors, **SLOW_COPY).exit is Exit.NO_VERDICT


def test_what_does_not_wait_for_memory_makes_no_environment() -> None:
    """All 14 others: the copy cannot have done that."""
    found = judged(dict.fromkeys(FREE, 1.14), **SLOW_COPY)
    assert (found.exit, len(found.of(Status.SLOWER))) == (Exit.RED, len(FREE))
    only_free = [
        each | {"benchmarks": each["benchmarks"][len(BOUND) :]}
        for each in (tonight(), tonight(dict.fromkeys(FREE, 1.14), **SLOW_COPY))
    ]
    assert compare(*only_free).exit is Exit.RED


def test_what_moved_the_other_way_keeps_its_verdict() -> None:
    """A speed-up on a slower machine, a slow-down on a faster one."""
    slow = judged(dict.fromkeys(BOUND[1:], 1.14) | {BOUND[0]: 0.8}, **SLOW_COPY)
    assert [row.name for row in slow.of(Status.FASTER)] == BOUND[:1]
    fast = judged(dict.fromkeys(BOUND[1:], 1 / 1.14) | {BOUND[0]: 1.14}, **FAST_COPY)
    assert [row.name for row in fast.of(Status.SLOWER)] == BOUND[:1]
    assert fast.exit is Exit.RED


def test_what_moved_further_keeps_its_verdict() -> None:
    """Beyond the copy and the copy's own limit, in either direction."""
    slow = judged(dict.fromkeys(BOUND, 1.14) | {BOUND[0]: 1.19, BOUND[1]: 1.21}, **SLOW_COPY)
    assert [row.name for row in slow.of(Status.SLOWER)] == [BOUND[1]]
    fast = judged(dict.fromkeys(BOUND, 0.88) | {BOUND[0]: 0.84, BOUND[1]: 0.825}, **FAST_COPY)
    assert [row.name for row in fast.of(Status.FASTER)] == [BOUND[1]]


NO_COPY: dict[str, Any] = {COPY: None}


@pytest.mark.parametrize(
    ("before", "now"), [(NO_COPY, SLOW_COPY), ({}, NO_COPY), (NO_COPY, NO_COPY)]
)
def test_a_copy_that_one_of_them_lacks_explains_nothing(
    before: dict[str, Any], now: dict[str, Any]
) -> None:
    """Red, and no word of it."""
    found = compare(tonight(**before), tonight(dict.fromkeys(BOUND, 1.14), **now))
    assert (found.exit, found.environment, found.notes) == (Exit.RED, "", [])


def test_the_copy_has_runs_of_its_own() -> None:
    """What they scatter is no change of the machine."""
    wide: dict[str, Any] = {COPY_RUNS: [4327.4, 4000.0, 4600.0, 4200.0, 4400.0]}
    found = compare(tonight(**wide), tonight(dict.fromkeys(BOUND, 1.14), **SLOW_COPY))
    assert (found.exit, found.environment, found.notes) == (Exit.RED, "", [])


def test_a_copy_that_moved_alone_is_told() -> None:
    """Nothing else did: the night is green."""
    found = judged({}, **SLOW_COPY)
    assert (found.exit, found.notes) == (Exit.GREEN, [f"{TOLD}: look at the machine"])


@pytest.mark.parametrize(
    ("ratio", "slower", "told"), [(1.015, {}, 0), (1.03, {}, 1), (1.015, {FREE[0]: 1.2}, 1)]
)
def test_a_copy_that_lies_elsewhere_is_told_of_only_where_something_is_slower(
    ratio: float, slower: dict[str, float], told: int
) -> None:
    """Its buffers are placed anew each night; a note that is always there is read by nobody."""
    three: dict[str, Any] = {COPY_RUNS: [DEVICE[COPY]] * 3}
    before = tonight(**three)
    found = compare(before, tonight(slower, **{COPY: DEVICE[COPY] / ratio}))
    assert sum("a plain copy" in note for note in found.notes) == told


def test_what_a_benchmark_may_move_anyway_is_no_move_beyond_the_machine() -> None:
    """Runs 5 % apart beside a copy that knows itself to 0.5 %: +9 % is no more than the machine."""
    three: dict[str, Any] = {COPY_RUNS: [DEVICE[COPY]] * 3}
    before = tonight(**three)
    for each in before["benchmarks"]:
        apart = 0.025 if each["fullname"] == BOUND[0] else 0.0005
        each["extra_info"][RUNS] = [1e-4 * (1 + side * apart) for side in (-1, 0, 1) * 3]
    slow = tonight(dict.fromkeys([*BOUND, *FREE], 1.05) | {BOUND[0]: 1.09}, **SLOWER_COPY)
    found = compare(before, slow)
    assert found.exit is Exit.NO_VERDICT
    assert not found.of(Status.SLOWER)


def of_cards(*cards: str) -> dict[str, Any]:
    """Return a recording of one or several cards."""
    return night() | {"device": night()["device"] | ({"cards": list(cards)} if cards else {})}


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        (["GPU-a"], ["GPU-a"], []),
        (["GPU-a"], ["GPU-b"], ["another card of this model: GPU-b, not GPU-a"]),
        (["GPU-c", "GPU-a"], ["GPU-c"], []),
        (["GPU-c", "GPU-a"], ["GPU-b"], ["another card of this model: GPU-b, not GPU-a, GPU-c"]),
        ([], ["GPU-a"], []),
        (["GPU-a"], [], []),
    ],
)
def test_another_card_is_noted(before: list[str], now: list[str], told: list[str]) -> None:
    """It explains up to 4 %, and no verdict changes by it."""
    found = compare(of_cards(*before), of_cards(*now))
    assert (found.exit, found.notes) == (Exit.GREEN, told)
