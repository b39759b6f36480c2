"""The issue model keeps program order and data flow, whatever the latencies."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.devices import disassembly
from harness.models.cycles import (
    NotModelled,
    Step,
    hoisted,
    issue_cycles,
    loads_before,
    may_alias,
    named,
    ptx_steps,
    sass_steps,
)
from kernels import Kernel, kernel

LATENCIES = st.integers(1, 2000)


@st.composite
def programs(draw: st.DrawFn) -> tuple[Step, ...]:
    """Draw c[x] += a[y] * b[z] again and again, at addresses from one base or two."""
    steps: list[Step] = []
    addresses = st.tuples(st.sampled_from("pq"), st.integers(0, 4).map(lambda word: 4 * word))
    for k in range(draw(st.integers(1, 5))):
        c = draw(addresses)
        steps += [
            Step("load", f"a{k}", address=draw(addresses), read_only=True),
            Step("load", f"b{k}", address=draw(addresses), read_only=True),
            Step("load", f"c{k}", address=c),
            Step("fma", f"f{k}", (f"a{k}", f"b{k}", f"c{k}")),
            Step("store", "", (f"f{k}",), c),
        ]
    return tuple(steps)


@given(steps=programs(), load=LATENCIES, fma=LATENCIES)
def test_one_is_issued_a_cycle_and_none_before_its_operands(
    steps: tuple[Step, ...], load: int, fma: int
) -> None:
    """Later in the program is later in time."""
    cycles = issue_cycles(steps, load, fma)
    assert cycles[0] == 0
    assert all(before < after for before, after in pairwise(cycles))
    usable = {
        step.result: cycle + {"load": load, "fma": fma, "store": 0}[step.kind]
        for step, cycle in zip(steps, cycles, strict=True)
    }
    for step, cycle in zip(steps, cycles, strict=True):
        assert all(usable[value] <= cycle for value in step.operands)


@given(steps=programs(), load=LATENCIES, fma=LATENCIES, more=st.integers(0, 100))
def test_a_longer_latency_is_never_faster(
    steps: tuple[Step, ...], load: int, fma: int, more: int
) -> None:
    """Every step is issued as late or later."""
    short, long = issue_cycles(steps, load, fma), issue_cycles(steps, load + more, fma + more)
    assert all(one <= other for one, other in zip(short, long, strict=True))


@given(steps=programs())
def test_hoisting_keeps_what_depends_on_order(steps: tuple[Step, ...]) -> None:
    """The same steps; operands come first, and what may be at one address keeps its order."""
    order = hoisted(steps)
    assert len(order) == len(steps)
    place = {id(step): at for at, step in enumerate(order)}
    assert place.keys() == {id(step) for step in steps}
    for at, step in enumerate(steps):
        for earlier in steps[:at]:
            if earlier.result in step.operands or may_alias(step, earlier):
                assert place[id(earlier)] < place[id(step)]


@given(steps=programs(), load=LATENCIES)
def test_loads_that_no_store_can_reach_go_first(steps: tuple[Step, ...], load: int) -> None:
    """At least the read-only ones; then nobody waits longer than in program order."""
    order = hoisted(steps)
    free = [step for step in steps if step.read_only]
    assert loads_before("fma", order) >= len(free)
    assert issue_cycles(order, load, 1)[-1] <= issue_cycles(steps, load, 1)[-1]


@pytest.mark.parametrize(
    ("other", "aliases"),
    [
        (Step("load", "x", address=("p", 0)), True),
        (Step("load", "x", address=("p", 3)), True),
        (Step("load", "x", address=("p", 4)), False),
        (Step("load", "x", address=("q", 4)), True),
        (Step("load", "x"), True),
        (Step("load", "x", address=("p", 0), read_only=True), False),
        (Step("store", "", ("x",), ("p", 0)), True),
        (Step("fma", "x"), False),
    ],
)
def test_only_distances_from_one_base_are_told_apart(other: Step, aliases: bool) -> None:
    """A word is 4 bytes; an unknown address may be any."""
    assert may_alias(Step("store", "", ("f",), ("p", 0)), other) is aliases


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100", "sm_120"])
def test_machine_code_is_named_by_what_its_fmas_take(architecture: str) -> None:
    """Registers are used again, values are not."""
    naive = kernel("unroll", "naive")
    assert named(sass_steps(naive, architecture)) == "a1 b1 c1 FMA1 ST1"
    assert named(ptx_steps(naive, architecture)) == "a1 b1 c1 FMA1 ST1"


@pytest.mark.parametrize(
    ("rung", "read", "quoted"),
    [
        (kernel("reduce_ladder", "reduce_v7", BLOCK=256), sass_steps, r"LDG\.E\.128"),
        (kernel("reduce_ladder", "reduce_v7", BLOCK=256), ptx_steps, r"ld\.global\.nc\.v4\.f32"),
        (kernel("coalescing", "update_soa"), sass_steps, "STG.*is of no load and of no FMA"),
        (kernel("coalescing", "update_soa"), ptx_steps, "st.*is of no load and of no FMA"),
    ],
)
def test_code_beyond_the_model_is_refused_by_name(
    rung: Kernel, read: Callable[..., Any], quoted: str
) -> None:
    """A wide load, and a store of what an FADD made of a load, be it in the same register."""
    with pytest.raises(NotModelled, match=quoted):
        read(rung, "sm_90")


def test_a_predicate_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the step is issued at all would depend on data."""
    guarded = disassembly.Instruction(
        "LDG", ("E",), ("R0", "[R2.64]"), "@P0", "@P0 LDG.E R0,[R2.64]", 0
    )
    monkeypatch.setattr(disassembly, "instructions", lambda *_: (guarded,))
    sass_steps.cache_clear()
    with pytest.raises(NotModelled, match=r"@P0 LDG\.E.*without a predicate"):
        sass_steps(kernel("unroll", "naive"), "sm_90")
