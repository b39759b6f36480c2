"""A GPU through CuPy: memory, launches of NVRTC's machine code, the time of one kernel.

CuPy only moves bytes and launches here. None of its array operations is used: they would compile
kernels of their own, run them beside ours, and fill a cache in the user's home.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from harness.devices import Array, Launch, Routine
from harness.devices.arguments import pack
from harness.devices.clocks import Clock, choose
from harness.devices.driver import open_cupy
from kernels import Binary, Kernel, compile_kernel, compile_source

SOURCE: Final = Path(__file__).with_name("cuda.cu")
FLUSH: Final = "read_all"
FLUSH_BLOCK: Final = 256
FLUSH_THREADS: Final = 2048  # per multiprocessor
FLUSH_LOAD: Final = 16  # bytes
NAN_BYTE: Final = 0xFF  # a float of any size whose bytes are all 0xFF is NaN
POISON_BYTE: Final = 0xA5
COPY_BYTES: Final = 1 << 28
COPY_SAMPLES: Final = 11

MEMORY_CLOCK_KHZ: Final = 36  # CUDA's numbers of two device attributes
MEMORY_BUS_BITS: Final = 37


class Refused(RuntimeError):
    """CUDA refused an operation; the context lives on."""


class DeadContext(RuntimeError):
    """A kernel broke the context: every later CUDA call of this process fails; end the session."""


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
    l2_bytes, bus_id
        Size of L2; PCI address, which NVML knows the GPU by.

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
        self._errors = (self._runtime.CUDARuntimeError, self._driver.CUDADriverError)
        self._death, self._last_launch = "", "none"
        self._dynamic_shared = self._driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self._modules: dict[tuple[object, ...], Any] = {}
        self._describe()
        self._flush = self._make_flush()
        self._clock: Clock = choose(cupy.cuda, self._flush, FLUSH)
        self.clock, self.clock_reason = self._clock.name, self._clock.why

    def _describe(self) -> None:
        properties = self._runtime.getDeviceProperties(0)
        self.name = str(properties["name"].decode())
        self.architecture = f"sm_{properties['major']}{properties['minor']}"
        self.multiprocessors = int(properties["multiProcessorCount"])
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
            array: Array = self._cupy.asarray(values)
        return array

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
        run = self._ready(launch.kernel, launch.grid, launch.block, launch.arguments, 0)
        with self._guard(f"timing {launch.kernel}"):
            return self._clock.kernel(self._flush, run, launch.kernel.name)

    def copy_bandwidth(self) -> float:
        """Return bytes per second, read and written, of a device-to-device copy of 2^28 bytes.

        The median of 11 copies, each with a cold L2.
        """
        source = self._filled(COPY_BYTES, np.uint8, POISON_BYTE)
        target = self._filled(COPY_BYTES, np.uint8, POISON_BYTE)

        def run() -> None:
            ends = _address(target), _address(source)
            self._runtime.memcpyAsync(*ends, COPY_BYTES, self._runtime.memcpyDeviceToDevice, 0)

        with self._guard("copying on the GPU"):
            seconds = [self._clock.copy(self._flush, run) for _ in range(COPY_SAMPLES)]
        return 2 * COPY_BYTES / median(seconds)

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
            array = self._cupy.ndarray(size, dtype)
            self._runtime.memsetAsync(array.data.ptr, byte, array.nbytes, 0)
        filled: Array = array
        return filled

    def _ready(
        self, kernel: Kernel, grid: int, block: int, arguments: tuple[Any, ...], shared: int
    ) -> Callable[[], None]:
        """Return the launch with everything done that can be done before it."""
        what = f"{kernel} on {grid} x {block} threads, {shared} bytes of dynamic shared memory"
        if min(grid, block) < 1:  # CuPy would round both up to one
            raise Refused(f"{what}: a launch needs at least one block of one thread")
        packed = pack(kernel, arguments)
        with self._guard(what, self._limits):
            function = self._function(kernel, shared)

        def run() -> None:
            with self._guard(what, self._limits):
                function((grid,), (block,), packed, shared)
            self._last_launch = what

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
        """Return a launch that reads twice the size of L2, so that nothing else is left in it.

        It must not write: dirty lines would be written back inside the next kernel (+14 % on one
        of 62 us on an H200).
        """
        size = 2 * self.l2_bytes
        memory = self._filled(size, np.uint8, POISON_BYTE), self._filled(1, np.uint32, POISON_BYTE)
        addresses = [np.uint64(_address(array)) for array in memory]
        function = _load(compile_source(SOURCE, (), self.architecture)).get_function(FLUSH)
        shape = (self.multiprocessors * FLUSH_THREADS // FLUSH_BLOCK,), (FLUSH_BLOCK,)
        self._flush_memory = memory  # the launch knows only addresses

        def flush() -> None:
            function(*shape, (*addresses, np.int32(size // FLUSH_LOAD)))

        return flush

    @contextmanager
    def _guard(self, what: str, hint: str = "") -> Iterator[None]:
        """Turn CUDA's errors into Refused, or into DeadContext if they stay."""
        if self._death:
            raise DeadContext(self._death)
        try:
            yield
        except self._errors as error:
            self._raise_if_dead(error)
            raise Refused(f"{what}: {error}" + (f"; {hint}" if hint else "")) from error

    def _raise_if_dead(self, error: Exception) -> None:
        # An error of one call is gone by the next one; an error of the context is given for ever.
        try:
            self._runtime.deviceSynchronize()
        except self._errors:
            self._death = (
                f"the GPU's context is dead ({error}); the last launch was {self._last_launch}. "
                "Every later CUDA call of this process fails too: end this session, then run that "
                "launch alone, on the emulated device or under compute-sanitizer"
            )
            raise DeadContext(self._death) from error


def _load(binary: Binary) -> Any:
    # The cubin, never the PTX: a driver refuses PTX of a toolkit newer than itself.
    from cupy.cuda.function import Module

    module = Module()
    module.load(binary.cubin)
    return module


def _address(array: Array) -> int:
    return int(array.__cuda_array_interface__["data"][0])
