"""The same lines on a GPU, the judge of them all. Skipped where there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

from harness.devices import NoGPU
from harness.devices.driver import open_cupy
from harness.devices.emulator.tests.ptx_text import NUMPY, exactly, lane_text, run_lanes
from harness.devices.emulator.tests.test_lanewise import ROWS
from harness.devices.emulator.tests.test_operations import BODIES

RunLanes = Callable[..., list[NDArray[Any]]]
PATTERNS: Final = 1024


@pytest.fixture(scope="module")
def run_on_gpu() -> RunLanes:
    """Return `run_lanes` for the GPU; its driver compiles the text."""
    try:
        cupy = open_cupy()
    except NoGPU as reason:
        pytest.skip(str(reason))

    def run(body: str, signature: str, *inputs: Sequence[Any]) -> list[NDArray[Any]]:
        module = cupy.cuda.function.Module()
        module.load(lane_text(body, signature).encode())
        sources, targets = (side.split() for side in signature.split("->"))
        given = [cupy.asarray(exactly(v, k)) for v, k in zip(inputs, sources, strict=True)]
        size = len(inputs[0])
        results = [cupy.full(size * NUMPY[k].itemsize, 0xFF, np.uint8) for k in targets]
        pointers = tuple(np.uint64(array.data.ptr) for array in (*given, *results))
        module.get_function("k")((1,), (size,), pointers)
        return [r.get().view(NUMPY[k]) for r, k in zip(results, targets, strict=True)]

    return run


def assert_same(run_on_gpu: RunLanes, line: str, signature: str, *inputs: Sequence[Any]) -> None:
    """Run a line on both and compare bits, but take any NaN for any other."""
    found, expected = (run(line, signature, *inputs) for run in (run_on_gpu, run_lanes))
    for one, other in zip(found, expected, strict=True):
        bits = f"u{one.itemsize}"
        same = (one.view(bits) == other.view(bits)) | ((one != one) & (other != other))
        assert same.all(), f"{line} gave {one[~same]} on the GPU and {other[~same]} emulated"


def test_arithmetic(run_on_gpu: RunLanes) -> None:
    """All rows but integer division by zero, which PTX leaves open."""
    for mnemonic, signature, cases in ROWS:
        divides = mnemonic[:4] in ("div.", "rem.") and ".rn." not in mnemonic
        if not (divides and any(case[1] == 0 for case in cases)):
            *sources, _ = zip(*cases, strict=True)
            operands = ", ".join(("%d", "%a", "%b", "%c")[: len(cases[0])])
            assert_same(run_on_gpu, f"{mnemonic} {operands};", signature, *sources)


def test_operations(run_on_gpu: RunLanes) -> None:
    for body, signature, inputs, _ in BODIES:
        assert_same(run_on_gpu, body, signature, *inputs)


def patterns(kind: str, seed: int) -> list[Any]:
    """Draw values of a type from random bits: floats of every size, NaN and infinity among them."""
    random = np.random.default_rng(seed).bytes(PATTERNS * NUMPY[kind].itemsize)
    values: list[Any] = np.frombuffer(random, NUMPY[kind]).tolist()
    return values


def test_fused_multiply_add_of_any_bits(run_on_gpu: RunLanes) -> None:
    """Random bits, and sums that nearly cancel."""
    for kind in ("f16", "f32", "f64"):
        a, b, c = (patterns(kind, seed) for seed in range(3))
        with np.errstate(all="ignore"):
            near = -(exactly(a, kind) * exactly(b, kind))
        for addend in (c, near.tolist()):
            line, signature = f"fma.rn.{kind} %d, %a, %b, %c;", f"{kind} {kind} {kind} -> {kind}"
            assert_same(run_on_gpu, line, signature, a, b, addend)


def test_conversions_of_any_bits(run_on_gpu: RunLanes) -> None:
    for real, whole in product(("f16", "f32", "f64"), ("s32", "u32", "s64", "u64")):
        for rounding in ("rni", "rzi", "rmi", "rpi"):
            line = f"cvt.{rounding}.{whole}.{real} %d, %a;"
            assert_same(run_on_gpu, line, f"{real} -> {whole}", patterns(real, 5))
        line = f"cvt.rn.{real}.{whole} %d, %a;"
        assert_same(run_on_gpu, line, f"{whole} -> {real}", patterns(whole, 6))


def test_shuffles_of_every_width(run_on_gpu: RunLanes) -> None:
    """Each lane brings its own distance."""
    values, deltas = [*range(100, 132)], np.random.default_rng(7).integers(0, 64, 32).tolist()
    modes, widths = ("up", "down", "bfly", "idx"), (1, 2, 4, 8, 16, 32)
    for mode, width, last in product(modes, widths, (0, 5, 31)):
        line = f"shfl.sync.{mode}.b32 %d|%e, %a, %b, {(32 - width) << 8 | last}, 0xffffffff;"
        assert_same(run_on_gpu, line, "u32 u32 -> u32 pred", values, deltas)
