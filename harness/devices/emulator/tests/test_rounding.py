"""Fused multiply-add and saturation against exact rationals."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.devices.emulator.tests.ptx_text import NUMPY, run_lanes

TIE = 1 + 2.0**-12  # its square lies half-way between two float32
kinds = st.sampled_from(["f16", "f32", "f64"])
bit_patterns = st.integers(0, 2**64 - 1)
small = st.integers(-(2**12), 2**12)


def fma(kind: str, a: float, b: float, c: float) -> Any:
    (found,) = run_lanes(
        f"fma.rn.{kind} %d, %a, %b, %c;", f"{kind} {kind} {kind} -> {kind}", [a], [b], [c]
    )
    return found[0]


def nearest(exact: Fraction, kind: str) -> float:
    """Round a rational to nearest, ties to even, in integer arithmetic."""
    digits, lowest = {"f16": (11, -24), "f32": (24, -149), "f64": (53, -1074)}[kind]
    if not exact:
        return 0.0
    size = abs(exact)
    top = size.numerator.bit_length() - size.denominator.bit_length()  # size >= 2**(top - 1)
    top -= size < Fraction(2) ** top
    unit = Fraction(2) ** max(top + 1 - digits, lowest)
    rounded = round(size / unit) * unit  # Python rounds a half to even
    limit = Fraction(2) ** {"f16": 16, "f32": 128, "f64": 1024}[kind]
    return math.copysign(math.inf if rounded >= limit else rounded, -1 if exact < 0 else 1)


def floats_of(kind: str, *bits: int) -> list[float]:
    dtype = NUMPY[kind]
    raw = np.array([b % 2 ** (8 * dtype.itemsize) for b in bits], f"u{dtype.itemsize}")
    return [float(value) for value in raw.view(dtype)]


@given(kinds, bit_patterns, bit_patterns, bit_patterns)
@example("f64", 0x7FE << 52, 0x7FE << 52, 0xFFF << 52)  # two large factors and -inf
def test_fma_rounds_once_on_any_bits(kind: str, a: int, b: int, c: int) -> None:
    x, y, z = floats_of(kind, a, b, c)
    found = fma(kind, x, y, z)
    if all(map(math.isfinite, (x, y, z))):
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        assert found == nearest(exact, kind)
        assert not exact or np.signbit(found) == (exact < 0)
    else:
        # The exact product of two finite factors is finite, though Python's may not be.
        expected = z if math.isfinite(x) and math.isfinite(y) else x * y + z
        assert found == expected or (math.isnan(found) and math.isnan(expected))


@given(kinds, small, small, st.integers(-70, 70), st.integers(-2, 2))
def test_fma_rounds_once_where_the_sum_nearly_cancels_or_ties(
    kind: str, a: int, b: int, shift: int, off: int
) -> None:
    unit = {"f16": 2.0**-10, "f32": 2.0**-23, "f64": 2.0**-52}[kind]
    a, b = (a % 512, b % 512) if kind == "f16" else (a, b)
    x, y = 1 + a * unit, 1 + b * unit
    z = (
        -(1 + (a + b + off) * unit)
        if shift < 0
        else 2.0 ** (shift // (5 if kind == "f16" else 1) - 7)
    )
    assert fma(kind, x, y, z) == nearest(Fraction(x) * Fraction(y) + Fraction(z), kind)


@pytest.mark.parametrize(
    ("kind", "a", "b", "c"),
    [
        # a * b lies half-way between two results; c is too small for any sum to hold, yet decides.
        *(("f32", 1 + 2.0**-12, 1 + 2.0**-12, c) for c in (0.0, 2.0**-60, -(2.0**-60))),
        *(("f64", 1 + 2.0**-26, 1 + 2.0**-27, c) for c in (0.0, 2.0**-200, -(2.0**-200))),
        *(("f16", 1 + 2.0**-5, 1 + 2.0**-6, c) for c in (0.0, 2.0**-24, -(2.0**-24))),
        # The product alone overflows, or Dekker's halves of a factor do, or its error underflows.
        ("f64", 2.0**1023, 2.0, -(2.0**1023)),
        ("f64", 1.5 * 2.0**1010, 2.0**-20, 1.0),
        ("f64", 3 * 2.0**-538, 2.0**-537, 2.0**-1074),
        ("f32", 2.0**127, 2.0, -(2.0**127)),
        ("f32", 3 * 2.0**-75, 2.0**-75, 2.0**-149),
    ],
)
def test_fma_where_a_second_rounding_would_show(kind: str, a: float, b: float, c: float) -> None:
    assert fma(kind, a, b, c) == nearest(Fraction(a) * Fraction(b) + Fraction(c), kind)


@given(st.integers(1, 2**24 - 1), st.integers(1, 2**24 - 1), st.integers(-24, 24))
@example(3, 5, 0)
def test_fma_of_doubles_is_exact_where_a_subnormal_results(a: int, b: int, shift: int) -> None:
    x, y, z = a * 2.0**-600, b * 2.0**-474, math.ldexp(1.0, -1060 + shift)
    assert fma("f64", x, y, z) == nearest(Fraction(x) * Fraction(y) + Fraction(z), "f64")


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize(
    ("a", "b", "c", "negative"),
    [
        (0.0, 1.0, 0.0, False),
        (-0.0, 1.0, -0.0, True),
        (-0.0, 1.0, 0.0, False),
        (2.0, 3.0, -6.0, False),
    ],
)
def test_fma_gives_zero_the_sign_of_ieee(
    kind: str, a: float, b: float, c: float, negative: bool
) -> None:
    found = fma(kind, a, b, c)
    assert found == 0
    assert np.signbit(found) == negative


def test_fma_differs_from_multiply_then_add() -> None:
    """NVRTC contracts a * b + c by default; the emulated device follows the PTX either way."""
    c = -(1 + 2.0**-11)
    assert fma("f32", TIE, TIE, c) == 2.0**-24
    (found,) = run_lanes(
        "mul.rn.f32 %d, %a, %b; add.rn.f32 %d, %d, %c;", "f32 f32 f32 -> f32", [TIE], [TIE], [c]
    )
    assert found[0] == 0


@given(
    kinds,
    st.sampled_from([(name, bits) for name in "su" for bits in (8, 16, 32, 64)]),
    st.sampled_from([("rzi", math.trunc), ("rmi", math.floor), ("rpi", math.ceil), ("rni", round)]),
    bit_patterns,
)
def test_float_to_integer_rounds_and_saturates(
    kind: str, to: tuple[str, int], rounding: tuple[str, Any], bits: int
) -> None:
    (value,) = floats_of(kind, bits)
    low, high = (-(2 ** (to[1] - 1)), 2 ** (to[1] - 1) - 1) if to[0] == "s" else (0, 2 ** to[1] - 1)
    if math.isnan(value):
        wide = kind == "f64" or to[1] == 64
        expected = 0 if not wide else low or 2 ** (to[1] - 1)
    else:
        whole = rounding[1](value) if math.isfinite(value) else value
        expected = max(low, min(high, whole))
    name = f"{to[0]}{to[1]}"
    (found,) = run_lanes(f"cvt.{rounding[0]}.{name}.{kind} %d, %a;", f"{kind} -> {name}", [value])
    assert found[0] == expected


@given(st.sampled_from(["s32", "u32", "s64", "u64"]), kinds, bit_patterns)
def test_integer_to_float_rounds_to_nearest_even(source: str, kind: str, bits: int) -> None:
    value = int(
        np.array([bits % 2 ** int(source[1:])], f"u{int(source[1:]) // 8}").view(NUMPY[source])[0]
    )
    (found,) = run_lanes(f"cvt.rn.{kind}.{source} %d, %a;", f"{source} -> {kind}", [value])
    assert found[0] == nearest(Fraction(value), kind)
