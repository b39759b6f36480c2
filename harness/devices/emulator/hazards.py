"""Find races in shared memory: two threads meet at a place, one writes, and nothing orders them.

Warps in lockstep hide a missing barrier, since every read then follows every earlier write. So the
order in which things happened is not asked: two accesses are ordered only by a block barrier
between them or, inside one warp, by a chain of warp barriers from the one lane to the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from harness.devices.emulator.memory import Addresses
from harness.devices.emulator.ptx import Instruction
from harness.devices.emulator.threads import WARP, Lanes, Threads, Violation

NOBODY: Final = -1
SEVERAL: Final = -2

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Order:
    """What each lane knows to be done: a vector clock per warp, in ticks that count all barriers.

    `known[block, warp, a, b]` is the tick up to which the accesses of lane b precede whatever lane
    a does next (Mattern, Virtual time and global states of distributed systems, 1989).
    """

    def __init__(self, warps: int) -> None:
        self.tick = 1
        self.interval = 0  # block barriers passed
        self._shape = (1, warps, WARP, WARP)
        self.known: Numbers = np.zeros(self._shape, np.int64)

    def meet(self, group: Lanes) -> None:
        """Let the lanes of a group that share a warp learn all that one of them knows."""
        here, there = group[..., :, None], group[..., None, :]
        common = np.where(here, self.known, 0).max(axis=-2, keepdims=True)
        common = np.where(there, self.tick, common)
        self.known = np.where(here, common, self.known)
        self.tick += 1

    def pass_barriers(self, interval: int) -> None:
        """Order everything before the last block barrier, if one has been passed."""
        if interval != self.interval:
            self.known = np.full(self._shape, self.tick)
            self.tick += 1
            self.interval = interval


class Touching:
    """The accesses of one instruction: who makes them, when, and what each lane knows."""

    def __init__(self, active: Flags, places: Numbers, thread: Numbers, order: Order) -> None:
        row = np.nonzero(active)[0]
        self.at = row, places[active]
        self.thread = thread[active]
        self.warp, self.lane = self.thread // WARP, self.thread % WARP
        self.interval, self.tick = order.interval, order.tick
        self._row = row if len(order.known) > 1 else np.zeros_like(row)
        self._known = order.known

    def misses(self, ticks: Numbers, chosen: Flags) -> Flags:
        """Return which of the chosen cannot know of another lane's access at one of `ticks`."""
        lane = self.lane[chosen]
        late = ticks > self._known[self._row[chosen], self.warp[chosen], lane]
        late[np.arange(len(lane)), lane] = False
        missed: Flags = np.asarray(late.any(axis=-1))
        return missed


class Touch:
    """Per block and place: who touched it since the last block barrier, and when each lane did."""

    def __init__(self, places: int) -> None:
        self.thread, self.warp, self.interval = (np.full((1, places), NOBODY) for _ in range(3))
        self.ticks = np.zeros((1, places, WARP), np.int64)

    def grow(self, rows: int) -> None:
        """Give every block its own row, once blocks differ."""
        if rows > len(self.thread):
            for name, values in vars(self).items():
                setattr(self, name, values.repeat(rows, axis=0))

    def races(self, who: Touching) -> Flags:
        """Return where `who` meets another thread's touch that no barrier puts before it."""
        apart: Flags = np.not_equal(self.warp[who.at], who.warp)
        others: Flags = np.not_equal(self.thread[who.at], who.thread)
        met: Flags = np.equal(self.interval[who.at], who.interval) & others
        inside: Flags = met & ~apart
        racing: Flags = met & apart
        if inside.any():
            at = tuple(axis[inside] for axis in who.at)
            racing[inside] = who.misses(self.ticks[at], inside)
        return racing

    def record(self, who: Touching) -> Flags:
        """Remember `who`, and return which of them others join at one place in this instruction."""
        again = self.interval[who.at] == who.interval
        self.interval[who.at] = who.interval
        self.ticks[*who.at, who.lane] = who.tick
        self._merge(self.warp, who.at, who.warp, again)
        return self._merge(self.thread, who.at, who.thread, again)

    def _merge(self, kept: Numbers, at: tuple[Numbers, ...], mine: Numbers, again: Flags) -> Flags:
        """Keep whose place it is, or that it is several threads' or warps'."""
        before = kept[at]
        kept[at] = mine
        crowded: Flags = kept[at] != mine
        mixed = crowded | (again & (before != mine))
        kept[tuple(axis[mixed] for axis in at)] = SEVERAL
        return crowded


class RaceDetector:
    """The observer that stops a kernel at its first race, or at a place nobody has written.

    It watches shared memory in granules of the kernel's smallest access, at most 4 bytes. Global
    memory is not watched. A lane that has left takes part in no warp barrier, though its mask may
    name it.
    """

    def __init__(self, size: int, granule: int) -> None:
        self._granule = granule
        self._places = -(-size // granule)

    def begin(self, threads: Threads) -> None:
        """Forget the blocks that ran before."""
        self._threads = threads
        self._reads, self._writes, self._atomics = (Touch(self._places) for _ in range(3))
        self._order = Order(threads.shape[1])

    def issue(self, block: int, lanes: Lanes) -> None:
        """Instructions that touch no memory cannot race."""

    def order_warp(self, lanes: Lanes) -> None:
        """Order what `lanes`, one group a warp, did before and what they do from now on."""
        self._order.pass_barriers(self._threads.barriers)
        self._order.meet(lanes)

    def access(
        self, instruction: Instruction, space: str, address: Addresses, size: int, lanes: Lanes
    ) -> None:
        """Check and remember an access to shared memory.

        Raises
        ------
        Violation
            A race, or a read of what nothing wrote.
        """
        if space != "shared":
            return
        self._order.pass_barriers(self._threads.barriers)
        for offset in range(0, size, self._granule):
            self._touch(instruction.opcode, (address + offset) // self._granule, lanes)

    def _touch(self, opcode: str, place: Numbers, lanes: Lanes) -> None:
        """Compare with earlier writes, and with earlier reads unless this is one."""
        if len(self._writes.thread) > 1:
            lanes = np.broadcast_to(lanes, self._threads.shape)
        parts: list[NDArray[Any]] = [lanes, place, self._threads.index, self._order.known[..., 0]]
        active, places, thread, _ = np.broadcast_arrays(*parts)
        for touch in (self._reads, self._writes, self._atomics):
            touch.grow(len(active))
        who = Touching(active, places, thread, self._order)
        for reason, wrong in self._verdicts(opcode, who):
            if wrong.any():
                found = np.zeros(active.shape, np.bool_)
                found[active] = wrong
                raise Violation(reason, found)

    def _verdicts(self, opcode: str, who: Touching) -> Iterator[tuple[str, Flags]]:
        """Atomics do not race with each other, so they have a record of their own."""
        reads, writes, atomics = self._reads, self._writes, self._atomics
        if opcode != "st":
            yield "it reads what nothing wrote", writes.thread[who.at] == NOBODY
        yield "race with a write, no barrier between", writes.races(who)
        if opcode in ("ld", "st"):
            yield "race with a write, no barrier between", atomics.races(who)
        if opcode == "ld":
            reads.record(who)
            return
        yield "race with a read, no barrier between", reads.races(who)
        crowded = (writes if opcode == "st" else atomics).record(who)
        if opcode == "st":
            yield "several threads write one place", crowded
