"""Two workloads to hold a memory against Little's law: a pointer chase and a counted read.

A chase has one load under way and shows the latency; a read has as many bytes under way as it is
told to, and shows what bandwidth they give.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from harness.devices import Array, Device, Launch, TimedDevice
from harness.models.counting import bytes_per_thread, compiled_occupancy
from harness.models.little import dram_latency, rate
from kernels import Kernel, kernel

BLOCK: Final = 256
LINE: Final = 32  # uint32 in the 128 bytes that two loads of a chase never share
MOST_LOADS, MOST_BLOCKS = 16, 8  # an array is a whole number of trips for each divisor of these

Words = NDArray[np.uint32]


def entry(name: str, loads: int = 1) -> Kernel:
    """A kernel of kernels/little.cu."""
    return kernel("little", name, BLOCK=BLOCK, UNROLL=loads)


@dataclass(frozen=True)
class Read:
    """Read n 4-byte words with `loads` loads a thread and `blocks` blocks an SM; a Workload.

    Parameters
    ----------
    loads
        Loads of a thread before the first use: 1, 2, 4, 8 or 16.
    blocks
        Blocks of 256 threads on an SM at once: 1, 2, 4 or 8, and fewer where fewer fit.
    n
        Words, rounded down to whole trips.
    """

    loads: int
    blocks: int
    n: int = 1 << 27

    @property
    def name(self) -> str:
        """Loads a thread, blocks an SM, and the size."""
        return f"read loads={self.loads} blocks={self.blocks} n={self.n}"

    @property
    def kernel(self) -> Kernel:
        """The compiled entry."""
        return entry("read", self.loads)

    def resident(self, architecture: str) -> int:
        """Return the blocks that an SM really holds."""
        return min(self.blocks, compiled_occupancy(self.kernel, BLOCK, architecture).blocks)

    def bytes_in_flight(self, architecture: str) -> int:
        """Return the bytes that an SM has in flight, from the compiled loads."""
        threads = BLOCK * self.resident(architecture)
        return bytes_per_thread(self.kernel, architecture) * threads

    def fastest(self, device: TimedDevice) -> float:
        """Return the least seconds it can take: at the memory's peak, or by Little's law."""
        flying = self.bytes_in_flight(device.architecture) * device.multiprocessors
        peak = getattr(device, "peak_bandwidth", 0.0)
        limit = rate(flying, dram_latency(device))
        return 4 * self.size(device) / (min(peak, limit) if peak else limit)

    def size(self, device: Device) -> int:
        """Return n rounded down, alike for all loads and blocks."""
        unit = BLOCK * MOST_LOADS * MOST_BLOCKS * device.multiprocessors
        return self.n // unit * unit

    def prepare(self, device: Device) -> Launch:
        """Return the launch on random words."""
        grid = self.resident(device.architecture) * device.multiprocessors
        return self.launch(device, grid, self.size(device) // (grid * BLOCK * self.loads))

    def launch(self, device: Device, grid: int, trips: int) -> Launch:
        """Return the launch of so many blocks, each of so many trips."""
        x, array = random_words(device, trips * grid * self.loads * BLOCK)
        expected = x.reshape(trips, grid, self.loads, BLOCK).sum((0, 2), np.uint32).reshape(-1)
        sums = device.empty(grid * BLOCK, np.uint32)

        def check() -> None:
            found = device.empty(grid * BLOCK, np.uint32)
            device.launch(self.kernel, grid, BLOCK, array, found, trips)
            np.testing.assert_array_equal(device.get(found), expected)

        return Launch(self.kernel, grid, BLOCK, (array, sums, trips), x.nbytes, check)


@lru_cache(maxsize=2)
def random_words(device: Device, n: int) -> tuple[Words, Array]:
    """Return n random words, here and on the device; the last two arrays stay."""
    block: Any = np.random.default_rng(n).integers(0, 2**32, min(n, 1 << 24), np.uint32)
    x = np.resize(block, n)
    return x, device.put(x)


@dataclass(frozen=True)
class Chase:
    """Follow a ring of cold lines, each in its random place; a Workload.

    Parameters
    ----------
    lines
        Lines of 128 bytes on the ring.
    laps
        Times round it. One lap meets every line once, cold; many laps of a ring that is larger
        than L1 and smaller than L2 are answered by L2.
    places
        Lines of the array that the ring is laid out in.
    """

    lines: int
    laps: int = 1
    places: int = 1 << 17

    @property
    def name(self) -> str:
        """The ring and its steps."""
        return f"chase lines={self.lines} of {self.places} steps={self.steps}"

    @property
    def steps(self) -> int:
        """Dependent loads."""
        return self.laps * self.lines

    def prepare(self, device: Device) -> Launch:
        """One thread; hardly any bytes."""
        random = np.random.default_rng(self.lines)
        ring = LINE * random.permutation(self.places)[: self.lines].astype(np.uint32)
        array = device.put(self.laid_out(ring, random))
        start, end = int(ring[0]), device.empty(1, np.uint32)
        kernel = entry("chase")

        def check() -> None:
            found = device.empty(1, np.uint32)
            for steps in (self.steps, self.lines // 2):
                device.launch(kernel, 1, 1, array, found, start, steps)
                assert device.get(found)[0] == ring[steps % self.lines], f"{steps} steps"

        return Launch(kernel, 1, 1, (array, end, start, self.steps), 0, check)

    def laid_out(self, ring: Words, random: np.random.Generator) -> Words:
        """Return the array: a line of the ring begins with where the next one is."""
        array = random.integers(0, LINE * self.places, LINE * self.places, np.uint32)
        array[ring] = np.roll(ring, -1)
        return array
