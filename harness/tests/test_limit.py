"""Sums past the ladder without a device: which shape, how tall a tree, what the code must keep."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from harness.models.counting import loads_under_way
from harness.workloads.limit import (
    ELEMENTS,
    KIB,
    LOAD,
    TILES,
    V10,
    WARP_OF_ELEMENTS,
    Element,
    Shape,
    best,
    error_bound,
    height,
    streaming,
)
from kernels import Kernel, compile_kernel, parameters

LARGE: Final = 1 << 30
EMPTY: Final = -1
Depths = NDArray[np.int64]


def gpu(architecture: str, bulk_copies: int = 0, multiprocessors: int = 132) -> Any:
    """What a launcher asks of a device."""
    facts = {"architecture": architecture, "bulk_copies": bulk_copies}
    return SimpleNamespace(multiprocessors=multiprocessors, **facts)


@pytest.mark.parametrize(
    ("device", "rung", "in_flight"),
    [
        (gpu("sm_70"), "reduce_v9", 32),
        (gpu("sm_80"), "reduce_v9", 32),
        (gpu("sm_89"), "reduce_v9", 32),
        (gpu("sm_90"), "reduce_v9", 128),  # emulated
        (gpu("sm_90", 227 * KIB), "reduce_v10", 128),
        (gpu("sm_100", 227 * KIB), "reduce_v10", 128),
        (gpu("sm_120", 99 * KIB), "reduce_v9", 64),  # bulk copies, but no room for V10's
        (gpu("sm_200", 128 * KIB), "reduce_v9", 64),  # room for its copies, but not its barriers
    ],
    ids=lambda value: getattr(value, "architecture", value),
)
def test_each_gpu_keeps_in_flight_what_its_memory_needs(
    device: Any, rung: str, in_flight: int
) -> None:
    """And each thread has a load under way at least."""
    shape = best(device, LARGE, ELEMENTS["float32"])
    assert (shape.rung, shape.in_flight) == (rung, in_flight * KIB)
    assert shape.loads >= 1


def test_a_sum_counts_elements_in_64_bits() -> None:
    """2^33 floats are 34 GB, which an H200 holds."""
    for rung in ("reduce_v8", "reduce_v9", "reduce_v10", "reduce_tile", "reduce_warp"):
        kernel = Shape(rung, 256, stages=2, chunk=16 * KIB).compiled(ELEMENTS["float32"])
        assert parameters(kernel)[-1].type == "long long"


def test_a_waiting_block_reads_its_slots_anew() -> None:
    """Without volatile the compiler may load a slot once, and spin on what it found."""
    for element in ELEMENTS.values():
        ptx = compile_kernel(Shape("reduce_v9", 64).compiled(element), "sm_90").ptx
        entry = ptx[ptx.index(".entry reduce_v9") :].partition("\n}")[0]
        assert entry.count("ld.volatile.global") >= element.words
        assert entry.count("st.volatile.global") >= 2 * element.words


SHAPES: Final = (
    *(WARP_OF_ELEMENTS, V10, *(shape for _, shape in TILES)),
    *(streaming(f"reduce_v{rung}", "sm_90") for rung in (8, 9)),
    *(Shape(f"reduce_v{rung}", 32, loads, per_sm=1) for rung in (8, 9) for loads in (1, 3, 5)),
    Shape("reduce_v10", 32, per_sm=1, stages=2, chunk=KIB),
)


@given(
    shape=st.sampled_from(SHAPES),
    element=st.sampled_from(sorted(ELEMENTS)),
    multiprocessors=st.sampled_from((1, 2, 7)),
    n=st.integers(0, 1 << 18),
    head=st.integers(0, 15),
)
def test_the_height_is_that_of_the_tree_within_a_few_additions(
    shape: Shape, element: str, multiprocessors: int, n: int, head: int
) -> None:
    """Followed through the kernel's loops; a zero that fills a place costs no rounding."""
    kind, device = ELEMENTS[element], gpu("sm_90", multiprocessors=multiprocessors)
    n = min(n, 32) if shape is WARP_OF_ELEMENTS else n
    bound = height(device, n, element, shape)
    found = depth(shape, kind, n, head % kind.per_load, shape.grid(n // kind.per_load, device))
    assert found <= bound <= found + 40 if n > 4096 else found <= bound


def test_the_bound_is_that_of_a_tree_of_this_height() -> None:
    """gamma_h = h u / (1 - h u), u = 2^-24 or 2^-53; V8's atomics flush two subnormals each."""
    device, tile = gpu("sm_90", multiprocessors=1), Shape("reduce_tile", 32, 2)
    for element, u in (("float32", 2.0**-24), ("float16", 2.0**-24), ("float64", 2.0**-53)):
        h = height(device, 1000, element, tile)
        assert error_bound(device, 1000, element, tile, 3.0) == 3 * h * u / (1 - h * u)
    assert error_bound(device, 1000, "int32", tile, 3.0) == 0
    v8 = Shape("reduce_v8", 32, 2, per_sm=1)
    assert error_bound(device, 1000, "float32", v8, 0.0) == 2 * 2.0**-126
    chain = Shape("reduce_v9", 32, 1, per_sm=1)  # 2^24 additions in a thread: past gamma's reach
    n = 1 << 31
    assert height(device, n, "float32", chain) > 1 << 24
    assert error_bound(device, n, "float32", chain, 1.0) == (n - 1) * 2.0**-24


def plus(a: Depths, b: Depths) -> Depths:
    """The additions behind a sum of two sums; nothing is free to add."""
    return np.where((a < 0) | (b < 0), np.maximum(a, b), np.maximum(a, b) + 1)


def fold(sums: Depths) -> Depths:
    """Five rounds of shuffles across the last axis, filled up to 32."""
    lanes = np.full((*sums.shape[:-1], 32), EMPTY)
    lanes[..., : sums.shape[-1]] = sums
    for off in (16, 8, 4, 2, 1):
        lanes = plus(lanes, lanes[..., np.arange(32) ^ off])
    return lanes[..., 0]


def depth(shape: Shape, kind: Element, n: int, head: int, grid: int) -> int:
    """Return the most additions an element goes through; `head` elements precede the first load."""
    threads = np.arange(grid * shape.block)
    if shape is WARP_OF_ELEMENTS:
        return max(0, int(fold(np.where(np.arange(32) < n, 0, EMPTY))))
    loads = max(0, n - head) // kind.per_load
    behind = n - head - loads * kind.per_load
    ends = plus(np.where(threads < min(head, n), 0, EMPTY), np.where(threads < behind, 0, EMPTY))
    blocks = fold(fold(in_threads(shape, kind, loads, ends, grid)))
    if not shape.slotted:
        return max(0, int(blocks.max()) + int(np.count_nonzero(blocks >= 0)) - 1)
    collected = np.full((1, shape.block), EMPTY)
    for start in range(0, grid - 1, shape.block):
        some = blocks[start : min(start + shape.block, grid - 1)]
        collected[0, : len(some)] = plus(collected[0, : len(some)], some)
    others = fold(fold(collected.reshape(1, -1, 32)))
    return max(0, int(plus(others, blocks[-1:])[0]))


def in_threads(shape: Shape, kind: Element, loads: int, ends: Depths, grid: int) -> Depths:
    """Return the additions in each thread's sum, by block, warp and lane."""
    trip = shape.chunk // LOAD // shape.block if shape.stages else shape.loads
    tile, one = trip * shape.block, kind.per_load.bit_length() - 1
    running = [np.full((grid, shape.block), EMPTY) for _ in range(4)]
    whole = loads // tile
    for i in range(whole * trip):
        block, u = i // trip % grid, i % trip
        into = running[u % 4 if shape.per_sm else 0][block]  # a tile has one sum
        into[:] = plus(into, np.full(shape.block, one))
    rest = np.arange(whole * tile, loads)
    for row in np.split(rest, range(shape.block, len(rest), shape.block)):
        there = running[0][whole % grid]
        there[: len(row)] = plus(there[: len(row)], np.full(len(row), one))
    total = plus(plus(running[0], running[1]), plus(running[2], running[3]))
    return plus(ends.reshape(grid, -1), total).reshape(grid, -1, 32)


@pytest.mark.parametrize("type_", ["unsigned", "unsigned short", "unsigned char"])
def test_loads_that_wait_for_each_other_are_not_under_way_together(
    tmp_path: Path, type_: str
) -> None:
    """A chase, of elements of any size, has one; loads beside each other are counted together."""
    source = f"""
extern "C" __global__ void chase(const {type_}* x, unsigned* out) {{
    unsigned i = x[threadIdx.x]; i = x[i]; i = x[i]; *out = x[i];
}}
extern "C" __global__ void beside(const {type_}* __restrict__ x, unsigned* out) {{
    *out = x[0] + x[100] * x[200] + x[300] * x[400];
}}
"""
    tmp_path.joinpath("loads.cu").write_text(source)
    found = [Kernel(str(tmp_path / "loads"), name) for name in ("chase", "beside")]
    assert [loads_under_way(each, "sm_90") for each in found] == [1, 5]
