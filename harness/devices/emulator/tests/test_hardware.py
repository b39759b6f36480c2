"""The same lines on a GPU, the judge of them all. Skipped where there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


def assert_same(found: list[NDArray[Any]], expected: list[NDArray[Any]]) -> None:
    """Compare bits, but take any NaN for any other."""
    for one, other in zip(found, expected, strict=True):
        bits = f"u{one.itemsize}"
        same = (one.view(bits) == other.view(bits)) | ((one != one) & (other != other))
        assert same.all(), f"GPU {one[~same]}, emulated {other[~same]}"


@pytest.mark.parametrize(("mnemonic", "signature", "cases"), ROWS, ids=lambda v: str(v)[:24])
def test_arithmetic(
    run_on_gpu: RunLanes, mnemonic: str, signature: str, cases: list[tuple[Any, ...]]
) -> None:
    integer_division = mnemonic[:4] in ("div.", "rem.") and ".rn." not in mnemonic
    if integer_division and any(case[1] == 0 for case in cases):
        pytest.skip("PTX leaves the result open")
    *sources, _ = zip(*cases, strict=True)
    line = f"{mnemonic} {', '.join(('%d', '%a', '%b', '%c')[: len(cases[0])])};"
    assert_same(run_on_gpu(line, signature, *sources), run_lanes(line, signature, *sources))


@pytest.mark.parametrize(
    ("body", "signature", "inputs", "expected"), BODIES, ids=lambda v: str(v)[:40]
)
def test_operations(
    run_on_gpu: RunLanes, body: str, signature: str, inputs: list[list[Any]], expected: list[Any]
) -> None:
    assert run_on_gpu(body, signature, *inputs)[0].tolist() == expected


def patterns(kind: str, seed: int) -> list[Any]:
    """Draw values of a type from random bits: floats of every size, NaN and infinity among them."""
    random = np.random.default_rng(seed).bytes(PATTERNS * NUMPY[kind].itemsize)
    values: list[Any] = np.frombuffer(random, NUMPY[kind]).tolist()
    return values


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_fused_multiply_add_of_any_bits(run_on_gpu: RunLanes, kind: str) -> None:
    """Random bits, and sums that nearly cancel."""
    a, b, c = (patterns(kind, seed) for seed in range(3))
    with np.errstate(all="ignore"):
        near = -(exactly(a, kind) * exactly(b, kind))
    for addend in (c, near.tolist()):
        line, signature = f"fma.rn.{kind} %d, %a, %b, %c;", f"{kind} {kind} {kind} -> {kind}"
        assert_same(
            run_on_gpu(line, signature, a, b, addend), run_lanes(line, signature, a, b, addend)
        )


@pytest.mark.parametrize("source", ["f16", "f32", "f64"])
@pytest.mark.parametrize("target", ["s32", "u32", "s64", "u64"])
def test_conversions_of_any_bits(run_on_gpu: RunLanes, source: str, target: str) -> None:
    for rounding in ("rni", "rzi", "rmi", "rpi"):
        line, values = f"cvt.{rounding}.{target}.{source} %d, %a;", patterns(source, 5)
        signature = f"{source} -> {target}"
        assert_same(run_on_gpu(line, signature, values), run_lanes(line, signature, values))
    line, values = f"cvt.rn.{source}.{target} %d, %a;", patterns(target, 6)
    signature = f"{target} -> {source}"
    assert_same(run_on_gpu(line, signature, values), run_lanes(line, signature, values))


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
def test_shuffles_of_every_width(run_on_gpu: RunLanes, mode: str) -> None:
    """Each lane brings its own distance."""
    values, deltas = [*range(100, 132)], np.random.default_rng(7).integers(0, 64, 32).tolist()
    for width in (1, 2, 4, 8, 16, 32):
        clamp = (32 - width) << 8 | (0 if mode == "up" else 31)
        line = f"shfl.sync.{mode}.b32 %d|%e, %a, %b, {clamp}, 0xffffffff;"
        signature = "u32 u32 -> u32 pred"
        assert_same(
            run_on_gpu(line, signature, values, deltas), run_lanes(line, signature, values, deltas)
        )
