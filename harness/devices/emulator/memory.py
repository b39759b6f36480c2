"""The memory spaces of the emulated device: every access is in bounds and aligned, or a fault.

Lanes are arrays that broadcast to (blocks, warps, 32). An address that is the same in all blocks has
the shape (1, warps, 32) and is looked up once.
"""

from __future__ import annotations

import bisect
import weakref
from collections.abc import Iterator
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from harness.devices.emulator.threads import Lanes, Violation

Addresses = NDArray[np.int64]
Values = NDArray[Any]

ALIGNMENT: Final = 256  # of an allocation, as cudaMalloc gives
RED_ZONE: Final = 256  # bytes that belong to nobody between two allocations


class Space(Protocol):
    """What the machine does with a memory space."""

    def load(self, address: Addresses, dtype: np.dtype[Any], lanes: Lanes) -> Values: ...
    def store(self, address: Addresses, values: Values, lanes: Lanes) -> None: ...
    def update(
        self, address: Addresses, combine: np.ufunc, values: Values, lanes: Lanes
    ) -> Values: ...


class Allocation:
    """Bytes at a device address, padded so that any scalar type can view them."""

    def __init__(self, address: int, size: int) -> None:
        self.address = address
        self.size = size
        self.bytes = np.zeros(-(-max(size, 1) // 16) * 16, np.uint8)


class GlobalMemory:
    """Allocations by address. Addresses are never used twice, so a dead one is always found."""

    def __init__(self) -> None:
        self._next = ALIGNMENT
        self._starts: list[int] = []
        self._live: weakref.WeakValueDictionary[int, Allocation] = weakref.WeakValueDictionary()

    def allocate(self, size: int) -> Allocation:
        """Return `size` bytes, alive as long as somebody holds the allocation."""
        allocation = Allocation(self._next, size)
        self._starts = [start for start in self._starts if start in self._live]
        self._starts.append(allocation.address)
        self._live[allocation.address] = allocation
        self._next += -(-(size + RED_ZONE) // ALIGNMENT) * ALIGNMENT
        return allocation

    def load(self, address: Addresses, dtype: np.dtype[Any], lanes: Lanes) -> Values:
        """Gather; lanes outside `lanes` get whatever stands at the start of the allocation."""
        result: Values | None = None
        for allocation, mine in self._owners(address, dtype.itemsize, lanes):
            index = np.where(mine, address - allocation.address, 0) // dtype.itemsize
            values = allocation.bytes.view(dtype).take(index)
            result = values if result is None else np.where(mine, values, result)
        assert result is not None, "a step runs at least one lane"
        return result

    def store(self, address: Addresses, values: Values, lanes: Lanes) -> None:
        """Scatter; where several lanes meet, the last one wins (hardware: any one)."""
        address, values, lanes = np.broadcast_arrays(address, values, lanes)
        for allocation, mine in self._owners(address, values.itemsize, lanes):
            index = (address[mine] - allocation.address) // values.itemsize
            allocation.bytes.view(values.dtype)[index] = values[mine]

    def update(
        self, address: Addresses, combine: np.ufunc, values: Values, lanes: Lanes
    ) -> Values:
        """Combine lane after lane, in lane order; return what each lane found (hardware: any order)."""
        address, values, lanes = np.broadcast_arrays(address, values, lanes)
        found = np.zeros(address.shape, values.dtype)
        for allocation, mine in self._owners(address, values.itemsize, lanes):
            index = (address[mine] - allocation.address) // values.itemsize
            view = allocation.bytes.view(values.dtype)
            found[mine] = _update_in_order(view, index, combine, values[mine])
        return found

    def _owners(
        self, address: Addresses, size: int, lanes: Lanes
    ) -> Iterator[tuple[Allocation, Lanes]]:
        """Yield each allocation touched with the lanes that touch it; almost always one."""
        _check_alignment(address, size, lanes)
        pending = np.broadcast_to(lanes, np.broadcast_shapes(address.shape, lanes.shape))
        while pending.any():
            active = address if pending.all() else np.broadcast_to(address, pending.shape)[pending]
            allocation = self._owner(int(active.min()))
            low = allocation.address if allocation else int(active.min())
            end = low + (allocation.size if allocation else 0)
            mine = pending & (address >= low) & (address + size <= end)
            if allocation is None or not mine.any():
                outside = pending & (address == active.min())
                raise Violation(f"address {int(active.min()):#x} is {self._where(active)}", outside)
            yield allocation, mine
            pending = pending & ~mine

    def _owner(self, address: int) -> Allocation | None:
        place = bisect.bisect_right(self._starts, address) - 1
        return self._live.get(self._starts[place]) if place >= 0 else None

    def _where(self, active: Addresses) -> str:
        address = int(active.min())
        owner = self._owner(address)
        if owner is None:
            return "in no allocation (null, freed, or never allocated)"
        past = address - owner.address - owner.size
        return f"{past} bytes past the end of the {owner.size} bytes at {owner.address:#x}"


class SharedMemory:
    """The shared memory of all blocks that run together: one row of bytes per block."""

    def __init__(self, blocks: int, size: int) -> None:
        self.size = size
        self.bytes = np.full((blocks, -(-max(size, 1) // 16) * 16), 0xFF, np.uint8)

    def load(self, address: Addresses, dtype: np.dtype[Any], lanes: Lanes) -> Values:
        """Gather; lanes outside `lanes` get the first word."""
        self._check(address, dtype.itemsize, lanes)
        index = np.where(lanes, address, 0) // dtype.itemsize
        view = self.bytes.view(dtype)
        if index.shape[0] == 1:
            return view.take(index[0], axis=1)
        return view[np.arange(len(view))[:, None, None], index]

    def store(self, address: Addresses, values: Values, lanes: Lanes) -> None:
        """Scatter; where several lanes meet, the last one wins (hardware: any one)."""
        self._check(address, values.itemsize, lanes)
        address, lanes = np.broadcast_arrays(address, lanes)
        index = address[lanes] // values.itemsize
        values = np.broadcast_to(values, (len(self.bytes), *lanes.shape[1:]))
        view = self.bytes.view(values.dtype)
        if len(lanes) == 1:
            view[:, index] = values[:, lanes[0]]
        else:
            view[np.nonzero(lanes)[0], index] = values[lanes]

    def update(
        self, address: Addresses, combine: np.ufunc, values: Values, lanes: Lanes
    ) -> Values:
        """Combine lane after lane, in lane order; return what each lane found."""
        self._check(address, values.itemsize, lanes)
        shape = (len(self.bytes), *lanes.shape[1:])
        address, values, lanes = (np.broadcast_to(a, shape) for a in (address, values, lanes))
        view = self.bytes.view(values.dtype)
        index = np.nonzero(lanes)[0] * view.shape[1] + address[lanes] // values.itemsize
        found = np.zeros(shape, values.dtype)
        found[lanes] = _update_in_order(view.reshape(-1), index, combine, values[lanes])
        return found

    def _check(self, address: Addresses, size: int, lanes: Lanes) -> None:
        _check_alignment(address, size, lanes)
        outside = lanes & ((address < 0) | (address + size > self.size))
        if outside.any():
            raise Violation(f"outside the block's {self.size} bytes of shared memory", outside)


def _check_alignment(address: Addresses, size: int, lanes: Lanes) -> None:
    crooked = lanes & (address % size != 0)
    if crooked.any():
        raise Violation(f"not aligned to the {size} bytes of the access", crooked)


def _update_in_order(
    memory: Values, index: NDArray[np.int64], combine: np.ufunc, values: Values
) -> Values:
    """Apply `combine` element by element; `accumulate` is sequential, so float rounding is too."""
    order = np.argsort(index, kind="stable")
    starts = np.flatnonzero(np.diff(index[order], prepend=-1))
    found = np.empty_like(values)
    for chosen in np.split(order, starts[1:]):
        place = index[chosen[0]]
        operands = np.concatenate([memory[place : place + 1], values[chosen]])
        chain = combine.accumulate(operands, dtype=values.dtype)
        found[chosen], memory[place] = chain[:-1], chain[-1]
    return found
