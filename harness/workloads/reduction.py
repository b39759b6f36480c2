"""Launch a rung of the ladder on any array: what its published form cannot do is done here.

A rung takes `int n`, adds into an output somebody zeroed, and, with float4, drops the last n % 4
elements. Here n may be 0 or past 2^31, and nothing is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from harness.devices import Array, Device, Launch
from harness.devices.arguments import vector_size
from harness.devices.emulator import Counters, EmulatedDevice
from harness.models.accuracy import exact_sum, sum_error
from kernels import Kernel, kernel

SOURCE: Final = "reduce_ladder"
CHUNK: Final = 1 << 30  # elements a launch: int i plus the grid stride stays below 2^31
THREADS_PER_SM: Final = 2048
LINE: Final = 32  # floats of a cache line


@dataclass(frozen=True)
class Rung:
    """How a rung divides the work.

    Attributes
    ----------
    width
        Elements a load.
    persistent
        The grid is as large as the GPU and walks the array, else a thread takes one load.
    shuffles
        The block adds by two rounds of five shuffles, else by halving in shared memory.
    in_block
        The block adds at all, else every element is an atomic.
    """

    width: int = 1
    persistent: bool = False
    shuffles: bool = False
    in_block: bool = True


RUNGS: Final = {
    "reduce_v1": Rung(in_block=False),
    "reduce_v2": Rung(),
    "reduce_v3": Rung(),
    "reduce_v4": Rung(),
    "reduce_v5": Rung(persistent=True),
    "reduce_v5_float4": Rung(persistent=True, width=4),
    "reduce_v6": Rung(persistent=True, shuffles=True),
    "reduce_v7": Rung(persistent=True, shuffles=True, width=4),
}


@dataclass(frozen=True)
class Reduction:
    """The sum of n float32 by one rung; a Workload.

    Parameters
    ----------
    rung
        A key of RUNGS.
    n
        Elements to sum when prepared for timing.
    block
        Threads a block: a power of two from 32 to 1024, since the trees halve it.
    defines
        Which counterfactual, such as ("MASK", "STORE").
    blocks
        Grid of a persistent rung; as many as fit the GPU at once if not given.

    Raises
    ------
    ValueError
        The block is no power of two from 32 to 1024, or n is negative.
    """

    rung: str
    n: int = 1 << 26
    block: int = 256
    defines: tuple[str, ...] = ()
    blocks: int | None = None

    def __post_init__(self) -> None:
        """Refuse what no rung can do."""
        if self.block not in (32, 64, 128, 256, 512, 1024):
            raise ValueError(f"{self.rung} halves its block: {self.block} is not 32, 64 ... 1024")
        if self.n < 0:
            raise ValueError(f"n is {self.n}; an array has 0 or more elements")

    @property
    def name(self) -> str:
        """The kernel with its defines, and n."""
        return f"{self.kernel} n={self.n}"

    @property
    def label(self) -> str:
        """The rung and what sets it apart: reduce_v2-mask-store, reduce_v3-512."""
        block = () if self.block == Reduction.block else (str(self.block),)
        return "-".join((self.rung, *block, *map(str.lower, self.defines)))

    @property
    def kernel(self) -> Kernel:
        """The compiled entry."""
        return kernel(SOURCE, self.rung, BLOCK=self.block, **dict.fromkeys(self.defines, 1))

    @property
    def stores_partials(self) -> bool:
        """Whether each block stores its own sum, without an atomic."""
        return "STORE" in self.defines

    @property
    def own(self) -> int:
        """Floats that each block has for its own sum; 0 where all blocks add into one."""
        if self.stores_partials:
            return 1
        return LINE if "SPREAD" in self.defines else 0

    def places(self, device: Device, grid: int) -> Array | None:
        """Return where `grid` blocks leave sums of their own; None if all add into one float."""
        if self.stores_partials:
            return device.empty(grid, np.float32)
        return own_lines(device, grid) if self.own else None

    def grid(self, loads: int, device: Device) -> int:
        """Return the blocks for `loads` loads."""
        needed = -(-loads // self.block)
        if not RUNGS[self.rung].persistent:
            return needed
        return min(needed, self.blocks or device.multiprocessors * THREADS_PER_SM // self.block)

    def parts(self, size: int) -> Iterator[Part]:
        """Cut `size` elements into launches: chunks an int can count, then the last n % width."""
        width = RUNGS[self.rung].width
        for start in range(0, size, CHUNK):
            stop = min(start + CHUNK, size)
            end = stop - (stop - start) % width
            if end > start:
                yield Part(self, start, end, (end - start) // width)
            if stop > end:
                yield Part(Reduction("reduce_v1"), end, stop, stop - end)

    def prepare(self, device: Device) -> Launch:
        """Return the launch on n random whole numbers, the same for every rung.

        All their partial sums are exact, so the check takes no error at all.
        """
        x, total = whole_numbers(device, self.n)
        loads = self.n // RUNGS[self.rung].width
        grid = self.grid(loads, device)
        out = self.places(device, grid)
        out = accumulator(device) if out is None else out

        def check() -> None:
            found = reduce_sum(device, self, x)
            assert found == total, f"{self.name} gives {found}; the sum is exactly {total}"

        return Launch(self.kernel, grid, self.block, (x, out, loads), 4 * self.n, check)

    def bound(self, magnitude: float, size: int, device: Device) -> float:
        """Return the largest error of a sum of `size` floats whose magnitudes sum to so much."""
        atomics, height = self.additions(size, device)
        return sum_error(size, height, magnitude, atomics=atomics)

    def additions(self, size: int, device: Device) -> tuple[int, int]:
        """Return the atomics of a sum, and the most additions any element goes through."""
        atomics, tallest = 0, 0
        for part in self.parts(size):
            rung, grid = RUNGS[part.reduction.rung], part.reduction.grid(part.loads, device)
            trips = -(-part.loads // (grid * part.reduction.block)) + rung.width - 1
            if not part.reduction.stores_partials:
                atomics += grid if rung.in_block else part.loads
            tallest = max(tallest, trips + part.reduction.height_in_block)
        return atomics, atomics + tallest

    @property
    def height_in_block(self) -> int:
        """Additions one element goes through between its thread and its block's sum."""
        rung = RUNGS[self.rung]
        if not rung.in_block:
            return 0
        return 10 if rung.shuffles else self.block.bit_length() - 1


COUNTERFACTUALS: Final = (
    Reduction("reduce_v2", defines=("MASK",)),
    Reduction("reduce_v2", defines=("MASK", "STORE")),
    *(Reduction(f"reduce_v{rung}", defines=("STORE",)) for rung in (2, 3, 4)),
    *(Reduction(f"reduce_v{rung}", defines=("SPREAD",)) for rung in (3, 4)),
    *(
        Reduction(f"reduce_v{rung}", defines=(define,))
        for rung in (6, 7)
        for define in ("INT_STRIDE", "SHUFFLE_DOWN")
    ),
)
VARIANTS: Final = (*map(Reduction, RUNGS), *COUNTERFACTUALS)


@dataclass(frozen=True)
class Part:
    """One launch of a sum: `reduction` on x[start:stop], in so many loads."""

    reduction: Reduction
    start: int
    stop: int
    loads: int


def reduce_sum(device: Device, reduction: Reduction, x: Array) -> float:
    """Return the sum of a float32 array, added by one rung.

    Where each block has a place of its own, their sums are added exactly here.

    Raises
    ------
    ArgumentError
        x is not contiguous one-dimensional float32 device memory, or not aligned to the loads.
    """
    size = vector_size(reduction.kernel, x)
    out = device.put(np.zeros(1, np.float32))
    partials: list[float] = []
    for part in reduction.parts(size):
        run, grid = part.reduction, part.reduction.grid(part.loads, device)
        own = run.places(device, grid)
        view = x[part.start : part.stop]
        device.launch(run.kernel, grid, run.block, view, out if own is None else own, part.loads)
        if own is not None:
            partials.extend(device.get(own).tolist())
    return exact_sum([*partials, float(device.get(out)[0])])


def count_sum(emulator: EmulatedDevice, reduction: Reduction, n: int) -> Counters:
    """Return the counters of a sum of n ones."""
    ones = emulator.put(np.ones(n, np.float32))
    return emulator.count(lambda: reduce_sum(emulator, reduction, ones))


@lru_cache(maxsize=1)
def accumulator(device: Device) -> Array:
    """Return the one float that every timed rung adds into.

    What a contended atomic costs depends on its address (by 3 % on an H200), so all share one.
    """
    return device.put(np.zeros(1, np.float32))


def own_lines(device: Device, blocks: int) -> Array:
    """Return zeros, a cache line for each block: no two of their atomics meet."""
    return device.put(np.zeros(LINE * blocks, np.float32))


@lru_cache(maxsize=2)
def whole_numbers(device: Device, n: int) -> tuple[Array, float]:
    """Return n random float32 of -16 to 16 on the device, the same every time, and their sum.

    None is 0, so that a lost one shows. In an order that does not look at the values, a sum of k of
    them passes 2^24, up to which float32 is exact, with probability 2 exp(-2^48 / (2 k 16^2)) at
    most (Hoeffding, JASA 58, 1963): 10^-3557 for k = 2^26.
    """
    drawn = np.random.default_rng(n).integers(-16, 16, n, np.int8)
    values: NDArray[np.float32] = (drawn + (drawn >= 0)).astype(np.float32)
    return device.put(values), float(values.sum(dtype=np.float64))
