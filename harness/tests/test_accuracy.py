"""No sum is further from the exact one than its bound says, nor is a bound larger than needed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.models.accuracy import ROUNDOFF, exact_sum, gamma, sum_error
from harness.strategies import Floats

KINDS = ("normal", "ones", "cancelling", "wide", "subnormal", "absorbing")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([2.0**60, 1.0, -(2.0**60)], 1.0),
        ([], 0.0),
        ([1.0, math.inf, math.inf], math.inf),
        ([-math.inf, 1.0], -math.inf),
        ([math.inf, -math.inf], math.nan),
        ([math.inf, math.nan], math.nan),
    ],
)
def test_the_exact_sum_knows_what_is_no_number(values: list[float], expected: float) -> None:
    """As IEEE 754 has it, in any order of addition."""
    np.testing.assert_equal(exact_sum(values), expected)


def test_gamma_is_higham_s_until_nothing_is_certain() -> None:
    """It is h u / (1 - h u); from h = 1 / u on every digit may be wrong."""
    assert gamma(0) == 0
    assert gamma(100) == 100 * ROUNDOFF / (1 - 100 * ROUNDOFF)
    assert gamma(100, np.float64) == 100 * 2.0**-53 / (1 - 100 * 2.0**-53)
    assert gamma(2**24 - 1) == 2**24 - 1
    assert gamma(2**24) == math.inf


@pytest.mark.parametrize(
    ("terms", "height", "expected"),
    [
        (1 << 20, 20, gamma(20)),
        (1 << 24, 1 << 24, (2**24 - 1) * ROUNDOFF),  # a chain past the reach of gamma
        (2, 10, ROUNDOFF),  # the tree is mostly empty
        (1, 10, 0),
        (0, 10, 0),
    ],
)
def test_the_smaller_bound_holds(terms: int, height: int, expected: float) -> None:
    """That of the tree's height, or that of any order of so many terms."""
    assert sum_error(terms, height, 3.0) == 3 * expected
    assert sum_error(terms, height, 3.0, atomics=5) == 3 * expected + 10 * 2.0**-126


@given(kind=st.sampled_from(KINDS), seed=st.integers(0, 2**32 - 1), size=st.integers(1, 300))
def test_chains_and_trees_stay_within_it(kind: str, seed: int, size: int) -> None:
    """One term after another is a tree of height n - 1, halves a tree of height log2 n."""
    x = Floats(kind, seed, size).array()
    exact, magnitude = math.fsum(x), math.fsum(np.abs(x))
    chain = float(np.add.accumulate(x)[-1])
    assert abs(chain - exact) <= sum_error(size, size - 1, magnitude)
    height = math.ceil(math.log2(size))
    halves = np.zeros(1 << height, np.float32)
    halves[:size] = x
    while len(halves) > 1:
        halves = halves[: len(halves) // 2] + halves[len(halves) // 2 :]
    assert abs(float(halves[0]) - exact) <= sum_error(size, height, magnitude)
