"""Sum any array at the limit of the memory: which kernel, in which shape, with how much in flight.

A few elements are a matter of latency, so as few steps as possible; many are a matter of bytes in
flight, so as many as the memory needs. In between a block takes one tile.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import numpy as np

from harness.devices import Array, Device, Launch, address_of
from harness.devices.arguments import ArgumentError, vector_size
from harness.models.accuracy import sum_error
from harness.timing import Ideal
from kernels import Kernel, kernel

SOURCE: Final = "reduce_limit"
ANY: Final = kernel(SOURCE, "reduce_v8")  # each takes x first
KIB: Final = 1024
LOAD: Final = 16  # bytes
WARP: Final = 32
PERIOD: Final = 1 << 24
RUNNING_SUMS: Final = 4  # of a thread
IN_BLOCK: Final = 10  # shuffles that an element's sum goes through, two rounds of five
ADDING: Final = "reduce_v8"  # to what it finds in the output; the others store
SLOTTED: Final = frozenset({"reduce_tile", "reduce_v9", "reduce_v10"})


class RungMissing(RuntimeError):
    """The device cannot run the rung that was asked for; the message says which one it can."""


@dataclass(frozen=True)
class Element:
    """A type of elements: how they are stored, what they are added in, the define that says so."""

    stored: np.dtype[Any]
    total: np.dtype[Any]
    define: str = ""

    @property
    def per_load(self) -> int:
        """Elements of a 16-byte load."""
        return LOAD // self.stored.itemsize

    @property
    def words(self) -> int:
        """Words of a slot: one for each four bytes of a sum."""
        return self.total.itemsize // 4


ELEMENTS: Final = {
    "float32": Element(np.dtype("f4"), np.dtype("f4")),
    "float64": Element(np.dtype("f8"), np.dtype("f8"), "DOUBLE"),
    "float16": Element(np.dtype("f2"), np.dtype("f4"), "HALF"),
    "bfloat16": Element(np.dtype("u2"), np.dtype("f4"), "BFLOAT16"),  # its bits: NumPy has no such
    "int32": Element(np.dtype("i4"), np.dtype("i8"), "INT32"),
}


@dataclass(frozen=True)
class Shape:
    """How a kernel is launched.

    Attributes
    ----------
    rung
        The kernel's name.
    block, loads
        Threads a block; 16-byte loads that a thread has under way.
    per_sm
        Blocks an SM; 0 for as many as the array has tiles.
    stages, chunk
        Bulk copies a block has under way, and the bytes of one.
    resident
        Blocks an SM that the compiler must leave registers for.
    """

    rung: str
    block: int
    loads: int = 1
    per_sm: int = 0
    stages: int = 0
    chunk: int = 0
    resident: int = 1

    @property
    def shared(self) -> int:
        """Dynamic shared memory of a block, in bytes."""
        return self.stages * self.chunk

    @property
    def slotted(self) -> bool:
        """Whether each block leaves its sum in a slot of its own."""
        return self.rung in SLOTTED

    @property
    def in_flight(self) -> int:
        """Bytes that an SM keeps under way."""
        return self.per_sm * (self.shared or self.block * self.loads * LOAD)

    def compiled(self, element: Element) -> Kernel:
        """Return the kernel of this shape for elements of a type."""
        chosen = {"BLOCK": self.block, "LOADS": self.loads}
        if self.stages:
            chosen |= {"STAGES": self.stages, "CHUNK": self.chunk}
        if self.resident > 1:
            chosen["RESIDENT"] = self.resident
        if element.define:
            chosen[element.define] = 1
        return kernel(SOURCE, self.rung, **chosen)

    def grid(self, loads: int, device: Device) -> int:
        """Return the blocks for so many 16-byte loads."""
        if self.per_sm:
            return self.per_sm * device.multiprocessors
        return max(1, -(-loads // (self.block * self.loads)))


WARP_OF_ELEMENTS: Final = Shape("reduce_warp", WARP)
# Up to so many bytes, a tile a block: measured on an H200, from 1 element to 2^24.
TILES: Final = (
    (4 * KIB, Shape("reduce_tile", 128, 2)),
    (16 * KIB, Shape("reduce_tile", 256, 4)),
    (64 * KIB, Shape("reduce_tile", 512, 8)),
    (1024 * KIB, Shape("reduce_tile", 512, 2)),
    (4096 * KIB, Shape("reduce_tile", 256, 4)),
    (16384 * KIB, Shape("reduce_tile", 512, 4)),
    (65536 * KIB, Shape("reduce_tile", 512, 8)),
)
# KiB to keep in flight on an SM, of which half arrives while a block adds the other half: twice
# what NVIDIA asks for 90 % of the peak (GTC 2025), before Hopper twice CUB's minimum. With 64 KiB
# an H200 is half a per cent slower, with 256 no faster.
IN_FLIGHT: Final = {"sm_70": 32, "sm_80": 32, "sm_86": 32, "sm_89": 32, "sm_90": 128, "sm_100": 128}
IN_FLIGHT_ELSEWHERE: Final = 64  # KiB
STATIC: Final = KIB  # of a block's shared memory, for V10's barriers and the sums of its warps
V10: Final = Shape("reduce_v10", 256, per_sm=1, stages=4, chunk=32 * KIB)


def streaming(rung: str, architecture: str) -> Shape:
    """Return V8 or V9 with what an SM of `architecture` needs in flight, in two blocks of 512."""
    needed = IN_FLIGHT.get(architecture, IN_FLIGHT_ELSEWHERE) * KIB
    return Shape(rung, 512, needed // (2 * 512 * LOAD), per_sm=2)


def best(device: Device, size: int, element: Element) -> Shape:
    """Return the shape that sums `size` elements fastest."""
    if size <= WARP:
        return WARP_OF_ELEMENTS
    for most, shape in TILES:
        if size * element.stored.itemsize <= most:
            return shape
    return V10 if fits(device, V10) else streaming("reduce_v9", device.architecture)


def fits(device: Device, shape: Shape) -> bool:
    """Whether the device has the bulk copies that a shape needs, and room for them."""
    return not shape.stages or shape.shared + STATIC <= device.bulk_copies


def element_of(x: Array, element: str | None = None) -> str:
    """Return the name of x's type of elements; bfloat16 has to be named.

    Raises
    ------
    ArgumentError
        x holds something that no rung adds, or not what `element` says.
    """
    stored = np.dtype(x.__cuda_array_interface__["typestr"])
    fitting = [name for name, each in ELEMENTS.items() if each.stored == stored]
    if element is not None and element not in fitting:
        raise ArgumentError(f"x holds {stored}, and {element!r} is stored as {_storage(element)}")
    if element is None and fitting in ([], ["bfloat16"]):
        raise ArgumentError(
            f"x holds {stored}: reduce_sum adds {', '.join(ELEMENTS)}; bfloat16 comes as its bits "
            "in uint16, with element='bfloat16'"
        )
    return element or fitting[0]


def _storage(element: str) -> str:
    if element not in ELEMENTS:
        return f"nothing here: elements are {', '.join(ELEMENTS)}"
    return str(ELEMENTS[element].stored)


def reduce_sum(device: Device, x: Array, element: str | None = None) -> float | int:
    """Return the sum of a one-dimensional array of any length, alignment and type of ELEMENTS.

    float16 and bfloat16 are added in float32, int32 in int64. The same array on the same device
    gives the same bits every time. A partial sum may overflow where the sum does not: large values
    of both signs then give infinity or NaN.

    Raises
    ------
    ArgumentError
        x is not contiguous one-dimensional device memory of a known type, at an address that is a
        multiple of its element's size.
    """
    size, name = vector_size(ANY, x), element_of(x, element)
    return sum_by(device, x, name, best(device, size, ELEMENTS[name]))


def sum_by(device: Device, x: Array, element: str, shape: Shape) -> float | int:
    """Return the sum of x by a rung of one's own choice.

    Raises
    ------
    RungMissing
        The device cannot run the rung.
    """
    total_type = ELEMENTS[element].total
    adds = shape.rung == ADDING
    out = device.put(np.zeros(1, total_type)) if adds else device.empty(1, total_type)
    launch_of(device, x, out, element, shape).on(device)
    total: float | int = device.get(out)[0].item()
    return total


def launch_of(device: Device, x: Array, out: Array, element: str, shape: Shape) -> Launch:
    """Return the launch that leaves the sum of x in `out`, or, with atomics, adds it there."""
    if not fits(device, shape):
        raise RungMissing(
            f"{shape.rung} fills {shape.shared} bytes of a block's shared memory by bulk copies "
            f"(sm_90 and later), {device.name} can fill {device.bulk_copies}: take reduce_v9, as "
            "reduce_sum does"
        )
    kind, size = ELEMENTS[element], vector_size(ANY, x)
    address = address_of(x)
    if address % kind.stored.itemsize:
        raise ArgumentError(
            f"x begins at {address:#x}, no multiple of the {kind.stored.itemsize} bytes of "
            f"{element}: copy it to memory of its own"
        )
    grid = shape.grid(size // kind.per_load, device)
    slots = (device.put(np.zeros(grid * kind.words, np.uint64)),) if shape.slotted else ()
    arguments = (x, out, *slots, size)
    bytes = size * kind.stored.itemsize
    return Launch(
        shape.compiled(kind), grid, shape.block, arguments, bytes, lambda: None, shared=shape.shared
    )


@dataclass(frozen=True)
class Sum:
    """The sum of n elements; a Workload.

    Parameters
    ----------
    n
        Elements.
    element
        A key of ELEMENTS.
    rung
        "reduce_v8", "reduce_v9" or "reduce_v10"; what `reduce_sum` takes if not given.
    changes
        Attributes of the rung's Shape that are to be others: (("resident", 4),).
    """

    n: int
    element: str = "float32"
    rung: str = ""
    changes: tuple[tuple[str, int], ...] = ()

    @property
    def name(self) -> str:
        """The rung with its changes, or the launcher, then type and size."""
        changes = "".join(f" {name}={value}" for name, value in self.changes)
        return f"{self.rung or 'reduce_sum'}{changes} {self.element} n={self.n}"

    def shape(self, device: Device) -> Shape:
        """Return how this sum is launched on `device`."""
        if not self.rung:
            return best(device, self.n, ELEMENTS[self.element])
        plain = V10 if self.rung == V10.rung else streaming(self.rung, device.architecture)
        changes: dict[str, Any] = dict(self.changes)
        return replace(plain, **changes)

    def prepare(self, device: Device) -> Launch:
        """Return the launch on n random whole numbers, whose sum is exact in any order."""
        x, total = whole_numbers(device, self.element, self.n)
        shape, out = self.shape(device), device.put(np.zeros(1, ELEMENTS[self.element].total))

        def check() -> None:
            found = sum_by(device, x, self.element, shape)
            assert found == total, f"{self.name} gives {found}; the sum is exactly {total}"

        return replace(launch_of(device, x, out, self.element, shape), check=check)


@lru_cache(maxsize=1)
def whole_numbers(device: Device, element: str, n: int) -> tuple[Array, int]:
    """Return n random whole numbers of -16 to 16 on the device, the same every time, and their sum.

    None is 0, so that a lost one shows. They repeat after 2^24, over which they sum to 1: partial
    sums stay below 2^24 in magnitude, up to which float32 is exact (`reduction`), and a whole
    period that is lost shows as well.
    """
    random = np.random.default_rng(PERIOD)
    half = random.integers(1, 17, PERIOD // 2, np.int8)
    balanced = np.concatenate([half, -half])
    balanced[0], balanced[PERIOD // 2] = 2, -1
    period = random.permutation(balanced)
    stored = period[:n].astype(np.float32 if element == "bfloat16" else ELEMENTS[element].stored)
    if element == "bfloat16":
        stored = (stored.view(np.uint32) >> 16).astype(np.uint16)
    return device.repeat(stored, n), n // PERIOD + int(period[: n % PERIOD].sum(dtype=np.int64))


def error_bound(device: Device, n: int, element: str, shape: Shape, magnitude: float) -> float:
    """Return the largest error of a sum of n elements whose magnitudes sum to so much."""
    kind = ELEMENTS[element]
    if kind.total.kind != "f":
        return 0.0  # integers round nothing
    atomics = 0 if shape.slotted else shape.grid(n // kind.per_load, device)
    additions = height(device, n, element, shape)
    return sum_error(n, additions, magnitude, kind.total, atomics=atomics)


def height(device: Device, n: int, element: str, shape: Shape) -> int:
    """Return the most additions that an element goes through."""
    kind = ELEMENTS[element]
    loads, in_load = n // kind.per_load, kind.per_load.bit_length() - 1
    grid = shape.grid(loads, device)
    each = shape.chunk // LOAD // shape.block if shape.stages else shape.loads  # loads a trip
    trips = -(-loads // (grid * shape.block * each)) if shape.per_sm else 0
    in_thread = trips * -(-each // RUNNING_SUMS) + each + RUNNING_SUMS
    collected = grid if not shape.slotted else -(-grid // shape.block) + IN_BLOCK + 1
    return in_load + in_thread + IN_BLOCK + collected


def peak(n: int, element: str = "float32") -> Ideal:
    """Return what reading n elements at the memory's peak would take."""
    size = n * ELEMENTS[element].stored.itemsize
    return Ideal(f"{size} bytes at the peak", lambda device: size / device.peak_bandwidth)
