"""Two devices behind one interface: a GPU through CuPy, or the same compiled kernel emulated.

The GPU adds time (`seconds`), the emulated device adds counts (`count`). Both take the same
launches, so a property tested on one runs on the other.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import DTypeLike, NDArray

from kernels import Kernel


class NoGPU(RuntimeError):
    """No usable GPU; the message says why, and what to do."""


class Array(Protocol):
    """Memory of a device; 1-D slices are views. Which memory: the CUDA array interface says."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    def __getitem__(self, index: slice) -> Array: ...


def address_of(array: Array) -> int:
    """Return where an array begins in the memory of its device."""
    return int(array.__cuda_array_interface__["data"][0])


class Device(Hashable, Protocol):
    """What a suite may ask of a device."""

    name: str
    architecture: str
    multiprocessors: int
    bulk_copies: int  # bytes of a block's shared memory that they can fill; 0: there are none

    def put(self, values: NDArray[Any]) -> Array:
        """Copy `values` to the device."""

    def repeat(self, values: NDArray[Any], size: int) -> Array:
        """Return `size` elements on the device: `values`, again and again."""

    def empty(self, size: int, dtype: DTypeLike) -> Array:
        """Allocate `size` elements, poisoned: NaN, or a pattern no kernel here computes."""

    def get(self, array: Array) -> NDArray[Any]:
        """Copy `array` back, once all launches before it are done."""

    def launch(
        self, kernel: Kernel, grid: int, block: int, *arguments: Any, shared: int = 0
    ) -> None:
        """Run `kernel` on `grid` blocks of `block` threads and `shared` bytes of dynamic memory."""


@dataclass(frozen=True)
class Routine:
    """A library's function, its arguments bound; which kernels it launches is the library's affair.

    `call` queues them without waiting. Only a GPU can time it.
    """

    name: str
    call: Callable[[], None]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Launch:
    """A launch ready to be timed: what runs, on what, the bytes it must move, how to check it.

    `bytes` is the least DRAM traffic, each input read once and each output written once, and `flop`
    the arithmetic that the result takes, 0 if nobody asks. A Routine has a grid and block of 0.
    `shared` is the dynamic shared memory of a block, in bytes. `check` launches on poisoned outputs
    and raises AssertionError if the result is wrong.
    """

    kernel: Kernel | Routine
    grid: int
    block: int
    arguments: tuple[Any, ...]
    bytes: int
    check: Callable[[], None]
    flop: int = 0
    shared: int = 0

    def on(self, device: Device) -> None:
        """Launch, without waiting."""
        if isinstance(self.kernel, Routine):
            self.kernel.call()
        else:
            device.launch(self.kernel, self.grid, self.block, *self.arguments, shared=self.shared)


class Workload(Protocol):
    """Something to time; the same name means the same work, on any device and in any baseline."""

    @property
    def name(self) -> str: ...
    def prepare(self, device: Device) -> Launch:
        """Allocate and fill the inputs (random, never zeros) and return the launch."""


class TimedDevice(Device, Protocol):
    """A device with a clock."""

    clock: str
    peak_bandwidth: float  # bytes per second, 0.0 if unknown

    def seconds(self, launch: Launch) -> float:
        """Time one run of `launch` alone, with a cold and clean L2."""

    def copy_bandwidth(self) -> float:
        """Measure the bytes per second, read and written, of a copy within the device."""

    def attribute(self, number: int) -> int:
        """Return a device attribute of the driver by CUDA's number."""
