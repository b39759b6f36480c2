"""Memory of the GPU with guard bytes on both sides of every array: a write outside changes them.

Hardware refuses an access only outside of what the process owns, and an array's neighbours belong
to it. The pattern is no float anyone adds up and no NaN, so that a copy of it would show too.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from harness.devices import Array

GUARD: Final = 512  # bytes on either side: the alignment that an allocation has is kept
PATTERN: Final = 0xC5


class OutOfBounds(AssertionError):
    """A kernel wrote outside an array; the message names the array, the side and the place."""


class GuardedMemory:
    """Allocates arrays and knows those that are alive, by address."""

    def __init__(self, cupy: Any) -> None:
        self._cupy, self._runtime = cupy, cupy.cuda.runtime
        self._live: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()

    def filled(self, shape: int | tuple[int, ...], dtype: DTypeLike, byte: int) -> Array:
        """Return an array with `byte` in every byte, its guards set."""
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        memory = self._cupy.cuda.alloc(size + 2 * GUARD)
        self._runtime.memsetAsync(memory.ptr, PATTERN, size + 2 * GUARD, 0)
        if size:
            self._runtime.memsetAsync(memory.ptr + GUARD, byte, size, 0)
        array: Array = self._cupy.ndarray(shape, dtype, memptr=memory + GUARD)
        self._live[int(memory.ptr) + GUARD] = array
        return array

    def copied(self, values: NDArray[Any]) -> Array:
        """Return a copy of `values`, its guards set."""
        host = np.ascontiguousarray(values)
        array = self.filled(values.shape, values.dtype, PATTERN)
        address = array.__cuda_array_interface__["data"][0]
        if host.nbytes:
            self._runtime.memcpy(
                address, host.ctypes.data, host.nbytes, self._runtime.memcpyHostToDevice
            )
        return array

    def verify(self, use: Callable[[int, int], str]) -> None:
        """Compare all guards; `use(first, end)` says what an address range was last used as.

        Raises
        ------
        OutOfBounds
            Some are not as they were set.
        """
        for address, array in sorted(self._live.items()):
            for side, offset in self._damage(address, int(array.nbytes)):
                raise OutOfBounds(
                    f"byte {offset:+d} {side} {array.dtype}{list(array.shape)} at {address:#x}"
                    f"{use(address, address + int(array.nbytes))} was written: some thread's index "
                    "is out of range; run that launch on the emulated device, which names it"
                )

    def _damage(self, address: int, size: int) -> Iterator[tuple[str, int]]:
        for side, start in (("before", address - GUARD), ("after", address + size)):
            guard = np.zeros(GUARD, np.uint8)
            kind = self._runtime.memcpyDeviceToHost
            self._runtime.memcpy(guard.ctypes.data, start, GUARD, kind)
            changed = np.flatnonzero(guard != PATTERN)
            if changed.size:
                near = changed[-1] - GUARD if side == "before" else changed[0] + 1
                yield side, int(near)
