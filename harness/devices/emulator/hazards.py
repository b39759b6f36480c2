"""Find races in shared memory: two threads meet at a place, one writes, and nothing orders them.

Warps in lockstep hide a missing barrier, since every read then follows every earlier write. So the
order in which things happened is not asked: two accesses are ordered only by a block barrier
between them or, inside one warp, by a warp barrier (it orders the whole warp, whatever its mask).
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


class Touching:
    """The accesses of one instruction: who makes them, and in which intervals between barriers."""

    def __init__(
        self, thread: Numbers, interval: int, warp_interval: Numbers, atomic: bool
    ) -> None:
        self.thread = thread
        self.warp = thread // WARP
        self.interval = interval
        self.warp_interval = warp_interval
        self.atomic = int(atomic)


class Touch:
    """Per block and place: who touched it last, between which barriers, and whether atomically."""

    def __init__(self, places: int) -> None:
        self.thread, self.warp, self.interval, self.warp_interval, self.atomic = (
            np.full((1, places), NOBODY) for _ in range(5)
        )

    def grow(self, rows: int) -> None:
        """Give every block its own row, once blocks differ."""
        if rows > len(self.thread):
            for name, values in vars(self).items():
                setattr(self, name, values.repeat(rows, axis=0))

    def pending(self, at: tuple[Numbers, ...], who: Touching) -> Flags:
        """Return where no barrier stands between the last touch and `who`."""
        ordered = (self.warp[at] == who.warp) & (self.warp_interval[at] < who.warp_interval)
        since: Flags = (self.interval[at] == who.interval) & ~ordered
        return since

    def races(self, at: tuple[Numbers, ...], who: Touching) -> Flags:
        """Return where `who` meets another thread's touch; atomics do not race with each other."""
        harmless = (self.thread[at] == who.thread) | ((self.atomic[at] & who.atomic) == 1)
        racing: Flags = self.pending(at, who) & ~harmless
        return racing

    def record(self, at: tuple[Numbers, ...], who: Touching) -> None:
        """Remember `who`, and where several touch one place between the same barriers."""
        again = self.pending(at, who)
        for name, mine in vars(who).items():
            kept = getattr(self, name)
            before = kept[at]
            kept[at] = mine
            mixed = (kept[at] != mine) | (again & (before != mine))
            kept[tuple(axis[mixed] for axis in at)] = SEVERAL


class RaceDetector:
    """The observer that stops a kernel at its first race, or at a place nobody has written.

    It watches shared memory in granules of the kernel's smallest access, at most 4 bytes. Global
    memory is not watched.
    """

    def __init__(self, size: int, granule: int) -> None:
        self._granule = granule
        self._places = -(-size // granule)

    def begin(self, threads: Threads) -> None:
        """Forget the blocks that ran before."""
        self._threads = threads
        self._reads, self._writes = Touch(self._places), Touch(self._places)
        self._warp_interval = np.zeros((1, threads.shape[1], 1), np.int64)

    def issue(self, block: int, lanes: Lanes) -> None:
        """Instructions that touch no memory cannot race."""

    def order_warp(self, lanes: Lanes) -> None:
        """Begin a new interval for the warps of `lanes`."""
        self._warp_interval = self._warp_interval + lanes.any(axis=-1, keepdims=True)

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
        for offset in range(0, size, self._granule):
            self._touch(instruction.opcode, (address + offset) // self._granule, lanes)

    def _touch(self, opcode: str, place: Numbers, lanes: Lanes) -> None:
        """Compare with the last write, and with the last read unless this is one."""
        if len(self._writes.thread) > 1:
            lanes = np.broadcast_to(lanes, self._threads.shape)
        parts: list[NDArray[Any]] = [lanes, place, self._threads.index, self._warp_interval]
        active, places, thread, warp_interval = np.broadcast_arrays(*parts)
        self._reads.grow(len(active))
        self._writes.grow(len(active))
        at = (np.nonzero(active)[0], places[active])
        atomic = opcode in ("atom", "red")
        who = Touching(thread[active], self._threads.barriers, warp_interval[active], atomic)
        for reason, wrong in self._verdicts(opcode, at, who):
            if wrong.any():
                found = np.zeros(active.shape, np.bool_)
                found[active] = wrong
                raise Violation(reason, found)

    def _verdicts(
        self, opcode: str, at: tuple[Numbers, ...], who: Touching
    ) -> Iterator[tuple[str, Flags]]:
        reads, writes = self._reads, self._writes
        if opcode != "st":
            yield "it reads what nothing wrote", writes.thread[at] == NOBODY
        yield "race with a write, no barrier between", writes.races(at, who)
        if opcode == "ld":
            reads.record(at, who)
            return
        yield "race with a read, no barrier between", reads.races(at, who)
        writes.record(at, who)
        if opcode == "st":
            yield "several threads write one place", writes.thread[at] == SEVERAL
