"""Saxpy, y = a x + y, over any number of floats: a launcher adds what the kernel leaves out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from harness.devices import Array, Device, Launch
from harness.devices.arguments import ArgumentError, vector_size
from kernels import Kernel, kernel

BLOCK: Final = 256
A: Final = np.float32(2)
NAMES: Final = {1: "saxpy_naive", 4: "saxpy_vectorized"}  # by floats a load


@dataclass(frozen=True)
class Saxpy:
    """a x + y of n float32, `width` of them a load; a Workload."""

    width: int
    n: int = 1 << 26

    @property
    def name(self) -> str:
        """The kernel and its size."""
        return f"{self.kernel} n={self.n}"

    @property
    def kernel(self) -> Kernel:
        """The compiled entry."""
        return kernel("vector", NAMES[self.width])

    def prepare(self, device: Device) -> Launch:
        """Two floats read and one written: 12 bytes an element; n is a multiple of the width.

        Small whole numbers: every launch adds to y, and every sum of them is exact.
        """
        random = np.random.default_rng(self.n)
        x = random.integers(1, 16, self.n, np.uint8).astype(np.float32)
        source, target = device.put(x), device.put(x[::-1].copy())

        def check() -> None:
            before = device.get(target)
            saxpy(device, A, source, target, self.width)
            np.testing.assert_array_equal(device.get(target), A * x + before)

        grid = -(-self.n // self.width // BLOCK)
        return Launch(self.kernel, grid, BLOCK, (source, target, A, self.n), 12 * self.n, check)


def saxpy(device: Device, a: Any, x: Array, y: Array, width: int = 4) -> None:
    """Add a x to y in place: whole loads of `width` floats first, then the last n % width.

    Raises
    ------
    ArgumentError
        An array is not contiguous one-dimensional float32 device memory, or not aligned to the
        loads, or x and y differ in size.
    """
    entry = kernel("vector", NAMES[width])
    n, others = vector_size(entry, x), vector_size(entry, y)
    if n != others:
        raise ArgumentError(f"x has {n} elements and y has {others}: pass two of one size")
    whole = n - n % width
    for start, stop, floats in ((0, whole, width), (whole, n, 1)):
        if stop > start:
            grid = -(-(stop - start) // floats // BLOCK)
            views = x[start:stop], y[start:stop]
            device.launch(kernel("vector", NAMES[floats]), grid, BLOCK, *views, a, stop - start)
