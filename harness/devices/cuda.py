"""A GPU through CuPy: memory, launches of NVRTC's machine code, and the time of one kernel with a cold L2.

CuPy only moves bytes and launches here. None of its array operations is used: they would compile
kernels of their own, run them beside ours, and fill a cache in the user's home.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from harness.devices import Array, Launch, NoGPU
from harness.devices.arguments import pack
from harness.devices.clocks import Clock, choose
from kernels import Binary, Kernel, compile_kernel, compile_source

SOURCE: Final = Path(__file__).with_name("cuda.cu")
FLUSH: Final = "read_all"
FLUSH_BLOCK: Final = 256
NAN_BYTE: Final = 0xFF  # a float of any size whose bytes are all 0xFF is NaN
POISON_BYTE: Final = 0xA5
STATIC_SHARED_LIMIT: Final = 48 * 1024  # above this a kernel must ask
COPY_BYTES: Final = 1 << 28
COPY_SAMPLES: Final = 11

# CUDA's error codes that mean "no GPU", and no others do.
STUB_LIBRARY, INSUFFICIENT_DRIVER, NO_DEVICE = 34, 35, 100
# CUDA's device attributes.
MEMORY_CLOCK_KHZ, MEMORY_BUS_BITS = 36, 37


class Refused(RuntimeError):
    """CUDA refused an operation; the context lives on."""


class DeadContext(RuntimeError):
    """A kernel broke the context: every later CUDA call of this process fails, so the session must end."""


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
        self._functions: dict[Kernel, Callable[..., None]] = {}
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
        self._threads = int(properties["maxThreadsPerBlock"])
        self._shared = int(properties["sharedMemPerBlockOptin"])
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

    def launch(self, kernel: Kernel, grid: int, block: int, *arguments: Any, shared: int = 0) -> None:
        """Queue `kernel` on `grid` blocks of `block` threads, `shared` bytes of dynamic memory each.

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

        Raises
        ------
        harness.devices.clocks.ClockError
            The sample holds something else than one run of this kernel.
        """
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
        to, start = (array.__cuda_array_interface__["data"][0] for array in (target, source))

        def run() -> None:
            self._runtime.memcpyAsync(to, start, COPY_BYTES, self._runtime.memcpyDeviceToDevice, 0)

        with self._guard("copying on the GPU"):
            seconds = [self._clock.copy(self._flush, run) for _ in range(COPY_SAMPLES)]
        return 2 * COPY_BYTES / median(seconds)

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
        what = f"{kernel} on {grid} blocks of {block} threads with {shared} bytes of dynamic shared memory"
        if grid < 1 or block < 1:  # CuPy would launch one of each
            raise Refused(f"{what}: a launch needs at least one block of one thread")
        function = self._function(kernel)
        packed = pack(kernel, arguments)

        def run() -> None:
            limits = f"a block of this GPU has at most {self._threads} threads and {self._shared} bytes"
            with self._guard(what, limits):
                if shared > STATIC_SHARED_LIMIT:
                    self._allow_shared(function, shared)
                function((grid,), (block,), packed, shared)
            self._last_launch = what

        return run

    def _allow_shared(self, function: Any, shared: int) -> None:
        attribute = self._driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self._driver.funcSetAttribute(function.ptr, attribute, shared)

    def _function(self, kernel: Kernel) -> Callable[..., None]:
        if kernel not in self._functions:
            self._functions[kernel] = self._load(compile_kernel(kernel, self.architecture), kernel.name)
        return self._functions[kernel]

    def _load(self, binary: Binary, name: str) -> Callable[..., None]:
        # The cubin, never the PTX: a driver refuses PTX of a toolkit newer than itself.
        from cupy.cuda.function import Module

        with self._guard(f"loading {name}"):
            module = Module()
            module.load(binary.cubin)
            function: Callable[..., None] = module.get_function(name)
        return function

    def _make_flush(self) -> Callable[[], None]:
        """Return a launch that reads twice the size of L2, so that nothing else is left in it.

        It must not write: dirty lines would be written back inside the next kernel (+14 % on one of
        62 us on an H200).
        """
        size = 2 * self.l2_bytes
        buffer = self._filled(size, np.uint8, POISON_BYTE)
        out = self._filled(1, np.uint32, POISON_BYTE)
        addresses = [np.uint64(array.__cuda_array_interface__["data"][0]) for array in (buffer, out)]
        function = self._load(compile_source(SOURCE, (), self.architecture), FLUSH)
        grid = self.multiprocessors * 2048 // FLUSH_BLOCK

        def flush() -> None:
            function((grid,), (FLUSH_BLOCK,), (*addresses, np.int32(size // 16)))

        flush.memory = buffer, out  # type: ignore[attr-defined]  # keeps both alive
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
                f"the GPU's context is dead ({error}); the last launch was {self._last_launch}. Every later "
                "CUDA call of this process fails too: end this session, then run that test alone, "
                "on the emulated device or under compute-sanitizer"
            )
            raise DeadContext(self._death) from error


def open_cupy() -> Any:
    """Import CuPy and make the first visible GPU current.

    Raises
    ------
    NoGPU
        CuPy, the driver or the GPU is missing, or CuPy is too new for the driver.
    """
    try:
        import cupy
    except ImportError as error:
        raise NoGPU(
            f"CuPy cannot be imported ({error}): install the one wheel of the driver's CUDA version "
            "(nvidia-smi shows it), cupy-cuda13x or cupy-cuda12x"
        ) from error
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        reason = _why_none(cupy.cuda.runtime, error.status)
        if reason is None:
            raise
        raise NoGPU(reason) from error
    cupy.cuda.Device(0).use()
    return cupy


def _why_none(runtime: Any, status: int) -> str | None:
    """Return why there is no GPU, and what to do; None if that is not what the error says."""
    driver = runtime.driverGetVersion()
    if status not in (STUB_LIBRARY, INSUFFICIENT_DRIVER, NO_DEVICE):
        return None
    if not driver or status == STUB_LIBRARY:
        return "no NVIDIA driver is loaded: install one, until nvidia-smi lists the GPU"
    if status == INSUFFICIENT_DRIVER:
        return (
            f"the driver supports CUDA {_version(driver)}, CuPy was built for "
            f"{_version(runtime.runtimeGetVersion())}: install cupy-cuda{driver // 1000}x in place of "
            "this CuPy, or update the driver"
        )
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    if hidden is not None:
        return f"CUDA_VISIBLE_DEVICES={hidden!r} hides every GPU: unset it, or name one (0 is the first)"
    return "the driver sees no GPU: check nvidia-smi; a container must be given the GPU (--gpus all)"


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"
