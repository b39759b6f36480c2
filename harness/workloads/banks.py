"""The kernels of kernels/banks.cu as workloads: shared loads at a stride, a transpose by tiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from harness.devices import Device, Launch
from kernels import Kernel, kernel

WARP: Final = 32
READS: Final = 16  # of read_strided in a row
MAX_STRIDE: Final = 64
WORDS: Final = 31 * MAX_STRIDE + READS * WARP
TILE: Final = 32
TILE_BLOCK: Final = 256


@dataclass(frozen=True)
class StridedReads:
    """Shared loads by a full block on each SM, lanes `stride` words apart; a Workload.

    Parameters
    ----------
    stride
        In words, 1 to 64.
    width
        Bytes of a word: 4, 8 or 16.
    trips
        Times 16 loads a thread.
    block, blocks
        Threads of a block; blocks, or one on each SM if not given.
    """

    stride: int
    width: int = 4
    trips: int = 4096
    block: int = 1024
    blocks: int | None = None

    @property
    def name(self) -> str:
        """The kernel, its stride, and the loads of a thread."""
        return f"{self.kernel} stride={self.stride} loads={self.trips * READS}"

    @property
    def kernel(self) -> Kernel:
        """The compiled entry."""
        return kernel("banks", "read_strided", WIDTH=self.width)

    def prepare(self, device: Device) -> Launch:
        """Return the launch on random words: no bytes to speak of."""
        parts = self.width // 4
        words = np.random.default_rng(self.stride).integers(0, 1 << 31, (WORDS, parts), np.int32)
        source, grid = device.put(words.reshape(-1)), self.blocks or device.multiprocessors
        out = device.empty(grid * self.block, np.int32)
        arguments = (source, out, self.stride, self.trips, 0)

        def check() -> None:
            poisoned = device.empty(grid * self.block, np.int32)
            device.launch(self.kernel, grid, self.block, source, poisoned, *arguments[2:])
            expected = np.resize(self.sums(words), grid * self.block)
            np.testing.assert_array_equal(device.get(poisoned), expected)

        return Launch(self.kernel, grid, self.block, arguments, 0, check)

    def sums(self, words: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return what each lane must add up, modulo 2^32 as its additions do."""
        read = np.arange(WARP)[:, None] * self.stride + np.arange(READS) * WARP
        once = words.sum(axis=1, dtype=np.int64)[read].sum(axis=1)
        wrapped: NDArray[np.int32] = (once * self.trips).astype(np.uint32).view(np.int32)
        return wrapped


@dataclass(frozen=True)
class Transpose:
    """Turn an n x n float32 matrix through tiles with `pad` unused words a row; a Workload."""

    pad: int
    n: int = 1 << 12

    @property
    def name(self) -> str:
        """The kernel with its pad, and n."""
        return f"{self.kernel} n={self.n}"

    @property
    def kernel(self) -> Kernel:
        """The compiled entry."""
        return kernel("banks", "transpose", PAD=self.pad)

    @property
    def tiles(self) -> int:
        """Tiles of the matrix, one a block."""
        return (self.n // TILE) ** 2

    def prepare(self, device: Device) -> Launch:
        """Every element read once and written once: 8 bytes."""
        size = self.n * self.n
        x: NDArray[Any] = np.random.default_rng(self.n).random((self.n, self.n), np.float32)
        source, target = device.put(x.reshape(-1)), device.empty(size, np.float32)
        launched = (self.kernel, self.tiles, TILE_BLOCK)

        def check() -> None:
            poisoned = device.empty(size, np.float32)
            device.launch(*launched, source, poisoned, self.n)
            np.testing.assert_array_equal(device.get(poisoned).reshape(x.shape), x.T)

        return Launch(*launched, (source, target, self.n), 8 * size, check)
