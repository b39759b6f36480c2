"""Issued instructions of divergent code: a warp pays for every path that one of its lanes takes.

The reference runs each lane alone and notes in which iteration it passes which basic block. Lanes
that pass a block in the same iteration pass it together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

import pytest

from harness.devices.emulator import EmulatedDevice
from harness.devices.emulator.tests.ptx_text import program

Visit = tuple[str, int, int]  # basic block, iteration of the outer and of the inner loop

IF_ELSE: Final = """
    mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 20; @%p0 bra $then;
    add.u32 %r1, %r0, 1; add.u32 %r1, %r1, 1; bra $end;
    $then: add.u32 %r1, %r0, 2;
    $end: ret;
"""


def if_else(thread: int) -> Iterator[Visit]:
    yield "start", 0, 0
    yield ("then" if thread < 20 else "else"), 0, 0
    yield "end", 0, 0


LOOP: Final = """
    mov.u32 %r0, %tid.x; mov.u32 %r1, 0;
    $again: add.u32 %r1, %r1, 1; setp.lt.u32 %p0, %r1, %r0; @%p0 bra $again;
    ret;
"""


def loop(thread: int) -> Iterator[Visit]:
    yield "start", 0, 0
    for i in range(max(thread, 1)):
        yield "again", i, 0
    yield "end", 0, 0


# for i < 3: for j < 8: if j == tid % 8: break; if (i + j) odd: continue; work; more
NESTED: Final = """
    mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 7; mov.u32 %r2, 0;
    $outer: mov.u32 %r3, 0;
    $inner: setp.eq.u32 %p0, %r3, %r1; @%p0 bra $next;
    add.u32 %r4, %r2, %r3; and.b32 %r4, %r4, 1; setp.eq.u32 %p1, %r4, 1; @%p1 bra $step;
    mul.lo.u32 %r5, %r3, 3;
    $step: add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 8; @%p2 bra $inner;
    $next: add.u32 %r2, %r2, 1; setp.lt.u32 %p3, %r2, 3; @%p3 bra $outer;
    ret;
"""


def nested(thread: int) -> Iterator[Visit]:
    yield "start", 0, 0
    for i in range(3):
        yield "outer", i, 0
        for j in range(8):
            yield "inner", i, j
            if j == thread % 8:
                break
            yield "test", i, j
            if (i + j) % 2 == 0:
                yield "work", i, j
            yield "step", i, j
        yield "next", i, 0
    yield "end", 0, 0


# case 0 falls through to 1; 2 is apart; all else is the default
SWITCH: Final = """
    mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 3;
    setp.eq.u32 %p0, %r1, 0; @%p0 bra $zero;
    setp.eq.u32 %p1, %r1, 1; @%p1 bra $one;
    setp.eq.u32 %p2, %r1, 2; @%p2 bra $two;
    mov.u32 %r2, 9; bra $end;
    $zero: mov.u32 %r3, 1; mov.u32 %r3, 2;
    $one: mov.u32 %r2, 3; bra $end;
    $two: mov.u32 %r2, 4;
    $end: ret;
"""


def switch(thread: int) -> Iterator[Visit]:
    passed = {0: ["zero", "one"], 1: ["second", "one"], 2: ["second", "third", "two"]}
    others = ["second", "third", "default"]
    for block in ("start", *passed.get(thread % 4, others), "end"):
        yield block, 0, 0


EARLY: Final = """
    mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 1; setp.eq.u32 %p0, %r1, 1; @%p0 ret;
    setp.gt.u32 %p1, %r0, 40; @%p1 bra $end;
    add.u32 %r2, %r0, 1; add.u32 %r2, %r2, 1;
    $end: ret;
"""


def early(thread: int) -> Iterator[Visit]:
    yield "start", 0, 0
    if thread % 2 == 0:
        yield "second", 0, 0
        if thread <= 40:
            yield "work", 0, 0
        yield "end", 0, 0


# instructions of each basic block, as written above
CODE: Final[list[tuple[str, Callable[[int], Iterator[Visit]], dict[str, int]]]] = [
    (IF_ELSE, if_else, {"start": 3, "else": 3, "then": 1, "end": 1}),
    (LOOP, loop, {"start": 2, "again": 3, "end": 1}),
    (NESTED, nested, {"start": 3, "outer": 1, "inner": 2, "test": 4, "work": 1, "step": 3,
                      "next": 3, "end": 1}),
    (SWITCH, switch, {"start": 4, "second": 2, "third": 2, "default": 2, "zero": 2, "one": 2,
                      "two": 1, "end": 1}),
    (EARLY, early, {"start": 4, "second": 2, "work": 2, "end": 1}),
]  # fmt: skip


@pytest.mark.parametrize("block", [1, 20, 32, 33, 64, 100])
@pytest.mark.parametrize(("body", "lane", "sizes"), CODE, ids=[c[1].__name__ for c in CODE])
def test_a_warp_pays_for_every_path_of_its_lanes(
    body: str, lane: Callable[[int], Iterator[Visit]], sizes: dict[str, int], block: int
) -> None:
    grid = 3
    visits = [list(lane(thread)) for thread in range(block)]
    alone = Counter(visit[0] for thread in visits for visit in thread)
    together: Counter[str] = Counter()
    for first in range(0, block, 32):
        passed = {visit for thread in visits[first : first + 32] for visit in thread}
        together.update(visit[0] for visit in passed)
    device = EmulatedDevice()
    counters = device.count(lambda: device.run(program(body), [], grid, block))
    assert counters.warp_instructions == grid * sum(n * sizes[b] for b, n in together.items())
    assert counters.lane_instructions == grid * sum(n * sizes[b] for b, n in alone.items())


@pytest.mark.parametrize(
    ("body", "expected"),
    [(IF_ELSE, 3 + 3 + 1 + 1), (LOOP, 2 + 31 * 3 + 1), (SWITCH, 16), (EARLY, 4 + 2 + 2 + 1)],
)
def test_counts_by_hand(body: str, expected: int) -> None:
    """32 threads: both sides of a branch are paid for, and lane 31 loops 31 times."""
    device = EmulatedDevice()
    counters = device.count(lambda: device.run(program(body), [], 1, 32))
    assert counters.warp_instructions == expected


def test_blocks_that_go_different_ways_are_counted_apart() -> None:
    """Block b loops b + 1 times: the rows of a batch no longer agree."""
    body = """
        mov.u32 %r0, %ctaid.x; mov.u32 %r1, 0;
        $again: add.u32 %r1, %r1, 1; setp.le.u32 %p0, %r1, %r0; @%p0 bra $again; ret;
    """
    device = EmulatedDevice()
    counters = device.count(lambda: device.run(program(body), [], 6, 64))
    assert counters.warp_instructions == 2 * sum(2 + 3 * (b + 1) + 1 for b in range(6))
