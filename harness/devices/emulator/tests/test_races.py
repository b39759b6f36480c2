"""The race detector against the definition of a race, over random accesses and barriers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from hypothesis import example, given
from hypothesis import strategies as st

from harness.devices.emulator import EmulatedDevice, Fault
from harness.devices.emulator.tests.ptx_text import program

THREADS = (0, 1, 2, 32, 33)  # three of one warp, two of another


@dataclass(frozen=True)
class Access:
    thread: int
    kind: str  # ld, st or red
    word: int


@dataclass(frozen=True)
class Barrier:
    warp: int | None = None  # None: the whole block
    mask: int = 0xFFFFFFFF  # the lanes of that warp that take part

    @property
    def threads(self) -> frozenset[int]:
        if self.warp is None:
            return frozenset(range(64))
        return frozenset(32 * self.warp + lane for lane in range(32) if self.mask >> lane & 1)


Step = Access | Barrier
accesses = st.builds(
    Access, st.sampled_from(THREADS), st.sampled_from(["ld", "st", "red"]), st.integers(0, 1)
)
barriers = st.builds(
    Barrier, st.sampled_from([None, 0, 1]), st.sampled_from([3, 5, 6, 1, 0xFFFF, 0xFFFFFFFF])
)


def race(steps: list[Step]) -> bool:
    """Two threads meet at a word, one writes, not both atomically, and no barriers order them."""
    found = [(i, step) for i, step in enumerate(steps) if isinstance(step, Access)]
    return any(
        one.thread != other.thread
        and one.word == other.word
        and {one.kind, other.kind} not in ({"ld"}, {"red"})
        and other.thread not in told(one.thread, steps[i:j])
        for (i, one), (j, other) in combinations(found, 2)
    )


def told(thread: int, steps: list[Step]) -> frozenset[int]:
    """Return the threads that `steps` order after `thread`: a barrier tells all that it holds."""
    known = frozenset({thread})
    for step in steps:
        if isinstance(step, Barrier) and known & step.threads:
            known |= step.threads
    return known


def line(step: Step) -> str:
    if isinstance(step, Barrier):
        if step.warp is None:
            return "bar.sync 0;"
        return f"""
            and.b32 %r3, %r0, 31; shr.u32 %r3, {step.mask}, %r3; and.b32 %r3, %r3, 1;
            setp.eq.u32 %p1, %r3, 1; setp.eq.u32 %p2, %r1, {step.warp}; and.pred %p1, %p1, %p2;
            @%p1 bar.warp.sync {step.mask};"""
    place = f"[words+{4 * step.word}]"
    access = {
        "ld": f"ld.shared.u32 %r2, {place}",
        "st": f"st.shared.u32 {place}, %r0",
        "red": f"red.shared.add.u32 {place}, 1",
    }[step.kind]
    return f"setp.eq.u32 %p1, %r0, {step.thread}; @%p1 {access};"


@given(st.lists(accesses | barriers, min_size=1, max_size=12))
@example([Access(0, "ld", 0), Access(32, "ld", 0), Access(32, "st", 0)])
@example([Access(0, "ld", 0), Barrier(0), Access(1, "ld", 0), Access(1, "st", 0)])
@example([Access(0, "st", 0), Barrier(0, 3), Barrier(0, 6), Access(2, "ld", 0)])
@example([Access(0, "st", 0), Barrier(0, 6), Barrier(0, 3), Access(2, "ld", 0)])
@example([Access(0, "ld", 0), Access(2, "ld", 0), Barrier(0, 3), Access(1, "st", 0)])
@example([Access(0, "red", 0), Access(2, "red", 0), Barrier(0, 6), Access(1, "ld", 0)])
@example([Access(0, "st", 0), Barrier(0, 3), Access(1, "red", 0), Access(2, "red", 0)])
def test_a_race_is_reported_if_and_only_if_there_is_one(steps: list[Step]) -> None:
    body = """
        mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 5; setp.eq.u32 %p1, %r0, 0;
        @%p1 st.shared.v2.u32 [words], {%r0, %r0}; bar.sync 0;
    """
    text = "\n".join((body, *map(line, steps), "ret;"))
    launch = program(text, (), ".shared .align 8 .b8 words[8];")
    reported = ""
    try:
        EmulatedDevice().run(launch, [], 2, 64)
    except Fault as fault:
        reported = str(fault)
    assert ("race with a" in reported) == bool(reported) == race(steps)
