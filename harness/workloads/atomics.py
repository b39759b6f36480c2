"""The contended atomic of the reduce ladder alone, without the loads and trees around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from harness.devices import Device, Launch
from harness.workloads.reduction import SOURCE, accumulator
from kernels import Kernel, kernel

BLOCK: Final = 256


@dataclass(frozen=True)
class AtomicAlone:
    """One float atomic a block, all on one address, and nothing else; a Workload.

    Without `blocks` as many as reduce_v4 has for 2^26 elements. Up to 2^24 the sum is exact.
    """

    blocks: int = (1 << 26) // BLOCK

    @property
    def name(self) -> str:
        """The kernel and its grid."""
        return f"atomic_alone blocks={self.blocks}"

    @property
    def kernel(self) -> Kernel:
        """The compiled entry."""
        return kernel(SOURCE, "atomic_alone", BLOCK=BLOCK)

    def prepare(self, device: Device) -> Launch:
        """Each block adds 1: no bytes to speak of."""

        def check() -> None:
            fresh = device.put(np.zeros(1, np.float32))
            device.launch(self.kernel, self.blocks, BLOCK, fresh)
            found = device.get(fresh)[0]
            assert found == self.blocks, f"{self.name} adds up to {found}"

        return Launch(self.kernel, self.blocks, BLOCK, (accumulator(device),), 0, check)
