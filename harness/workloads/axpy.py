"""The kernels of kernels/axpy.cu as a workload: y = a x + y in three types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from harness.devices import Device, Launch
from kernels import Kernel, kernel

BLOCK: Final = 256
DTYPES: Final[dict[str, np.dtype[Any]]] = {
    "fp16": np.dtype("f2"),
    "fp32": np.dtype("f4"),
    "fp64": np.dtype("f8"),
}
BYTES: Final = 3 << 28  # of a timed launch, whatever the type: x read, y read and written
SCALE: Final = 2.0**-6  # a: y grows by less than this a launch, so fp16 never overflows
RANDOM: Final = 1 << 20  # different values; a longer array repeats them


@dataclass(frozen=True)
class Axpy:
    """Add a x to y, n elements of a type of DTYPES; a Workload.

    Without n as many as BYTES are: every type then moves the same bytes.
    """

    type: str
    n: int | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """The elements as NumPy knows them."""
        return DTYPES[self.type]

    @property
    def elements(self) -> int:
        """As many as asked for, or as BYTES are."""
        return BYTES // (3 * self.dtype.itemsize) if self.n is None else self.n

    @property
    def name(self) -> str:
        """The kernel and its size."""
        return f"{self.kernel} n={self.elements}"

    @property
    def bytes(self) -> int:
        """Of two reads and a write an element."""
        return 3 * self.dtype.itemsize * self.elements

    @property
    def flop(self) -> int:
        """A multiplication and an addition an element."""
        return 2 * self.elements

    @property
    def kernel(self) -> Kernel:
        """The compiled entry."""
        return kernel("axpy", f"axpy_{self.type}")

    @property
    def scalar(self) -> Any:
        """The argument a: fp16 travels as its bits."""
        a = self.dtype.type(SCALE)
        return a.view(np.uint16) if self.type == "fp16" else a

    def operands(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """The distinct values of x and y, normal around zero."""
        random = np.random.default_rng(self.elements)
        count = min(self.elements, RANDOM)
        x, y = (random.standard_normal(count).astype(self.dtype) for _ in "xy")
        return x, y

    def prepare(self, device: Device) -> Launch:
        """Return the launch on random values; y keeps growing from launch to launch."""
        x, y = self.operands()
        x_there, y_there = (device.put(np.resize(values, self.elements)) for values in (x, y))
        grid = -(-self.elements // BLOCK)

        def check() -> None:
            fresh = device.put(np.resize(y, self.elements))
            device.launch(self.kernel, grid, BLOCK, self.scalar, x_there, fresh, self.elements)
            self.compare(x, y, device.get(fresh))

        arguments = (self.scalar, x_there, y_there, self.elements)
        return Launch(self.kernel, grid, BLOCK, arguments, self.bytes, check, self.flop)

    def compare(self, x: NDArray[Any], y: NDArray[Any], got: NDArray[Any]) -> None:
        """Assert each element within two roundings of a x and y, one fused or one each."""
        exact = SCALE * x.astype(np.longdouble) + y
        allowed = np.finfo(self.dtype).eps * (SCALE * np.abs(x.astype(np.float64)) + np.abs(y))
        low, high = ((exact + side * allowed).astype(np.float64) for side in (-1, 1))
        for start in range(0, len(got), len(x)):
            part = got[start : start + len(x)]
            right = (low[: len(part)] <= part) & (part <= high[: len(part)])
            assert right.all(), f"{self.name} is wrong at {start + int(np.argmin(right))}"
