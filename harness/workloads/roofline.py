"""The kernels of kernels/roofline.cu as workloads: a chain of any intensity, and common kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from harness.devices import Device, Launch, TimedDevice
from harness.models import peaks
from kernels import Kernel, kernel

Values = NDArray[np.float32]
Exact = NDArray[np.float64]

SOURCE: Final = "roofline"
BLOCK: Final = 256
VECTOR: Final = 4  # floats of a float4
ROUNDOFF: Final = 2.0**-24  # of float32
TINY: Final = 1e-37  # what the exponential of a very negative number may be off by
RANDOM: Final = 1 << 20  # different values; a longer array repeats them
# Of the chain v -> a v + b: it moves v slowly towards b / (1 - a) = 1/2 and never far.
A: Final = 1 - 2.0**-12
B: Final = 2.0**-13
EPSILON: Final = 1e-5


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
class Operation:
    """One of the common kernels, on rows of floats.

    Attributes
    ----------
    flop, bytes
        Of an element, at the least: each operand read once from memory, each result written once;
        what all rows share, and what one row shares, is not counted.
    inputs
        The shape of each input: "rows" a value an element, "row" one row for all.
    scalars
        The kernel's last arguments.
    result
        What it computes, in float64, of inputs shaped (rows, columns) and (columns,).
    allowed
        How far off float32 may be, of the result and the same inputs.
    reduces
        The result is one value a row.
    """

    flop: int
    bytes: int
    inputs: tuple[str, ...]
    result: Callable[..., Exact]
    allowed: Callable[..., Exact]
    scalars: tuple[float, ...] = ()
    reduces: bool = False


def _softmax(x: Exact) -> Exact:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    quotient: Exact = powers / powers.sum(axis=-1, keepdims=True)
    return quotient


def _normalised(x: Exact) -> tuple[Exact, Exact]:
    """Return the rows with mean 0 and variance 1, and what they were divided by."""
    centred = x - x.mean(axis=-1, keepdims=True)
    deviation = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + EPSILON)
    return centred / deviation, deviation


def _layer_norm_allowed(y: Exact, x: Exact, gamma: Exact, beta: Exact) -> Exact:
    # An error of the mean, at most that of a sum of the row, moves every element by as much.
    z, deviation = _normalised(x)
    moved = 1 + np.abs(x).max(axis=-1, keepdims=True) / deviation
    allowed: Exact = 64 * ROUNDOFF * ((1 + np.abs(z)) * np.abs(gamma) * moved + np.abs(beta))
    return allowed


# An element goes through 64 roundings at most: a thread's share of a row, a tree, and a few more.
OPERATIONS: Final = {
    "relu": Operation(
        *(3, 8, ("rows",)),
        lambda x: np.maximum(A * x + B, 0),
        lambda y, x: ROUNDOFF * (np.abs(x) + 1),
        scalars=(A, B),
    ),
    "dot": Operation(
        *(2, 8, ("rows", "rows")),
        lambda x, y: (x * y).sum(axis=-1),
        lambda s, x, y: 64 * ROUNDOFF * np.abs(x * y).sum(axis=-1),
        reduces=True,
    ),
    "gemv": Operation(
        *(2, 4, ("rows", "row")),
        lambda a, x: a @ x,
        lambda y, a, x: 64 * ROUNDOFF * (np.abs(a) @ np.abs(x)),
        reduces=True,
    ),
    "softmax": Operation(
        *(5, 8, ("rows",)),
        _softmax,
        lambda y, x: (64 + x.max(axis=-1, keepdims=True) - x) * ROUNDOFF * y + TINY,
    ),
    "layer_norm": Operation(
        *(7, 8, ("rows", "row", "row")),
        lambda x, gamma, beta: _normalised(x)[0] * gamma + beta,
        _layer_norm_allowed,
        scalars=(EPSILON,),
    ),
}


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
        _assert_close(self.name, got, exact.ravel(), self.parts.allowed(exact, *wide).ravel())


def _assert_close(name: str, got: Values, exact: Exact, allowed: Exact) -> None:
    """Assert `got` near `exact`, which repeats if it is shorter."""
    for start in range(0, len(got), len(exact)):
        part = got[start : start + len(exact)]
        error = np.abs(part - exact[: len(part)])
        right = error <= allowed[: len(part)]
        worst = start + int(np.argmin(right))
        assert right.all(), f"{name} is off by {np.max(error)}; the first wrong one is {worst}"
