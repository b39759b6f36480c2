"""y = a x + y over any number of floats: the published kernel, and a launcher that adds its tail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from harness.devices import Array, Device, Launch
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
        """x and y read, y written: 12 bytes an element. n is a multiple of the width.

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
    """Add a x to y in place, both float32 of one size: whole loads first, then the last n % width.

    Raises
    ------
    ArgumentError
        An array is not contiguous float32, or not aligned to the loads.
    """
    (n,) = x.__cuda_array_interface__["shape"]
    whole = n - n % width
    for start, stop, entry in ((0, whole, NAMES[width]), (whole, n, NAMES[1])):
        if stop > start:
            loads = (stop - start) // (width if entry == NAMES[width] else 1)
            arguments = (x[start:stop], y[start:stop], a, stop - start)
            device.launch(kernel("vector", entry), -(-loads // BLOCK), BLOCK, *arguments)
