"""What every rung asks of the memory and takes of an SM: formulas that hold for any n, exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.models.counting import shared_per_block
from harness.strategies import sizes
from harness.workloads.atomics import AtomicAlone
from harness.workloads.reduction import RUNGS, VARIANTS, Reduction, count_sum

WARP: Final = 32
SECTOR: Final = 8  # floats


def asked(n: int, width: int) -> tuple[int, int]:
    """Requests and sectors to load n floats, `width` a load; V1 loads the last n % width."""
    tail = n % width
    whole = n - tail
    return -(-whole // (WARP * width)) + bool(tail), -(-whole // SECTOR) + bool(tail)


def added(emulator: Any, reduction: Reduction, n: int) -> int:
    """Atomics of a sum: one an element in V1, else one a block, none where it stores its sum."""
    rung, tail = RUNGS[reduction.rung], n % RUNGS[reduction.rung].width
    if reduction.stores_partials:
        return 0
    return reduction.grid(n // rung.width, emulator) + tail if rung.in_block else n


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.label)
def test_every_rung_loads_each_sector_once_at_any_n(emulator: Any, variant: Reduction) -> None:
    """Requests are ceil(n / 32), sectors ceil(n / 8), whatever the grid; none is loaded twice.

    With float4 the n % 4 floats at the end are a request and a sector more. All atomics of a sum
    are on one address, with SPREAD each on its own; of global memory nothing is stored but a
    block's sum with STORE. An unrolled loop parts the lanes that go round less often, so INT_STRIDE
    is held to whole warps.
    """

    @given(n=sizes(variant.block, 1 << 13), blocks=st.none() | st.integers(1, 4))
    def as_often_as_the_formula_says(n: int, blocks: int | None) -> None:
        rung = replace(variant, blocks=blocks)
        width = RUNGS[rung.rung].width
        n -= n % (WARP * width) if "INT_STRIDE" in rung.defines else 0
        counters = count_sum(emulator, rung, n)
        loads, stores = (counters.traffic(opcode, "global") for opcode in ("ld", "st"))
        assert (loads.requests, loads.sectors) == asked(n, width)
        atomics = added(emulator, rung, n)
        places = [1] * atomics if "SPREAD" in rung.defines else [atomics] * bool(atomics)
        assert list(counters.atomics.values()) == places
        assert stores.lanes == (rung.grid(n, emulator) if rung.stores_partials else 0)

    as_often_as_the_formula_says()


@given(blocks=st.integers(1, 5000), spread=st.booleans())
def test_an_atomic_alone_is_one_a_block(emulator: Any, blocks: int, spread: bool) -> None:
    """On one address, or a line for each, and nothing else: no load, no store, no barrier."""
    counters = emulator.count_checked(AtomicAlone(blocks, spread))
    assert list(counters.atomics.values()) == ([1] * blocks if spread else [blocks])
    lines = {address // 128 for address in counters.atomics}
    assert len(lines) == (blocks if spread else 1)
    assert {(each.opcode, each.space) for each in counters.accesses} == {("atom", "global")}
    assert counters.issued("bar") == 0


@pytest.mark.parametrize(("spread", "what"), [(False, "adds up to 4"), (True, "in other places")])
def test_the_check_of_atomics_sees_a_lost_block(
    emulator: Any, spread: bool, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On one address its 1 lacks in the sum, on lines of their own its line is 0."""
    launch, run = AtomicAlone(5, spread).prepare(emulator), emulator.launch
    monkeypatch.setattr(emulator, "launch", lambda k, blocks, *more: run(k, blocks - 1, *more))
    with pytest.raises(AssertionError, match=what):
        launch.check()


def a_word_a_thread(block: int) -> int:
    """The trees' shared memory in bytes."""
    return 4 * block


def a_word_a_warp(block: int) -> int:
    """The shuffles' shared memory in bytes, for as many warps as a block can have."""
    return 4 * 32


SHARED: Final[dict[str, Callable[[int], int]]] = {
    **dict.fromkeys(("reduce_v1", "atomic_alone"), lambda block: 0),
    **dict.fromkeys(
        ("reduce_v2", "reduce_v3", "reduce_v4", "reduce_v5", "reduce_v5_float4"), a_word_a_thread
    ),
    **dict.fromkeys(("reduce_v6", "reduce_v7"), a_word_a_warp),
}


@pytest.mark.parametrize("block", [32, 256, 1024])
def test_no_rung_takes_more_shared_memory_than_its_sums(emulator: Any, block: int) -> None:
    """A tree keeps a word a thread, shuffles a word a warp: more would cost occupancy unseen."""
    kernels = [replace(variant, block=block).kernel for variant in VARIANTS]
    for kernel in (*kernels, AtomicAlone().kernel):
        assert shared_per_block(kernel, emulator.architecture) == SHARED[kernel.name](block), kernel
