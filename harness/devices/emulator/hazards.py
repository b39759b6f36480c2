"""Find races in shared memory: two threads meet at a word, one writes, and nothing orders them.

Warps in lockstep hide a missing barrier, since every read then follows every earlier write. So the
order in which things happened is not asked: two accesses are ordered only by a block barrier between
them or, inside one warp, by a warp barrier.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from harness.devices.emulator.memory import Addresses
from harness.devices.emulator.ptx import Instruction
from harness.devices.emulator.threads import WARP, Lanes, Threads, Violation

WORD: Final = 4  # bytes
NOBODY: Final = -1
SEVERAL: Final = -2
ATOMICALLY: Final = -3  # stands for any thread, since atomics do not race with each other

Words = NDArray[np.int64]


class Touch:
    """Per block and word: who touched it last, in which barrier interval of the block and the warp."""

    def __init__(self, words: int) -> None:
        self.thread, self.warp, self.interval, self.warp_interval = (
            np.full((1, words), NOBODY) for _ in range(4)
        )

    def grow(self, rows: int) -> None:
        """Give every block its own row, once blocks differ."""
        if rows > len(self.thread):
            for name, values in vars(self).items():
                setattr(self, name, values.repeat(rows, axis=0))

    def unordered(self, at: tuple[Words, Words], who: Touching) -> NDArray[np.bool_]:
        """Return which accesses meet another thread's earlier one with no barrier between."""
        other = self.thread[at] != who.thread
        warp_ordered = (self.warp[at] == who.warp) & (self.warp_interval[at] < who.warp_interval)
        return (self.interval[at] == who.interval) & other & ~warp_ordered

    def record(self, at: tuple[Words, Words], who: Touching) -> None:
        """Remember these accesses; a word touched by several in one interval says so."""
        again = self.interval[at] == who.interval
        before = self.thread[at], self.warp[at]
        self.interval[at], self.warp_interval[at] = who.interval, who.warp_interval
        for kept, mine, old in zip(
            (self.thread, self.warp), (who.thread, who.warp), before, strict=True
        ):
            kept[at] = mine
            mixed = (kept[at] != mine) | (again & (old != mine))
            kept[at[0][mixed], at[1][mixed]] = SEVERAL


class Touching:
    """Who makes an access: threads, their warps, and the barrier intervals they are in."""

    def __init__(self, thread: Words, interval: Words, warp_interval: Words, atomic: bool) -> None:
        self.warp = thread // WARP
        self.thread = np.full_like(thread, ATOMICALLY) if atomic else thread
        self.interval = interval
        self.warp_interval = warp_interval


class RaceDetector:
    """The observer that stops a kernel at its first race, or at a word nobody has written."""

    def __init__(self, size: int) -> None:
        self._words = -(-size // WORD)

    def begin(self, threads: Threads) -> None:
        """Forget the blocks that ran before."""
        self._threads = threads
        self._reads, self._writes = Touch(self._words), Touch(self._words)
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
            A race, or a read of a word that nothing wrote.
        """
        if space != "shared" or self._outside(address, size, lanes):
            return
        for offset in range(0, size, WORD):
            self._touch(instruction.opcode, (address + offset) // WORD, lanes)

    def _touch(self, opcode: str, word: Words, lanes: Lanes) -> None:
        """Look up what stands between this access and the last write, or the last read."""
        parts: list[NDArray[Any]] = [lanes, word, self._threads.index, self._threads.barriers]
        active, words, thread, interval, warp_interval = np.broadcast_arrays(
            *parts, self._warp_interval
        )
        self._reads.grow(len(active))
        self._writes.grow(len(active))
        at = (np.nonzero(active)[0], words[active])
        if len(self._writes.thread) > len(active):
            return self._touch(opcode, word, np.broadcast_to(lanes, self._threads.shape))
        who = Touching(
            thread[active], interval[active], warp_interval[active], opcode in ("atom", "red")
        )
        if opcode == "ld":
            self._raise("it reads a word that nothing wrote", self._writes.thread[at] == NOBODY, active)
        self._raise("race with a write, no barrier between", self._writes.unordered(at, who), active)
        if opcode == "ld":
            self._reads.record(at, who)
            return None
        self._raise("race with a read, no barrier between", self._reads.unordered(at, who), active)
        self._writes.record(at, who)
        several = self._writes.thread[at] == SEVERAL
        self._raise("several threads write one word", several & (opcode == "st"), active)
        return None

    def _raise(self, reason: str, wrong: NDArray[np.bool_], active: Lanes) -> None:
        if wrong.any():
            lanes = np.zeros(active.shape, np.bool_)
            lanes[active] = wrong
            raise Violation(reason, lanes)

    def _outside(self, address: Addresses, size: int, lanes: Lanes) -> bool:
        """Tell whether the memory itself will refuse this access, with a better message."""
        return bool((lanes & ((address < 0) | (address + size > self._words * WORD))).any())
