"""The shared memory of a block, with its arrays far apart so that no index leads into the next.

Only the addresses are apart: an array begins at the byte of the block where hardware has it, so
that it has the banks, and the block the size, that hardware gives it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from harness.devices.emulator.declarations import Variable
from harness.devices.emulator.memory import Addresses, Combine, check_alignment, update_in_order
from harness.devices.emulator.threads import Lanes, Values, Violation

APART: Final = 1 << 20  # address space of one array, in bytes; a block has less
WHOLE: Final = Variable(0, None)  # where a kernel names no array


class SharedMemory:
    """The shared memory of all blocks that run together: one row of bytes per block.

    Attributes
    ----------
    addresses
        Where each variable seems to be.
    """

    def __init__(self, blocks: int, size: int, variables: Mapping[str, Variable]) -> None:
        self.size = size
        self.bytes = np.full((blocks, -(-max(size, 1) // 16) * 16), 0xFF, np.uint8)
        self._names = {v: name for name, v in variables.items()} or {WHOLE: "its memory"}
        places = {variable: i for i, variable in enumerate(self._names)}
        self.addresses = {n: places[v] * APART + v.offset for n, v in variables.items()}
        self._starts = np.array([v.offset for v in self._names])
        self._ends = np.array([v.end(size) for v in self._names])

    def offsets(self, address: Addresses, size: int, lanes: Lanes) -> Addresses:
        """Return the bytes of the block that the lanes access, each inside one variable."""
        address = address & 2**32 - 1  # 32-bit addresses wrap, and compilers count on it
        owner = address // APART
        offset: Addresses = address % APART
        known = np.minimum(owner, len(self._starts) - 1)
        outside = (offset < self._starts[known]) | (offset + size > self._ends[known])
        outside = lanes & (outside | (owner != known))
        if outside.any():
            first = tuple(np.argwhere(outside)[0])
            owner, offset = (np.broadcast_to(a, outside.shape)[first] for a in (owner, offset))
            raise Violation(self._where(int(owner), int(offset), size), outside)
        return offset

    def place(self, address: Addresses, size: int, lanes: Lanes) -> SharedPlace:
        """Go to bytes that `offsets` gave."""
        check_alignment(address, size, lanes)
        return SharedPlace(self.bytes, *np.broadcast_arrays(address, lanes))

    def _where(self, owner: int, offset: int, size: int) -> str:
        """Say how far an access is from its variable, and what hardware has there."""
        if owner >= len(self._starts) or offset + size > self.size:
            return f"outside the block's {self.size} bytes of shared memory"
        start, end = int(self._starts[owner]), int(self._ends[owner])
        past, names = offset + size - end, list(self._names.values())
        side = f"ends {past} bytes past" if past > 0 else f"begins {start - offset} bytes before"
        at = offset + size - 1 if past > 0 else offset
        there = [n for n, a, b in zip(names, self._starts, self._ends, strict=True) if a <= at < b]
        there += ["the gap between two variables"]
        return f"the access {side} the {end - start} bytes of {names[owner]}, in {there[0]}"


class SharedPlace:
    """Addresses in each block's own bytes, one row for all blocks if they agree."""

    def __init__(self, memory: NDArray[np.uint8], address: Addresses, lanes: Lanes) -> None:
        self._memory = memory
        self._address = address
        self._lanes = lanes

    def load(self, dtype: np.dtype[Any], width: int) -> list[Values]:
        """See Place."""
        view = self._memory.view(dtype)
        index = np.where(self._lanes, self._address, 0) // dtype.itemsize
        if len(index) == 1:
            return [view.take(index[0] + i, axis=1) for i in range(width)]
        row = np.arange(len(view))[:, None, None]
        return [view[row, index + i] for i in range(width)]

    def store(self, elements: Sequence[Values]) -> None:
        """See Place."""
        row: Any = np.nonzero(self._lanes)[0] if len(self._lanes) > 1 else slice(None)
        for i, values in enumerate(elements):
            view = self._memory.view(values.dtype)
            index = self._address[self._lanes] // values.itemsize + i
            if len(self._lanes) == 1:
                values = np.broadcast_to(values, (len(view), *self._lanes.shape[1:]))
                view[:, index] = values[:, self._lanes[0]]
            else:
                view[row, index] = np.broadcast_to(values, self._lanes.shape)[self._lanes]

    def update(self, combine: Combine, operands: Sequence[Values]) -> Values:
        """See Place."""
        view, lanes = self._memory.view(operands[0].dtype), self._lanes
        index = np.nonzero(lanes)[0] * view.shape[1] + self._address[lanes] // view.itemsize
        found = np.zeros(lanes.shape, view.dtype)
        chosen = [np.broadcast_to(values, lanes.shape)[lanes] for values in operands]
        found[lanes] = update_in_order(view.reshape(-1), index, combine, chosen)
        return found
