"""Kernels that are wrong or slow on purpose: a rung's source with one place changed.

The rungs themselves stay as they are published; a plant is written to a folder of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from harness.devices import Device, Launch, Routine
from harness.workloads.reduction import SOURCE, Reduction
from kernels import Kernel, kernel

RUNG: Final = "reduce_v7"
SAMPLES: Final = 1_000_003  # different values; a prime
HEAD: Final = "    float sum = 0.0f;\n    for (int i = blockIdx.x"
# The index depends on the wait, so that no load can start before it.
WAIT: Final = """    __shared__ volatile int late;
    if (threadIdx.x == 0) {
        long long end = clock64() + CYCLES;
        while (clock64() < end) {}
        late = 0;
    }
    __syncthreads();
    float sum = 0.0f;
    for (int i = late + blockIdx.x"""


@dataclass(frozen=True)
class Plant:
    """What is replaced in reduce_v7, and by what.

    `safe` plants do the same on every run of a GPU and stay inside memory that is ours.
    """

    name: str
    old: str
    new: str
    safe: bool = True


WRONG: Final = (
    Plant("lost-barrier", "__syncthreads();", "", safe=False),
    Plant("lost-load", "i < n4", "i < n4 - 1"),
    Plant("lost-component", " + v.w", ""),
    Plant("lost-warp", "lane < blockDim.x / 32", "lane < blockDim.x / 32 - 1"),
    Plant("plain-store", "atomicAdd(out, sum)", "*out = sum"),
    Plant("written-beside", "if (lane == 0) atomicAdd(out", "if (lane < 2) atomicAdd(out + lane"),
)


def waiting(cycles: int) -> Plant:
    """Return the plant whose blocks wait so many SM cycles first; all blocks run at once."""
    return Plant(f"wait-{cycles}", HEAD, WAIT.replace("CYCLES", str(cycles)))


@dataclass(frozen=True)
class Planted(Reduction):
    """A reduction whose kernel stands in another file."""

    source: str = SOURCE

    @property
    def kernel(self) -> Kernel:
        """The rung as the file has it."""
        return replace(super().kernel, source=self.source)

    @property
    def name(self) -> str:
        """The file beside the kernel and n, since both are those of the rung."""
        return f"{super().name} {Path(self.source).name}"


def planted(plant: Plant, folder: Path, n: int = Reduction.n) -> Planted:
    """Write the source with `plant` in it and return the workload.

    Raises
    ------
    ValueError
        The rung has no such place any more.
    """
    before, declared, after = kernel(SOURCE, RUNG).path.read_text().partition(f"void {RUNG}(")
    if plant.old not in after:
        raise ValueError(f"{RUNG} has no {plant.old!r}: adapt the plant {plant.name}")
    path = folder / f"{SOURCE}-{plant.name}.cu"
    path.write_text(before + declared + after.replace(plant.old, plant.new, 1))
    return Planted(RUNG, n, source=str(path.with_suffix("")))


@dataclass(frozen=True)
class CardCopy:
    """The card's own copy of n float32 from one array to another; a Workload for a GPU."""

    n: int = 1 << 26

    @property
    def name(self) -> str:
        """What is copied."""
        return f"card_copy n={self.n}"

    def prepare(self, device: Device) -> Launch:
        """Return the copy of random values; 4 bytes of each are read and 4 written."""
        values = np.resize(np.random.default_rng(self.n).random(SAMPLES, np.float32), self.n)
        source, target = device.put(values), device.empty(self.n, np.float32)
        card: Any = device

        def check() -> None:
            poisoned = device.empty(self.n, np.float32)
            card.copy(source, poisoned, 4 * self.n)()
            np.testing.assert_array_equal(device.get(poisoned), values)

        run = card.copy(source, target, 4 * self.n)
        return Launch(Routine(self.name, run), 0, 0, (source, target), 8 * self.n, check)
