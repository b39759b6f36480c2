"""Launches to hold counts of instructions against the hardware's: drawn at random, and five fixed.

The lanes of the fixed ones part over and over, those of the others at an edge at most. Drawn sizes
lie where a launch changes shape: few and many blocks, ragged warps, loops that end anywhere.
What the arrays hold decides no branch here, so they hold zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import numpy as np

from harness.devices import Device, Launch
from harness.devices.arguments import SCALARS
from harness.workloads.access import RECORD
from harness.workloads.reduction import RUNGS, VARIANTS
from kernels import Kernel, kernel, parameters

BLOCKS: Final = (32, 64, 128, 256, 512, 1024)
LARGEST: Final = 1 << 24  # elements
THREADS: Final = 1 << 18  # of a launch without bounds
PARTING: Final = "divergence"  # the source of kernels whose lanes part


@dataclass(frozen=True)
class Zeros:
    """An array argument: so many zeros of a NumPy type."""

    dtype: str
    size: int


Argument = int | float | Zeros


@dataclass(frozen=True)
class Draw:
    """One launch that anybody can repeat; a Workload that is never timed."""

    kernel: Kernel
    grid: int
    block: int
    arguments: tuple[Argument, ...]

    @property
    def name(self) -> str:
        """The kernel and its launch."""
        scalars = [str(each) for each in self.arguments if not isinstance(each, Zeros)]
        return f"{self.kernel}<<<{self.grid}, {self.block}>>>({', '.join(scalars)})"

    def prepare(self, device: Device) -> Launch:
        """Allocate the arrays."""
        arguments = tuple(
            device.put(np.zeros(each.size, each.dtype)) if isinstance(each, Zeros) else each
            for each in self.scalars(self.arguments)
        )
        return Launch(self.kernel, self.grid, self.block, arguments, 0, lambda: None)

    def scalars(self, arguments: tuple[Argument, ...]) -> tuple[Any, ...]:
        """Give every scalar the type of its parameter; arrays stay as they are."""
        types = [SCALARS.get(each.type, float) for each in parameters(self.kernel)]
        return tuple(
            type_(each) if isinstance(each, float) else each
            for type_, each in zip(types, arguments, strict=True)
        )

    @property
    def counted(self) -> tuple[Any, ...]:
        """The arguments for a count, which follows no pointer."""
        return self.scalars(tuple(0 if isinstance(a, Zeros) else a for a in self.arguments))


def _divergent(name: str, grid: int, block: int, *scalars: int) -> Draw:
    return Draw(kernel(PARTING, name), grid, block, (Zeros("u4", grid * block), *scalars))


DIVERGENT: Final = (
    _divergent("nested_loops", 3, 96),
    _divergent("break_continue", 3, 128, 12),
    _divergent("call", 2, 64),
    _divergent("early_return", 2, 100),
    _divergent("uneven_stride", 7, 256, 3000),
)


def launches(seed: int, number: int) -> list[Draw]:
    """Return the five whose lanes part, then `number` drawn ones."""
    return [*DIVERGENT, *draw(seed, number)]


Random = np.random.Generator
T = TypeVar("T")


def draw(seed: int, number: int) -> list[Draw]:
    """Return `number` launches, the same for a seed; half of them are of the ladder."""
    random = np.random.default_rng(seed)
    return [FAMILIES[int(random.integers(len(FAMILIES)))](random) for _ in range(number)]


def _one(random: Random, choices: Sequence[T]) -> T:
    return choices[int(random.integers(len(choices)))]


def _up_to(random: Random, largest: int) -> int:
    """Draw a size: every power of two is as likely."""
    return int(2 ** random.uniform(0, np.log2(largest)))


def _ladder(random: Random) -> Draw:
    variant = _one(random, VARIANTS)
    shape, block, n = RUNGS[variant.rung], _one(random, BLOCKS), _up_to(random, LARGEST)
    loads = n // shape.width
    needed = max(-(-loads // block), 1)
    grid = int(random.integers(16, 4097)) if shape.persistent else needed + int(random.integers(3))
    out = Zeros("f4", grid * variant.own or 1)
    arguments = (Zeros("f4", max(loads, 1) * shape.width), out, loads)
    return Draw(replace(variant, block=block).kernel, grid, block, arguments)


def _threads(random: Random) -> tuple[int, int, int]:
    """Draw a block, whole warps or not, a grid, and return their product as well."""
    block = int(random.integers(1, 1025))
    grid = _up_to(random, max(THREADS // block, 2))
    return grid, block, grid * block


def _update(random: Random) -> Draw:
    grid, block, threads = _threads(random)
    layout = _one(random, ("aos", "soa"))
    floats = Zeros("f4", threads * (RECORD if layout == "aos" else 1))
    arrays = (floats,) if layout == "aos" else (floats, floats)
    return Draw(kernel("coalescing", f"update_{layout}"), grid, block, arrays)


def _copy(random: Random) -> Draw:
    grid, block, threads = _threads(random)
    pattern, amount = _one(random, ("offset", "strided")), int(random.integers(33))
    source = Zeros("f4", threads * max(amount, 1) + amount)
    entry = kernel("coalescing", f"copy_{pattern}")
    return Draw(entry, grid, block, (source, Zeros("f4", threads), amount))


def _axpy(random: Random) -> Draw:
    n, block = _up_to(random, LARGEST), int(random.integers(1, 1025))
    grid = -(-n // block) + int(random.integers(3))
    name, dtype, a = _one(random, (("fp16", "u2", 0), ("fp32", "f4", 1.5), ("fp64", "f8", 1.5)))
    array = Zeros(dtype, n)
    return Draw(kernel("axpy", f"axpy_{name}"), grid, block, (a, array, array, n))


def _saxpy(random: Random) -> Draw:
    n, block = _up_to(random, LARGEST), int(random.integers(1, 1025))
    form, width = _one(random, (("naive", 1), ("vectorized", 4)))
    grid, array = n // width // block + 1 + int(random.integers(3)), Zeros("f4", n // 4 * 4 + 4)
    return Draw(kernel("vector", f"saxpy_{form}"), grid, block, (array, array, 1.5, n))


def _read(random: Random) -> Draw:
    loads, grid, trips = _one(random, (1, 2, 4, 8)), _up_to(random, 512), int(random.integers(9))
    x = Zeros("u4", max(trips, 1) * grid * loads * 256)
    entry = kernel("little", "read", BLOCK=256, UNROLL=loads)
    return Draw(entry, grid, 256, (x, Zeros("u4", grid * 256), trips))


def _unroll(random: Random) -> Draw:
    grid, block, turns = _up_to(random, 512), _one(random, BLOCKS), int(random.integers(1, 5))
    name = _one(random, ("naive", "run_time_stride", "compile_time_offset"))
    array = Zeros("f4", 2 * turns * grid * max(block, 128) + 256)
    return Draw(kernel("unroll", name, TURNS=turns), grid, block, (array,) * 3)


def _banks(random: Random) -> Draw:
    grid, block = _up_to(random, 512), int(random.integers(1, 1025))
    stride, trips = int(random.integers(65)), int(random.integers(20))
    width = _one(random, (4, 8))
    arrays = (Zeros("i4", 4096 * width // 4), Zeros("i4", grid * block))
    entry = kernel("banks", "read_strided", WIDTH=width)
    return Draw(entry, grid, block, (*arrays, stride, trips, 0))


FAMILIES: Final[tuple[Callable[[Random], Draw], ...]] = (
    *([_ladder] * 8),
    *(_update, _copy, _axpy, _saxpy, _read, _unroll, _banks, _copy),
)
