"""Where the GPU rounds once and NumPy would round twice, or not as the GPU does."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

import numpy as np

from harness.devices.emulator.threads import Lanes, Values

ROUND_TO_INTEGER: Final[dict[str, Callable[[Values], Values]]] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}
SPLIT: Final = 2.0**27 + 1  # Dekker's constant: cuts 53 bits into 26 and 26
# Between these sizes no step of the exact product and sum can over- or underflow.
SMALL: Final = 2.0**-400
LARGE: Final = 2.0**400


def fused_multiply_add(a: Values, b: Values, c: Values) -> Values:
    """Round a * b + c once, as the GPU does, to the type of `a`."""
    return _fma_double(a, b, c) if a.dtype == np.float64 else _fma_single(a, b, c)


def _fma_single(a: Values, b: Values, c: Values) -> Values:
    """Round the sum to odd in float64, where the product of two float32 or float16 is exact.

    That makes the last rounding the only one (Boldo and Melquiond, IEEE TC 57(4), 2008).
    """
    product, addend = a.astype(np.float64) * b, c.astype(np.float64)
    return _to_odd(*_two_sum(product, addend)).astype(a.dtype)


def _fma_double(a: Values, b: Values, c: Values) -> Values:
    """Add the exact product and sum, of which the lower parts are rounded to odd (ibid.)."""
    high, low = _two_product(a, b)
    tail, error = _two_sum(c, low)
    head, rest = _two_sum(high, tail)
    result = head + _to_odd(*_two_sum(rest, error))
    result = np.where(result == 0, high + c, result)  # for the sign of zero
    extreme = np.logical_not(_tame(a) & _tame(b) & _tame(c))
    if extreme.any():
        _exactly(a, b, c, out=result, where=extreme, casting="unsafe")
    return result


def _tame(a: Values) -> Lanes:
    size = np.abs(a)
    return np.equal(a, 0) | (np.greater(size, SMALL) & np.less(size, LARGE))


def _two_sum(a: Values, b: Values) -> tuple[Values, Values]:
    """Return a + b and its rounding error (Knuth)."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def _two_product(a: Values, b: Values) -> tuple[Values, Values]:
    """Return a * b and its rounding error (Dekker)."""
    product = a * b
    a_high, b_high = (SPLIT * v - (SPLIT * v - v) for v in (a, b))
    a_low, b_low = a - a_high, b - b_high
    return product, a_low * b_low - (product - a_high * b_high - a_low * b_high - a_high * b_low)


def _to_odd(total: Values, error: Values) -> Values:
    """Move an inexact sum with an even last bit one step toward the exact value."""
    bits = total.view(np.int64)
    inexact = np.isfinite(total) & (error != 0) & (bits & 1 == 0)
    toward = np.where((error > 0) == (total > 0), np.int64(1), np.int64(-1))
    return np.where(inexact, bits + toward, bits).view(np.float64)


def _exact(a: float, b: float, c: float) -> float:
    """Compute a * b + c in rationals, for infinities, NaN and what would over- or underflow."""
    if not (math.isfinite(a) and math.isfinite(b)):
        return a * b + c
    if not math.isfinite(c):
        return c  # a * b is finite, however large
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        return float(exact) if exact else a * b + c
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


_exactly: Final = np.frompyfunc(_exact, 3, 1)


def saturate(whole: Values, to: np.dtype[Any], nan: int) -> Values:
    """Clamp whole float64 values to an integer type; NumPy's cast leaves the rest undefined."""
    low, high = np.iinfo(to).min, np.iinfo(to).max
    inside = np.where((whole > low) & (whole < high), whole, 0.0).astype(to)
    clamped = np.where(whole >= high, to.type(high), np.where(whole <= low, to.type(low), inside))
    return np.where(np.isnan(whole), to.type(nan), clamped)


class FlushingAdd:
    """Add float32 as atomics on global memory do: what is subnormal counts as zero (PTX ISA, atom).

    Atomics on shared memory keep subnormals, as `np.add` does.
    """

    def __call__(self, a: Values, b: Values) -> Values:
        """Add, with the operands and the sum flushed."""
        return self.flush(self.flush(a) + self.flush(b))

    def accumulate(self, chain: Values, dtype: np.dtype[Any]) -> Values:
        """Add one after another, like the method of a ufunc; the first is returned as it is."""
        sums = np.add.accumulate(self.flush(chain), dtype=dtype)
        sums[:1] = chain[:1]
        if not self._subnormal(sums).any():
            return sums
        for i in range(1, len(chain)):
            sums[i : i + 1] = self(sums[i - 1 : i], chain[i : i + 1])
        return sums

    def flush(self, values: Values) -> Values:
        """Replace what is subnormal by a zero of its sign."""
        return np.where(self._subnormal(values), np.copysign(np.float32(0), values), values)

    def _subnormal(self, values: Values) -> Values:
        return np.less(np.abs(values), np.finfo(np.float32).tiny) & np.not_equal(values, 0)
