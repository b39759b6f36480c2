"""Memory of the GPU with guard bytes on both sides of every array: a write outside changes them.

Hardware refuses an access only outside of what the process owns, and an array's neighbours belong
to it. An array is looked at when somebody asks, and once more when it is given up.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from harness.devices import Array, address_of
from kernels import Kernel

GUARD: Final = 512  # bytes on either side: the alignment that an allocation has is kept
PATTERN: Final = 0xC5


class OutOfBounds(AssertionError):
    """A kernel wrote outside an array; the message names the array, the side and the place."""


class GuardedMemory:
    """Allocates arrays and looks after their guards.

    `uses` is for whoever launches: the kernel and parameter that an address was last given to.
    """

    def __init__(self, cupy: Any) -> None:
        self.uses: dict[int, tuple[Kernel, str]] = {}
        self._cupy, self._runtime = cupy, cupy.cuda.runtime
        self._live: dict[int, tuple[int, str]] = {}  # address: bytes, dtype and shape
        self._damage: list[str] = []

    def filled(self, shape: int | tuple[int, ...], dtype: DTypeLike, byte: int) -> Array:
        """Return an array with `byte` in every byte, its guards set."""
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        memory = self._cupy.cuda.alloc(size + 2 * GUARD)
        address = int(memory.ptr) + GUARD
        self._runtime.memsetAsync(address - GUARD, PATTERN, size + 2 * GUARD, 0)
        if size:
            self._runtime.memsetAsync(address, byte, size, 0)
        array: Array = self._cupy.ndarray(shape, dtype, memptr=memory + GUARD)
        lengths = list(shape) if isinstance(shape, tuple) else [shape]
        self._live[address] = size, f"{np.dtype(dtype)}{lengths}"
        # The finalizer holds the memory, so that the guards are still there when it looks.
        weakref.finalize(array, self._given_up, address, memory).atexit = False
        return array

    def copied(self, values: NDArray[Any]) -> Array:
        """Return a copy of `values`, its guards set."""
        host = np.ascontiguousarray(values)
        array = self.filled(values.shape, values.dtype, PATTERN)
        if host.nbytes:
            kind = self._runtime.memcpyHostToDevice
            self._runtime.memcpy(address_of(array), host.ctypes.data, host.nbytes, kind)
        return array

    def repeated(self, values: NDArray[Any], size: int) -> Array:
        """Return `size` elements, `values` again and again, its guards set."""
        if size and not values.size:
            raise ValueError(f"nothing to repeat: {size} elements of an empty array")
        host = np.ascontiguousarray(values.reshape(-1)[:size])
        array = self.filled(size, values.dtype, PATTERN)
        start, filled, whole = address_of(array), host.nbytes, size * host.itemsize
        if filled:
            kind = self._runtime.memcpyHostToDevice
            self._runtime.memcpy(start, host.ctypes.data, filled, kind)
        while filled < whole:
            more = min(filled, whole - filled)
            kind = self._runtime.memcpyDeviceToDevice
            self._runtime.memcpyAsync(start + filled, start, more, kind, 0)
            filled += more
        return array

    def verify(self) -> None:
        """Look at the guards of all arrays, and report those given up since the last time.

        Raises
        ------
        OutOfBounds
            Some are not as they were set; they are set again, so that each is reported once.
        """
        for address in sorted(self._live):
            if address in self._live:  # a garbage collection may have taken it meanwhile
                self._look(address)
        damage, self._damage = self._damage, []
        if damage:
            raise OutOfBounds(
                f"{'; '.join(damage)}: some thread's index is out of range; run that launch on the "
                "emulated device, which names it"
            )

    def _given_up(self, address: int, memory: Any) -> None:
        # If the context is dead, whoever killed it is told so by the next call.
        with suppress(self._runtime.CUDARuntimeError):
            self._look(address)
        self.uses.pop(address, None)
        del self._live[address], memory

    def _look(self, address: int) -> None:
        size, name = self._live[address]
        for side, offset in self._changed(address, size):
            used = self._last_use(range(address, address + max(size, 1)))
            self._damage.append(f"byte {offset:+d} {side} {name} at {address:#x}{used} was written")

    def _last_use(self, within: range) -> str:
        uses = [use for address, use in self.uses.items() if address in within]
        return f" (argument {uses[-1][1]!r} of {uses[-1][0]})" if uses else ""

    def _changed(self, address: int, size: int) -> Iterator[tuple[str, int]]:
        """Return the side, and the byte next to the array, of each guard that was written."""
        guard = np.zeros(GUARD, np.uint8)
        for side, start in (("before", address - GUARD), ("after", address + size)):
            kind = self._runtime.memcpyDeviceToHost
            self._runtime.memcpy(guard.ctypes.data, start, GUARD, kind)
            changed = np.flatnonzero(guard != PATTERN)
            if changed.size:
                self._runtime.memsetAsync(start, PATTERN, GUARD, 0)
                yield side, int(changed[-1]) - GUARD if side == "before" else int(changed[0]) + 1
