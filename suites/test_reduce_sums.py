"""Every rung gives the right sum: any size, any values, any view it accepts.

The tolerance is no magic number but the error bound of the rung's own order of addition
(`Reduction.bound`), held against the exact sum.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import event, example, given, target
from hypothesis import strategies as st

from harness.devices import Device
from harness.devices.arguments import ArgumentError
from harness.models.accuracy import exact_sum
from harness.strategies import Floats, boundary_sizes, floats
from harness.workloads import reduction
from harness.workloads.reduction import RUNGS, VARIANTS, Reduction, reduce_sum
from kernels import CompilationError, compile_source

BLOCKS: Final = (32, 64, 128, 256, 512, 1024)
EMULATED_LARGEST: Final = 1 << 17
GPU_LARGEST: Final = 1 << 23


def assert_sum(device: Device, run: Reduction, x: np.ndarray[Any, Any]) -> None:
    """Hold the sum of x against the exact one."""
    found, exact = reduce_sum(device, run, device.put(x)), exact_sum(x)
    if not math.isfinite(exact):
        np.testing.assert_equal(found, exact)
        return
    error = abs(found - exact)
    allowed = run.bound(exact_sum(np.abs(x)), len(x), device)
    target(error / allowed if allowed else 0.0, label="share of the error bound")
    assert error <= allowed, f"off by {error:.3g}, the bound is {allowed:.3g}"


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.label)
def test_every_rung_sums_any_array(device: Device, variant: Reduction) -> None:
    """Sizes around every edge of a launch; values that cancel, are tiny, or are no numbers.

    A small grid makes a persistent rung go around often, where the order of its additions counts.
    """
    largest = GPU_LARGEST if getattr(device, "clock", None) else EMULATED_LARGEST

    @given(x=floats(variant.block, largest), blocks=st.none() | st.integers(1, 4))
    @example(x=Floats("infinite", 0, 1000), blocks=None)
    @example(x=Floats("absorbing", 0, 1 << 15), blocks=1)
    def sums(x: Floats, blocks: int | None) -> None:
        event(x.kind)
        assert_sum(device, replace(variant, blocks=blocks), x.array())

    sums()


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.label)
def test_the_check_of_a_timed_sum_sees_one_lost_element(
    device: Device, variant: Reduction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its inputs are whole numbers and none is 0, so that it can ask for the exact sum."""
    launch = replace(variant, n=1 << 16).prepare(device)
    launch.check()
    monkeypatch.setattr(reduction, "reduce_sum", lambda on, rung, x: reduce_sum(on, rung, x[:-1]))
    with pytest.raises(AssertionError, match="the sum is exactly"):
        launch.check()


@given(
    rung=st.sampled_from(sorted(RUNGS)),
    block=st.sampled_from(BLOCKS),
    blocks=st.integers(1, 40),
    size=st.sampled_from(boundary_sizes(1024, 1 << 14)),
)
def test_any_block_and_any_grid_give_the_sum(
    device: Device, rung: str, block: int, blocks: int, size: int
) -> None:
    """Whole numbers up to 2^24 add without rounding, in any order: the sum is exact."""
    run = Reduction(rung, block=block, blocks=blocks)
    x = np.arange(size, dtype=np.float32) % 7
    assert reduce_sum(device, run, device.put(x)) == x.sum(dtype=np.float64)


@given(rung=st.sampled_from(sorted(RUNGS)), start=st.integers(0, 9), size=st.integers(0, 3000))
def test_a_view_is_summed_or_refused(device: Device, rung: str, start: int, size: int) -> None:
    """A scalar rung takes any view; float4 needs its first element on 16 bytes, and says so."""
    x = np.arange(4096, dtype=np.float32) % 5
    view, expected = device.put(x)[start : start + size], float(x[start : start + size].sum())
    width = RUNGS[rung].width
    if start % width and size >= width:
        with pytest.raises(
            ArgumentError, match=r"'x4' of .* at 0x[0-9a-f]+ is not 16-byte aligned"
        ):
            reduce_sum(device, Reduction(rung), view)
    else:
        assert reduce_sum(device, Reduction(rung), view) == expected


@pytest.mark.parametrize("rung", RUNGS)
def test_what_a_kernel_would_misread_is_refused(device: Device, rung: str) -> None:
    """Strides, dtypes and host values: a raw kernel would read the wrong bits without a word."""
    values = np.arange(64, dtype=np.float32)
    refused: dict[str, Any] = {
        "strides": device.put(values)[::2],
        "holds float64": device.put(values.astype(np.float64)),
        "holds int32": device.put(values.astype(np.int32)),
        "a Python float": 3.0,
        "ndarray": values,
        "pass one dimension": device.put(values.reshape(8, 8)),
    }
    for message, x in refused.items():
        with pytest.raises(ArgumentError, match=message):
            reduce_sum(device, Reduction(rung), x)


def test_a_global_atomic_flushes_the_subnormals_that_a_tree_keeps(device: Device) -> None:
    """A float atomic on global memory takes a subnormal operand for zero (PTX ISA, atom).

    A block's tree adds a thousand of them without rounding, to a sum that is no longer subnormal.
    """
    x = device.put(np.full(1000, 2.0**-130, np.float32))
    assert reduce_sum(device, Reduction("reduce_v1"), x) == 0
    assert reduce_sum(device, Reduction("reduce_v4"), x) == 1000 * 2.0**-130


def test_no_element_is_beyond_the_reach_of_an_int() -> None:
    """Past 2^31 - 1 elements the launcher cuts the array; every part is counted once."""
    for size in (2**31 - 1, 2**31, 2**32 + 3, 3 * 2**30 + 5):
        parts = list(Reduction("reduce_v7").parts(size))
        ends = [(part.start, part.stop) for part in parts]
        assert ends[0][0] == 0
        assert ends[-1][1] == size
        assert all(a[1] == b[0] for a, b in pairwise(ends))
        assert all(part.loads <= 2**30 for part in parts)


@pytest.mark.parametrize("block", [0, 33, 48, 96, 2048])
def test_a_block_that_cannot_be_halved_is_refused(block: int) -> None:
    """The trees halve the block down to one thread."""
    with pytest.raises(ValueError, match=f"halves its block: {block} is not 32, 64"):
        Reduction("reduce_v4", block=block)


@pytest.mark.claim(
    "reduce.v7-compiles", "V7 reads const float* as float4 and sums n floats", expects="refuted"
)
def test_v7_compiles_as_float4_and_leaves_the_last_three(
    claim: Any, emulator: Any, tmp_path: Path
) -> None:
    """C++ has no conversion for `float4 v = x4[i]` of a `const float*`; n4 counts whole float4s."""
    v7 = Reduction("reduce_v7")
    source = v7.kernel.path.read_text()
    published_form = tmp_path / "published.cu"
    published_form.write_text(source.replace("const float4* __restrict__ x4", "const float* x4"))
    with pytest.raises(CompilationError) as refusal:
        compile_source(published_form, v7.kernel.defines, emulator.architecture)
    claim.counted("the compiler names float4", "float4" in str(refusal.value), True)

    n = 4 * 256 + 3
    ones, out = emulator.put(np.ones(n, np.float32)), emulator.put(np.zeros(1, np.float32))
    emulator.launch(v7.kernel, 1, 256, ones[: n - 3], out, n // 4)
    added = int(emulator.get(out)[0])
    claim.counted("elements the kernel adds of 1027", added, n - 3, decisive=True)
    claim.counted("elements its launcher adds", int(reduce_sum(emulator, v7, ones)), n)


@pytest.mark.claim("reduce.v1-accuracy", "V1 also loses the sum", ours=True)
def test_v1_stops_counting_at_2_to_the_24(claim: Any, emulator: Any) -> None:
    """From 2^24 on, adding 1 to a float32 changes nothing: its neighbour is 2 away.

    V1 adds every element to one float32, so its sum sticks. A tree adds equals to equals.
    """
    n = (1 << 24) + 4096
    ones = emulator.put(np.ones(n, np.float32))
    v1, v5, v7 = (Reduction(f"reduce_v{rung}") for rung in (1, 5, 7))
    claim.counted(f"V1's sum of {n} ones", int(reduce_sum(emulator, v1, ones)), 1 << 24)
    for rung in (v5, v7):
        claim.counted(f"{rung.rung}'s sum", int(reduce_sum(emulator, rung, ones)), n)
    tree, chain = (rung.bound(1.0, 1 << 26, emulator) for rung in (v7, v1))
    what = "bound of V1 / bound of V7 at n = 2^26 is past 1000"
    claim.counted(what, chain > 1000 * tree, True, "arithmetic")
