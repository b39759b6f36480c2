"""c += a * b by the kernels of kernels/unroll.cu, by so few threads that nothing hides latency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from harness.devices import Device, Launch
from kernels import Kernel, kernel

BLOCK: Final = 128  # threads, the seminar's THREAD_BLOCK_DIM
ELEMENTS: Final = {"naive": 1, "run_time_stride": 2, "compile_time_offset": 2}  # a thread


@dataclass(frozen=True)
class MultiplyAdd:
    """c += a * b for float32, as one kernel writes it; a Workload.

    Parameters
    ----------
    form
        A key of ELEMENTS.
    turns
        Blocks of the published grid that each launched block stands for, one after another.
    defines
        Which counterfactual.
    blocks
        The launched grid; one block an SM if not given.
    """

    form: str
    turns: int = 1
    defines: tuple[tuple[str, int], ...] = ()
    blocks: int | None = None

    @property
    def name(self) -> str:
        """The kernel and its launch."""
        return f"{self.kernel} grid={self.blocks or 'SMs'} block={BLOCK}"

    @property
    def kernel(self) -> Kernel:
        """The compiled entry."""
        return kernel("unroll", self.form, TURNS=self.turns, **dict(self.defines))

    def prepare(self, device: Device) -> Launch:
        """Three reads and a write of 4 bytes an element; c is updated in place.

        Small whole numbers: every launch adds to c, and every sum of them is exact.
        """
        grid = self.blocks or device.multiprocessors
        n = grid * self.turns * BLOCK * ELEMENTS[self.form]
        random = np.random.default_rng(n)
        a, b, c = (random.integers(1, 16, n, np.uint8).astype(np.float32) for _ in "abc")
        arrays = (device.put(a), device.put(b), device.put(c))

        def check() -> None:
            before = device.get(arrays[2])
            device.launch(self.kernel, grid, BLOCK, *arrays)
            np.testing.assert_array_equal(device.get(arrays[2]), before + a * b)

        return Launch(self.kernel, grid, BLOCK, arrays, 16 * n, check)
