"""What all memory spaces share, and global memory: every access is in bounds and aligned.

Lanes are arrays that broadcast to (blocks, warps, 32). An address that is the same in all blocks
has the shape (1, warps, 32) and is looked up once.
"""

from __future__ import annotations

import bisect
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from harness.devices.emulator.threads import Lanes, Values, Violation

Addresses = NDArray[np.int64]
Combine = Callable[..., Values]  # (what is there, *operands) -> what will be

FIRST_ADDRESS: Final = 1 << 20  # what a null pointer and an index can reach lies below
ALIGNMENT: Final = 256  # of an allocation, as cudaMalloc gives
RED_ZONE: Final = 256  # bytes that belong to nobody between two allocations


class Place(Protocol):
    """Where the lanes of one access go, already checked."""

    def load(self, dtype: np.dtype[Any], width: int) -> list[Values]:
        """Gather `width` consecutive elements; lanes without access get any value."""

    def store(self, elements: Sequence[Values]) -> None:
        """Scatter consecutive elements; where lanes meet the last one wins (hardware: any)."""

    def update(self, combine: Combine, operands: Sequence[Values]) -> Values:
        """Combine in lane order (hardware: any order) and return what each lane found.

        Here every block has its own row: blocks that do the same still do it one after another.
        """


class Space(Protocol):
    """A memory as the machine sees it."""

    def place(self, address: Addresses, size: int, lanes: Lanes) -> Place:
        """Check an access of `size` bytes by each of `lanes`, or raise a Violation."""


class Allocation:
    """Bytes at a device address, padded so that any scalar type can view them."""

    def __init__(self, address: int, size: int) -> None:
        self.address = address
        self.size = size
        self.bytes = np.zeros(-(-max(size, 1) // 16) * 16, np.uint8)


class GlobalMemory:
    """Allocations by address. Addresses are never used twice, so a dead one is always found."""

    def __init__(self) -> None:
        self._next = FIRST_ADDRESS
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

    def place(self, address: Addresses, size: int, lanes: Lanes) -> GlobalPlace:
        """Find the allocations that the lanes touch; almost always one."""
        check_alignment(address, size, lanes)
        return GlobalPlace(list(self._owners(address, size, lanes)))

    def _owners(
        self, address: Addresses, size: int, lanes: Lanes
    ) -> Iterator[tuple[Allocation, Lanes, Addresses]]:
        """Yield each allocation with the lanes that touch it and their offsets, else zero."""
        address, pending = np.broadcast_arrays(address, lanes)
        while pending.any():
            lowest = int(np.min(address if pending.all() else address[pending]))
            owner = self._owner(lowest)
            if owner is None or lowest + size > owner.address + owner.size:
                raise Violation(self._where(lowest, size), pending & (address == lowest))
            offset = address - owner.address
            mine = pending & (offset <= owner.size - size)
            yield owner, mine, np.where(mine, offset, 0)
            pending = pending & ~mine

    def _owner(self, address: int) -> Allocation | None:
        place = bisect.bisect_right(self._starts, address) - 1
        return self._live.get(self._starts[place]) if place >= 0 else None

    def _where(self, address: int, size: int) -> str:
        """Say how far an access is from the next live allocation."""
        gaps = []
        for start, owner in sorted(self._live.items()):
            what = f"the {owner.size} bytes at {start:#x}"
            past, before = address + size - start - owner.size, start - address
            gaps += [(past, f"ends {past} bytes past {what}")] if past > 0 else []
            gaps += [(before, f"begins {before} bytes before {what}")] if before > 0 else []
        gap, near = min(gaps, default=(RED_ZONE, ""))
        if gap >= RED_ZONE:
            near = "is in no allocation (null, freed, or never allocated)"
        return f"the access at {address:#x} {near}"


class GlobalPlace:
    """Lanes and offsets in one or more allocations."""

    def __init__(self, owners: list[tuple[Allocation, Lanes, Addresses]]) -> None:
        self._owners = owners

    def load(self, dtype: np.dtype[Any], width: int) -> list[Values]:
        """See Place."""
        first, *others = (
            (
                mine,
                [owner.bytes.view(dtype).take(offset // dtype.itemsize + i) for i in range(width)],
            )
            for owner, mine, offset in self._owners
        )
        results = first[1]
        for mine, values in others:
            results = [np.where(mine, new, old) for new, old in zip(values, results, strict=True)]
        return results

    def store(self, elements: Sequence[Values]) -> None:
        """See Place."""
        for owner, mine, offset in self._owners:
            for i, values in enumerate(elements):
                chosen, index, values = np.broadcast_arrays(
                    mine, offset // values.itemsize + i, values
                )
                owner.bytes.view(values.dtype)[index[chosen]] = values[chosen]

    def update(self, combine: Combine, operands: Sequence[Values]) -> Values:
        """See Place."""
        dtype = operands[0].dtype
        found = np.zeros(self._owners[0][1].shape, dtype)
        for owner, mine, offset in self._owners:
            chosen = [np.broadcast_to(values, mine.shape)[mine] for values in operands]
            index = offset[mine] // dtype.itemsize
            found[mine] = update_in_order(owner.bytes.view(dtype), index, combine, chosen)
        return found


def check_alignment(address: Addresses, size: int, lanes: Lanes) -> None:
    """Require what hardware does: an address that is a multiple of all the bytes accessed."""
    crooked = lanes & (address & size - 1 != 0)
    if crooked.any():
        raise Violation(f"not aligned to the {size} bytes of the access", crooked)


def update_in_order(
    memory: Values, index: NDArray[np.int64], combine: Combine, operands: Sequence[Values]
) -> Values:
    """Apply `combine` in order: address by address if few are contended, else in turns."""
    order = np.argsort(index, kind="stable")
    starts = np.flatnonzero(np.diff(index[order], prepend=-1))
    counts = np.diff(starts, append=len(order))
    found = np.empty(len(index), memory.dtype)
    accumulate = getattr(combine, "accumulate", None)
    if accumulate and counts.max() > len(starts):
        for chosen in np.split(order, starts[1:]):
            place = index[chosen[0]]
            chain = np.concatenate([memory[place : place + 1], operands[0][chosen]])
            chain = accumulate(chain, dtype=memory.dtype)  # sequential: so is its rounding
            found[chosen], memory[place] = chain[:-1], chain[-1]
        return found
    for turn in range(int(counts.max())):
        chosen = order[starts[counts > turn] + turn]
        place = index[chosen]
        found[chosen] = memory[place]
        memory[place] = combine(memory[place], *(values[chosen] for values in operands))
    return found
