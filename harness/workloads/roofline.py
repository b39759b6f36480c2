"""The kernels of kernels/roofline.cu as workloads: a chain of any intensity, and common kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from harness.devices import Device, Launch, TimedDevice
from harness.models import peaks
from harness.models.accuracy import ROUNDOFF
from harness.workloads.operations import OPERATIONS, A, B, Exact, Operation
from kernels import Kernel, kernel

Values = NDArray[np.float32]

SOURCE: Final = "roofline"
BLOCK: Final = 256
VECTOR: Final = 4  # floats of a float4
RANDOM: Final = 1 << 20  # different values; a longer array repeats them


def random(size: int, seed: int) -> Values:
    """The distinct values of an array of `size`, normal around zero."""
    return np.random.default_rng(seed).standard_normal(min(size, RANDOM), np.float32)


@dataclass(frozen=True)
class Chain:
    """`length` multiply-adds an element, read once and written once; a Workload.

    Its intensity is 2 `length` FLOP over 8 bytes.
    """

    length: int
    n: int = 1 << 26

    @property
    def name(self) -> str:
        """The kernel, its length and its size."""
        return f"fma_chain({self.length}) n={self.n}"

    @property
    def kernel(self) -> Kernel:
        """The compiled entry."""
        return kernel(SOURCE, "fma_chain", FMAS=self.length)

    @property
    def bytes(self) -> int:
        """Each element in and out."""
        return 8 * self.n

    @property
    def flop(self) -> int:
        """Two a multiply-add."""
        return 2 * self.length * self.n

    def prepare(self, device: Device) -> Launch:
        """Return the launch on n random values, n a multiple of 1024."""
        grid, x = self.n // (VECTOR * BLOCK), random(self.n, self.n)
        source, target = device.put(np.resize(x, self.n)), device.empty(self.n, np.float32)
        parameters = np.float32(A), np.float32(B)

        def check() -> None:
            poisoned = device.empty(self.n, np.float32)
            device.launch(self.kernel, grid, BLOCK, source, poisoned, *parameters)
            self.compare(x, device.get(poisoned))

        arguments = (source, target, *parameters)
        return Launch(self.kernel, grid, BLOCK, arguments, self.bytes, check, self.flop)

    def compare(self, x: Values, got: Values) -> None:
        """Hold each element against the chain's closed form: each link rounds once, none grows."""
        shrunk = A**self.length
        exact = shrunk * x.astype(np.float64) + B * (1 - shrunk) / (1 - A)
        allowed = self.length * ROUNDOFF * (np.abs(x) + 1)
        _assert_close(self.name, got, exact, allowed)


@dataclass(frozen=True)
class BalancedChain:
    """A chain that takes as long as `other`, a shorter one, if the two peaks are right; a Workload.

    Its elements are as many as make its FLOP at the fp32 peak last as long as the bytes of `other`
    at the memory's. Where the roof really bends elsewhere, the times differ by just that factor.
    """

    length: int
    other: Chain

    @property
    def name(self) -> str:
        """The kernel, and what it is to match."""
        return f"fma_chain({self.length}) as long as the bytes of {self.other.name}"

    def prepare(self, device: Device) -> Launch:
        """Return the launch that this GPU's peaks ask for."""
        return Chain(self.length, self.elements(cast(TimedDevice, device))).prepare(device)

    def elements(self, device: TimedDevice) -> int:
        """Return the elements: bytes of the other x ridge / FLOP an element, in whole blocks."""
        n = self.other.bytes * peaks.ridge(device) / (2 * self.length)
        return max(round(n / (VECTOR * BLOCK)), 1) * VECTOR * BLOCK


@dataclass(frozen=True)
class Common:
    """An operation of OPERATIONS on `rows` rows of `columns` floats, a block a row; a Workload.

    `columns` is a multiple of 4 x `block`, and `block` of 32.
    """

    operation: str
    rows: int = 1 << 14
    columns: int = 1 << 12
    block: int = BLOCK

    @property
    def name(self) -> str:
        """The kernel and its size."""
        return f"{self.operation} {self.rows}x{self.columns}"

    @property
    def kernel(self) -> Kernel:
        """The compiled entry."""
        return kernel(SOURCE, self.operation, ROW=self.columns, BLOCK=self.block)

    @property
    def height(self) -> int:
        """Additions an element goes through: its thread's share, five shuffles, the warps' sums."""
        return self.columns // self.block + 5 + self.block // 32 - 1

    @property
    def parts(self) -> Operation:
        """What it computes, and from what."""
        return OPERATIONS[self.operation]

    @property
    def elements(self) -> int:
        """Rows x columns."""
        return self.rows * self.columns

    @property
    def bytes(self) -> int:
        """The least that memory must move."""
        return self.parts.bytes * self.elements

    @property
    def flop(self) -> int:
        """The least arithmetic."""
        return self.parts.flop * self.elements

    def prepare(self, device: Device) -> Launch:
        """Return the launch on random rows."""
        return self.on(device, *self.random_inputs())

    def random_inputs(self) -> list[Values]:
        """The distinct rows of each input."""
        return [
            random(self.elements if shape == "rows" else self.columns, seed)
            for seed, shape in enumerate(self.parts.inputs)
        ]

    def on(self, device: Device, *inputs: Values) -> Launch:
        """Return the launch on these inputs; rows repeat until there are enough."""
        sizes = {"rows": self.elements, "row": self.columns}
        there = [
            device.put(np.resize(values, sizes[shape]))
            for values, shape in zip(inputs, self.parts.inputs, strict=True)
        ]
        written = self.rows if self.parts.reduces else self.elements
        scalars = [np.float32(value) for value in self.parts.scalars]

        def check() -> None:
            poisoned = device.empty(written, np.float32)
            device.launch(self.kernel, self.rows, self.block, *there, poisoned, *scalars)
            self.compare(inputs, device.get(poisoned))

        arguments = (*there, device.empty(written, np.float32), *scalars)
        return Launch(self.kernel, self.rows, self.block, arguments, self.bytes, check, self.flop)

    def compare(self, inputs: tuple[Values, ...], got: Values) -> None:
        """Hold every row against the operation in float64."""
        wide: list[Any] = [
            values.astype(np.float64).reshape((-1, self.columns) if shape == "rows" else -1)
            for values, shape in zip(inputs, self.parts.inputs, strict=True)
        ]
        exact = self.parts.result(*wide)
        allowed = self.parts.allowed(self.height, exact, *wide)
        _assert_close(self.name, got, exact.ravel(), allowed.ravel())


def _assert_close(name: str, got: Values, exact: Exact, allowed: Exact) -> None:
    """Assert `got` near `exact`, which repeats if it is shorter."""
    for start in range(0, len(got), len(exact)):
        part = got[start : start + len(exact)]
        error = np.abs(part - exact[: len(part)])
        right = error <= allowed[: len(part)]
        worst = start + int(np.argmin(right))
        assert right.all(), f"{name} is off by {np.max(error)}; the first wrong one is {worst}"
