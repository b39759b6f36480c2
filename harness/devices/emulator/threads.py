"""Where every thread of some blocks stands: a program counter per lane, the lowest runs first.

That order is all there is to divergence and reconvergence: lanes that went separate ways meet again
at the first block both reach, since a compiler lays code out in the order it runs.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

WARP: Final = 32
DONE: Final = np.iinfo(np.int32).max
SPECIAL_REGISTERS: Final = frozenset(
    {"%laneid"}
    | {f"%{name}.{axis}" for name in ("tid", "ntid", "ctaid", "nctaid") for axis in "xyz"}
)

Lanes = NDArray[np.bool_]
Values = NDArray[Any]


class Violation(Exception):
    """Some lanes did what hardware forbids; `lanes` says which."""

    def __init__(self, reason: str, lanes: Lanes) -> None:
        super().__init__(reason)
        self.lanes = lanes


class BarrierViolation(Violation):
    """A block waits at the end of basic block `block - 1` for the threads in `lanes`."""

    def __init__(self, block: int, lanes: Lanes) -> None:
        super().__init__("a thread of the block never reaches it", lanes)
        self.block = block


class Threads:
    """The threads of `blocks` blocks as arrays that broadcast to (blocks, warps, 32).

    An array holds one block for all as long as the blocks agree: NumPy's broadcasting is the
    machine's uniform datapath.
    """

    def __init__(self, blocks: int, size: int) -> None:
        self.blocks = blocks
        warps = -(-size // WARP)
        self.index = np.arange(warps * WARP, dtype=np.int64).reshape(1, warps, WARP)
        self.exists: Lanes = self.index < size
        self.pc = np.where(self.exists, np.int32(0), np.int32(DONE))
        self.waiting: Lanes = np.zeros_like(self.exists)
        self.barriers = 0  # passed so far; blocks that wait are released together

    @property
    def shape(self) -> tuple[int, int, int]:
        """(blocks, warps, 32)."""
        return (self.blocks, *self.index.shape[1:])

    @property
    def running(self) -> Lanes:
        """The lanes that have not left."""
        return np.not_equal(self.pc, DONE)

    def next(self) -> tuple[int, Lanes] | None:
        """Return the lowest program counter and the lanes that stand there; None when all are done.

        Raises
        ------
        BarrierViolation
            Nobody can run, and some block's barrier lacks threads.
        """
        while True:
            self.pc = uniform(self.pc)
            ready = np.where(self.waiting, np.int32(DONE), self.pc)
            lowest = int(ready.min())
            if lowest != DONE:
                return lowest, uniform(ready == lowest)
            if not self.waiting.any():
                return None
            self._release()

    def go(self, block: int, lanes: Lanes) -> None:
        """Set the program counter of `lanes`."""
        self.pc = np.where(lanes, np.int32(block), self.pc)

    def wait(self, lanes: Lanes) -> None:
        """Stop `lanes` until their whole block waits."""
        self.waiting = uniform(self.waiting | lanes)

    def _release(self) -> None:
        """Nobody can run: every block that waits must wait as a whole, at one barrier."""
        pc, waiting, exists = np.broadcast_arrays(self.pc, self.waiting, self.exists)
        stopped = waiting.any(axis=(1, 2), keepdims=True)
        place = np.where(waiting, pc, DONE).min(axis=(1, 2), keepdims=True)
        missing = stopped & exists & ~(waiting & (pc == place))
        if missing.any():
            raise BarrierViolation(int(place[missing.any(axis=(1, 2))][0, 0, 0]), missing)
        self.barriers += 1
        self.waiting = np.zeros_like(self.exists)


def uniform(values: NDArray[Any]) -> NDArray[Any]:
    """Return one block's values if all blocks hold the same."""
    if len(values) > 1 and (values == values[:1]).all():
        return values[:1]
    return values


def special_registers(
    threads: Threads, first: int, grid: int, block: int
) -> dict[str, NDArray[np.int64]]:
    """Return the special registers of blocks from `first` on: per lane, per block, or one value."""
    zero = np.zeros((1, 1, 1), np.int64)
    return {
        **{f"%{name}.{axis}": zero for name in ("tid", "ctaid") for axis in "yz"},
        **{f"%{name}.{axis}": zero + 1 for name in ("ntid", "nctaid") for axis in "yz"},
        "%tid.x": threads.index,
        "%laneid": threads.index % WARP,
        "%ctaid.x": np.arange(first, first + threads.blocks).reshape(-1, 1, 1),
        "%ntid.x": zero + block,
        "%nctaid.x": zero + grid,
    }
