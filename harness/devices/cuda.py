"""A GPU through CuPy: memory, launches of NVRTC's machine code, the time of one kernel.

CuPy only moves bytes and launches here. None of its array operations is used: they would compile
kernels of their own, run them beside ours, and fill a cache in the user's home.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from harness.devices import Array, Launch, Routine, address_of
from harness.devices.arguments import pack
from harness.devices.clocks import Clock, choose
from harness.devices.driver import open_cupy
from harness.devices.errors import DeadContext, Guard, OutOfMemory, Refused
from harness.devices.flush import FLUSH, forget_persisting, make_flush
from harness.devices.guarded import GuardedMemory
from kernels import Binary, Kernel, compile_kernel, compile_source, parameters

__all__ = ["CudaDevice", "DeadContext", "OutOfMemory", "Refused"]

SOURCE: Final = Path(__file__).with_name("cuda.cu")
NAN_BYTE: Final = 0xFF  # a float of any size whose bytes are all 0xFF is NaN
POISON_BYTE: Final = 0xA5
COPY_BYTES: Final = 1 << 28
COPY_SAMPLES: Final = 11
BULK_COPIES: Final = 9  # major compute capability

MEMORY_CLOCK_KHZ: Final = 36  # CUDA's numbers of two device attributes
MEMORY_BUS_BITS: Final = 37


class CudaDevice:
    """GPU 0 of those visible.

    Attributes
    ----------
    name, architecture, multiprocessors
        As "NVIDIA H200", "sm_90", 132.
    clock, clock_reason
        "cupti" or "events", and why.
    peak_bandwidth
        Bytes per second by the driver's memory clock and bus width, two transfers a cycle; 0.0 if
        the driver does not say.
    bulk_copies
        Bytes of a block's shared memory that cp.async.bulk can fill; 0 before sm_90.
    memory_bytes, l2_bytes, bus_id
        Size of the memory and of L2; PCI address, which NVML knows the GPU by.

    Raises
    ------
    NoGPU
        There is none that CuPy can use; the message says what to do.
    kernels.CompilerMissing
        NVRTC cannot be loaded.
    """

    def __init__(self) -> None:
        cupy = open_cupy()
        self._cupy, self._runtime, self._driver = cupy, cupy.cuda.runtime, cupy.cuda.driver
        self._guard = Guard(cupy.cuda)
        self._dynamic_shared = self._driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self._modules: dict[tuple[object, ...], Any] = {}
        self._memory = GuardedMemory(cupy)
        self._describe()
        forget_persisting(self._runtime)
        self._flush = self._make_flush()
        self._clock: Clock = choose(cupy.cuda, self._flush, FLUSH)
        self.clock, self.clock_reason = self._clock.name, self._clock.why

    def _describe(self) -> None:
        properties = self._runtime.getDeviceProperties(0)
        self.name = str(properties["name"].decode())
        self.architecture = f"sm_{properties['major']}{properties['minor']}"
        self.multiprocessors = int(properties["multiProcessorCount"])
        has_them = int(properties["major"]) >= BULK_COPIES
        self.bulk_copies = int(properties["sharedMemPerBlockOptin"]) if has_them else 0
        self.memory_bytes = int(properties["totalGlobalMem"])
        self.l2_bytes = int(properties["l2CacheSize"])
        self.bus_id = str(self._runtime.deviceGetPCIBusId(0))
        self._limits = (
            f"a block of this GPU has at most {properties['maxThreadsPerBlock']} threads "
            f"and {properties['sharedMemPerBlockOptin']} bytes"
        )
        hertz = self._runtime.deviceGetAttribute(MEMORY_CLOCK_KHZ, 0) * 1000
        self.peak_bandwidth = hertz * 2 * self._runtime.deviceGetAttribute(MEMORY_BUS_BITS, 0) / 8

    def put(self, values: NDArray[Any]) -> Array:
        """Copy `values` to the device."""
        with self._guard(f"copying {values.nbytes} bytes to the GPU"):
            return self._memory.copied(values)

    def repeat(self, values: NDArray[Any], size: int) -> Array:
        """Return `size` elements on the device: `values`, again and again, doubled there."""
        with self._guard(f"filling {size} elements of {values.dtype}"):
            return self._memory.repeated(values, size)

    def empty(self, size: int, dtype: DTypeLike) -> Array:
        """Allocate `size` elements, poisoned: NaN for floats, 0xA5 in every byte for the rest."""
        floating = np.issubdtype(np.dtype(dtype), np.floating)
        return self._filled(size, dtype, NAN_BYTE if floating else POISON_BYTE)

    def get(self, array: Array) -> NDArray[Any]:
        """Copy `array` back, once all launches before it are done.

        Raises
        ------
        DeadContext
            One of those launches broke the context.
        """
        with self._guard("copying an array from the GPU"):
            values: NDArray[Any] = self._cupy.asnumpy(array)
        return values

    def launch(
        self, kernel: Kernel, grid: int, block: int, *arguments: Any, shared: int = 0
    ) -> None:
        """Queue `kernel` on `grid` blocks of `block` threads, without waiting for it.

        `shared` is the dynamic shared memory of a block, in bytes.

        Raises
        ------
        harness.devices.arguments.ArgumentError
            An argument does not fit its parameter.
        Refused
            The GPU cannot run such a grid, block or amount of shared memory.
        DeadContext
            An earlier launch broke the context.
        """
        self._ready(kernel, grid, block, arguments, shared)()

    def seconds(self, launch: Launch) -> float:
        """Time one run of `launch` alone, with a cold and clean L2.

        A library's routine takes as long as all the kernels it launches.

        Raises
        ------
        harness.devices.clocks.ClockError
            The sample holds something else than one run of this kernel.
        """
        if isinstance(launch.kernel, Routine):
            with self._guard(f"timing {launch.kernel}"):
                return self._clock.routine(self._flush, launch.kernel.call, launch.kernel.name)
        # All Python of the launch runs before the flush: afterwards the GPU waits for the host.
        shape = launch.grid, launch.block
        run = self._ready(launch.kernel, *shape, launch.arguments, launch.shared)
        with self._guard(f"timing {launch.kernel}"):
            return self._clock.kernel(self._flush, run, launch.kernel.name)

    def copy(self, source: Array, target: Array, size: int) -> Callable[[], None]:
        """Return the card's own copy of `size` bytes, ready to be queued."""
        ends = address_of(target), address_of(source)
        kind = self._runtime.memcpyDeviceToDevice
        return lambda: self._runtime.memcpyAsync(*ends, size, kind, 0)

    def copy_bandwidth(self) -> float:
        """Return bytes per second, read and written, of a device-to-device copy of 2^28 bytes.

        The median of 11 copies, each with a cold L2.
        """
        source, target = (self._filled(COPY_BYTES, np.uint8, POISON_BYTE) for _ in range(2))
        run = self.copy(source, target, COPY_BYTES)
        with self._guard("copying on the GPU"):
            seconds = [self._clock.copy(self._flush, run) for _ in range(COPY_SAMPLES)]
        return 2 * COPY_BYTES / median(seconds)

    def verify_canaries(self) -> None:
        """Look at the memory around every array, once all launches before are done.

        Raises
        ------
        harness.devices.guarded.OutOfBounds
            Something wrote there; the message names the array, the side and its last kernel.
        """
        with self._guard("reading the memory around the arrays"):
            self._memory.verify()

    def attribute(self, number: int) -> int:
        """Return a device attribute of the driver by CUDA's number."""
        with self._guard(f"reading device attribute {number}"):
            return int(self._runtime.deviceGetAttribute(number, 0))

    def resident_blocks(self, kernel: Kernel, block: int, shared: int = 0) -> int:
        """Return how many blocks an SM holds at once, as the driver says."""
        ask = self._driver.occupancyMaxActiveBlocksPerMultiprocessor
        with self._guard(f"asking for the resident blocks of {kernel}", self._limits):
            return int(ask(self._function(kernel, shared).ptr, block, shared))

    def _filled(self, size: int, dtype: DTypeLike, byte: int) -> Array:
        with self._guard(f"allocating {size} elements of {np.dtype(dtype)}"):
            return self._memory.filled(size, dtype, byte)

    def _ready(
        self, kernel: Kernel, grid: int, block: int, arguments: tuple[Any, ...], shared: int
    ) -> Callable[[], None]:
        """Return the launch with everything done that can be done before it."""
        what = f"{kernel} on {grid} x {block} threads, {shared} bytes of dynamic shared memory"
        if min(grid, block) < 1:  # CuPy would round both up to one
            raise Refused(f"{what}: a launch needs at least one block of one thread")
        packed = pack(kernel, arguments)
        for parameter, value in zip(parameters(kernel), packed, strict=True):
            if parameter.type.endswith("*"):
                self._memory.uses[int(value)] = kernel, parameter.name
        with self._guard(what, self._limits):
            function = self._function(kernel, shared)

        def run() -> None:
            with self._guard(what, self._limits):
                function((grid,), (block,), packed, shared)
            self._guard.last_launch = what

        return run

    def _function(self, kernel: Kernel, shared: int) -> Any:
        key = kernel.source, kernel.defines
        if key not in self._modules:
            self._modules[key] = _load(compile_kernel(kernel, self.architecture))
        function = self._modules[key].get_function(kernel.name)
        if shared:
            self._driver.funcSetAttribute(function.ptr, self._dynamic_shared, shared)
        return function

    def _make_flush(self) -> Callable[[], None]:
        size = 2 * self.l2_bytes
        memory = self._filled(size, np.uint8, POISON_BYTE), self._filled(1, np.uint32, POISON_BYTE)
        function = _load(compile_source(SOURCE, (), self.architecture)).get_function(FLUSH)
        return make_flush(function, memory, size, self.multiprocessors)


def _load(binary: Binary) -> Any:
    # The cubin, never the PTX: a driver refuses PTX of a toolkit newer than itself.
    from cupy.cuda.function import Module

    module = Module()
    module.load(binary.cubin)
    return module
