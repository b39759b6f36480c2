"""The contended atomic of the reduce ladder alone, without the loads and trees around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from harness.devices import Array, Device, Launch
from harness.workloads.reduction import SOURCE, accumulator, own_lines
from kernels import Kernel, kernel

BLOCK: Final = 256


@dataclass(frozen=True)
class AtomicAlone:
    """One float atomic a block and nothing else, all on one address unless `spread`; a Workload.

    Without `blocks` as many as reduce_v4 has for 2^26 elements. Up to 2^24 the sum is exact.
    """

    blocks: int = (1 << 26) // BLOCK
    spread: bool = False

    @property
    def label(self) -> str:
        """The kernel, and where it adds."""
        return "atomic_alone-spread" if self.spread else "atomic_alone"

    @property
    def name(self) -> str:
        """The kernel and its grid."""
        return f"{self.label} blocks={self.blocks}"

    @property
    def kernel(self) -> Kernel:
        """The compiled entry."""
        return kernel(SOURCE, "atomic_alone", BLOCK=BLOCK, **({"SPREAD": 1} if self.spread else {}))

    def prepare(self, device: Device) -> Launch:
        """Each block adds 1: no bytes to speak of."""

        def check() -> None:
            fresh = self._zeros(device)
            device.launch(self.kernel, self.blocks, BLOCK, fresh)
            found, places = device.get(fresh), self.blocks if self.spread else 1
            assert np.count_nonzero(found) == places, f"{self.name} adds in other places"
            assert found.sum() == self.blocks, f"{self.name} adds up to {found.sum()}"

        out = own_lines(device, self.blocks) if self.spread else accumulator(device)
        return Launch(self.kernel, self.blocks, BLOCK, (out,), 0, check)

    def _zeros(self, device: Device) -> Array:
        if self.spread:
            return own_lines(device, self.blocks)
        return device.put(np.zeros(1, np.float32))
