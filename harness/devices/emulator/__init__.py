"""A GPU to count on: the PTX that NVRTC makes of a kernel, interpreted over NumPy.

It counts exactly what warps ask of memory, refuses what hardware forbids, and knows no time. A
second instrument counts the machine instructions, from the same compilation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from harness.devices import Array, Workload
from harness.devices.arguments import pack
from harness.devices.emulator.counters import Counters, Counting
from harness.devices.emulator.hazards import RaceDetector
from harness.devices.emulator.limits import check_launch, check_shape
from harness.devices.emulator.machine import PATIENCE, Fault, Machine, Observer
from harness.devices.emulator.memory import Allocation, GlobalMemory
from harness.devices.emulator.operations import Unsupported
from harness.devices.emulator.program import Program
from harness.devices.emulator.ptx import PtxError, parse
from harness.devices.emulator.sass import SassCount, Uncountable
from harness.devices.emulator.sass import count as count_instructions
from harness.devices.emulator.shared import SharedMemory
from harness.devices.emulator.threads import WARP, Threads, special_registers
from kernels import Kernel, compile_kernel

__all__ = [
    "Counters",
    "EmulatedArray",
    "EmulatedDevice",
    "Fault",
    "PtxError",
    "SassCount",
    "Uncountable",
    "Unsupported",
]

LANES_AT_ONCE: Final = 1 << 17  # amortises Python; many more would leave the cache


class EmulatedArray:
    """A NumPy view of emulated memory; slicing gives a view at another address."""

    def __init__(self, allocation: Allocation, values: NDArray[Any]) -> None:
        self._allocation = allocation
        self.values = values

    def __getitem__(self, index: slice) -> EmulatedArray:
        """Return a view; nothing is copied."""
        return EmulatedArray(self._allocation, self.values[index])

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The CUDA array interface, version 3; the address is an emulated one."""
        offset = self.values.ctypes.data - self._allocation.bytes.ctypes.data
        return {
            "shape": self.values.shape,
            "typestr": self.values.dtype.str,
            "data": (self._allocation.address + offset, False),
            "strides": None if self.values.flags.c_contiguous else self.values.strides,
            "version": 3,
        }


class EmulatedDevice:
    """The device of everybody who has no GPU; deterministic, but for its patience.

    It is stricter than hardware: what may go wrong there is an error here. So are two shared-memory
    accesses that no barrier orders, a warp-wide instruction whose lanes have diverged, and a
    register that a lane reads before writing it (compilers may leave such a read where the result
    does not matter). Bounds are those of an allocation, not of a view of it, and an index that
    jumps over the gap behind an allocation into the next one is not caught, nor is it on a GPU.
    Not watched: races in global memory. Not there: local memory, calls, textures, asynchronous
    copies, tensor cores, clusters, grids and blocks of two dimensions, clocks.

    Parameters
    ----------
    architecture
        What the kernels are compiled for.
    multiprocessors
        What launchers that size their grid by the GPU are told; 132 as an H200.
    patience
        Seconds of processor time that some blocks of threads may run until one of their threads
        leaves; a kernel that needs more is taken for endless.
    """

    def __init__(
        self,
        architecture: str = "sm_90",
        multiprocessors: int = 132,
        patience: float = PATIENCE,
    ) -> None:
        self.name = f"emulated {architecture}"
        self.architecture = architecture
        self.multiprocessors = multiprocessors
        self.bulk_copies = 0
        self._patience = patience
        self._memory = GlobalMemory()
        self._counters: Counters | None = None

    def put(self, values: NDArray[Any]) -> EmulatedArray:
        """Copy `values` to emulated memory."""
        array = self.empty(values.size, values.dtype)
        array.values[:] = values.reshape(-1)
        return EmulatedArray(array._allocation, array.values.reshape(values.shape))

    def repeat(self, values: NDArray[Any], size: int) -> EmulatedArray:
        """Return `size` elements in emulated memory: `values`, again and again."""
        return self.put(np.resize(values, size))

    def empty(self, size: int, dtype: DTypeLike) -> EmulatedArray:
        """Allocate `size` elements filled with 0xFF bytes: NaN, or -1."""
        dtype = np.dtype(dtype)
        allocation = self._memory.allocate(size * dtype.itemsize)
        allocation.bytes[:] = 0xFF
        return EmulatedArray(allocation, allocation.bytes[: size * dtype.itemsize].view(dtype))

    def get(self, array: Array) -> NDArray[Any]:
        """Copy `array` back."""
        assert isinstance(array, EmulatedArray)
        return array.values.copy()

    def count(self, run: Callable[[], object]) -> Counters:
        """Return the counters of everything that `run` launches here."""
        counters = Counters()
        outer, self._counters = self._counters, counters
        try:
            run()
        finally:
            self._counters = outer
        return counters

    def count_checked(self, workload: Workload) -> Counters:
        """Prove the result of a workload right, then return the counters of one launch of it."""
        launch = workload.prepare(self)
        launch.check()
        return self.count(lambda: launch.on(self))

    def launch(
        self, kernel: Kernel, grid: int, block: int, *arguments: Any, shared: int = 0
    ) -> None:
        """Run `kernel` on `grid` blocks of `block` threads, `shared` bytes of dynamic memory each.

        Raises
        ------
        ArgumentError
            An argument does not fit the kernel's parameter.
        Fault
            The launch or the kernel does what hardware forbids.
        Unsupported
            The kernel uses an instruction that is not emulated.
        """
        program = _program(kernel, self.architecture)
        self.run(program, pack(kernel, arguments), grid, block, shared=shared)

    def count_sass(
        self,
        kernel: Kernel,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        *arguments: Any,
        shared: int = 0,
        architecture: str | None = None,
        idle: Iterable[str] = (),
        every_block: bool = False,
    ) -> SassCount:
        """Return the machine instructions that a launch would issue; nothing is run, nothing read.

        `grid` and `block` have one to three dimensions. Arguments are those of `launch`; an int
        will do for an array, since no address decides a branch. `architecture` is this device's if
        not given. `idle` names opcodes, such as "LDG", of which issues without any lane are to be
        told as well; `every_block` runs all blocks instead of proving that most do the same.

        Raises
        ------
        ArgumentError
            An argument does not fit the kernel's parameter.
        Fault
            No hardware takes such a grid or block.
        Uncountable
            What is issued depends on data, or the machine code is not understood.
        """
        check_shape(kernel.name, grid, block, shared)
        packed = pack(kernel, arguments, addresses=True)
        chosen, watched = architecture or self.architecture, frozenset(idle)
        return count_instructions(
            kernel, grid, block, packed, chosen, watched=watched, every_block=every_block
        )

    def run(
        self,
        program: Program,
        arguments: Sequence[np.generic],
        grid: int,
        block: int,
        *,
        shared: int = 0,
    ) -> None:
        """Run a program of any origin; `arguments` are its parameters as NumPy scalars."""
        entry = program.entry
        grid, block, shared = check_launch(entry, grid, block, shared)
        size = entry.shared + shared
        parameters = dict(zip(entry.parameters, arguments, strict=True))
        observers: list[Observer] = [RaceDetector(size, program.granule)]
        if self._counters is not None:
            observers.append(Counting(program, self._counters))
        at_once = max(LANES_AT_ONCE // (-(-block // WARP) * WARP), 1)
        for first in range(0, grid, at_once):
            blocks = min(at_once, grid - first)
            threads = Threads(blocks, block)
            specials = special_registers(threads, first, grid, block)
            spaces = self._memory, SharedMemory(blocks, size, entry.variables)
            patience = self._patience
            Machine(program, threads, specials, parameters, *spaces, observers, patience).run()


@cache
def _program(kernel: Kernel, architecture: str) -> Program:
    return Program(parse(compile_kernel(kernel, architecture).ptx)[kernel.name])
