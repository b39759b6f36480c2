"""Every rung gives the right sum: any size, any values, any view it accepts.

The tolerance is no magic number but the error bound of the rung's own order of addition
(`Reduction.bound`), held against the exact sum.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import event, given, target
from hypothesis import strategies as st

from harness.devices import Device
from harness.devices.arguments import ArgumentError
from harness.strategies import Floats, boundary_sizes, floats
from harness.workloads.reduction import RUNGS, Reduction, reduce_sum

BLOCKS: Final = (32, 64, 128, 256, 512, 1024)
EMULATED_LARGEST: Final = 1 << 17
GPU_LARGEST: Final = 1 << 23

VARIANTS: Final = (
    *(Reduction(rung) for rung in RUNGS),
    *(Reduction(f"reduce_v{rung}", defines=("STORE",)) for rung in (2, 3, 4)),
    Reduction("reduce_v2", defines=("MASK",)),
    Reduction("reduce_v6", defines=("INT_STRIDE",)),
    Reduction("reduce_v6", defines=("SHUFFLE_DOWN",)),
    Reduction("reduce_v7", defines=("SHUFFLE_DOWN",)),
)


def assert_sum(device: Device, reduction: Reduction, x: np.ndarray[Any, Any]) -> None:
    """Hold the sum of x against the exact one.

    NaN, or infinities of both signs, give NaN; infinities of one sign give that infinity.
    """
    found, wide = reduce_sum(device, reduction, device.put(x)), x.astype(np.float64)
    special = wide[~np.isfinite(wide)]
    if special.size:
        expected = special[0] if (special == special[0]).all() else math.nan
        np.testing.assert_equal(found, expected)
        return
    error = abs(found - math.fsum(wide))
    allowed = reduction.bound(math.fsum(np.abs(wide)), len(x), device)
    target(error / allowed if allowed else 0.0, label="share of the error bound")
    assert error <= allowed, f"off by {error:.3g}, the bound is {allowed:.3g}"


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: "-".join((v.rung, *v.defines)).lower())
def test_every_rung_sums_any_array(device: Device, variant: Reduction) -> None:
    """Sizes around every edge of a launch; values that cancel, are tiny, or are no numbers."""
    largest = GPU_LARGEST if getattr(device, "clock", None) else EMULATED_LARGEST

    @given(x=floats(variant.block, largest))
    def sums(x: Floats) -> None:
        event(x.kind)
        assert_sum(device, variant, x.array())

    sums()


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
    reduction = Reduction(rung, block=block, blocks=blocks)
    x = np.arange(size, dtype=np.float32) % 7
    assert reduce_sum(device, reduction, device.put(x)) == x.sum(dtype=np.float64)


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
