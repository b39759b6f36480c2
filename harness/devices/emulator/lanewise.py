"""What PTX arithmetic does: a table from mnemonic to a function of whole arrays.

A function gets all lanes, active or not, and returns one array: it is defined on every input and
uses ufuncs, `where`, `astype` and `view` only. Floats are IEEE 754 with subnormals, rounded once. A
NaN is a NaN, its payload is not modelled. No `.approx` function is here: the last bits of those are
known to the hardware alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from harness.devices.emulator.rounding import fused_multiply_add
from harness.devices.emulator.threads import Values

DTYPES: Final = {
    **{f"{kind}{bits}": np.dtype(f"u{bits // 8}") for kind in "bu" for bits in (8, 16, 32, 64)},
    **{f"s{bits}": np.dtype(f"i{bits // 8}") for bits in (8, 16, 32, 64)},
    "f16": np.dtype("f2"),  # NumPy computes in float32: exact, or wide enough to round again
    "f32": np.dtype("f4"),
    "f64": np.dtype("f8"),
    "pred": np.dtype("?"),
}
WIDER: Final = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}


def bits_of(a: Values) -> int:
    """Return the width of the type."""
    return a.dtype.itemsize * 8


def reinterpret(values: Values, dtype: np.dtype[Any]) -> Values:
    """Reinterpret a register's bits; a narrower type sees the low ones."""
    if values.dtype == dtype:
        return values
    if values.itemsize > dtype.itemsize:
        values = values.view(f"u{values.itemsize}").astype(f"u{dtype.itemsize}")
    return values.view(dtype)


def extend(values: Values, declared: np.dtype[Any]) -> Values:
    """Extend a narrow result to its register, by its own sign."""
    if values.itemsize == declared.itemsize:
        return values
    return values.astype(f"{values.dtype.kind}{declared.itemsize}")


def unsigned(a: Values) -> Values:
    """The same bits without a sign."""
    return a.view(f"u{a.dtype.itemsize}")


def truncating_divide(a: Values, b: Values) -> Values:
    """PTX truncates, NumPy's // floors. PTX leaves x / 0 open: here it is all ones."""
    if a.dtype.kind == "f":
        return np.divide(a, b)
    divisor = np.where(b == 0, 1, b)
    quotient = (a - np.fmod(a, divisor)) // divisor
    return np.where(b == 0, np.invert(np.zeros_like(quotient)), quotient)


def truncating_remainder(a: Values, b: Values) -> Values:
    """The sign of a, as in C. PTX leaves x % 0 open: here it is x."""
    return np.where(b == 0, a, np.fmod(a, np.where(b == 0, 1, b)))


def shift_left(a: Values, amount: Values) -> Values:
    """PTX clamps the amount at the width, where the result is zero."""
    clamped = np.minimum(amount, bits_of(a) - 1).astype(a.dtype)
    return np.where(amount < bits_of(a), a << clamped, 0)


def shift_right(a: Values, amount: Values) -> Values:
    """PTX clamps the amount at the width, where a signed type is all sign and another zero."""
    clamped = np.minimum(amount, bits_of(a) - 1).astype(a.dtype)
    beyond = a >> bits_of(a) - 1 >> 1
    return np.where(amount < bits_of(a), a >> clamped, beyond)


def funnel_left(low: Values, high: Values, amount: Values) -> Values:
    """The upper half of high:low shifted left by amount modulo 32."""
    both = high.astype(np.uint64) << 32 | low
    return (both << (amount & 31) >> 32).astype(low.dtype)


def funnel_right(low: Values, high: Values, amount: Values) -> Values:
    """The lower half of high:low shifted right by amount modulo 32."""
    both = high.astype(np.uint64) << 32 | low
    return (both >> (amount & 31)).astype(low.dtype)


def insert_field(field: Values, a: Values, start: Values, length: Values) -> Values:
    """Replace `length` bits of `a`, from `start` on, by the low ones of `field`."""
    ones = shift_left(np.ones_like(a), length & 255) - 1
    mask = shift_left(ones, start & 255)
    return (a & ~mask) | (shift_left(field, start & 255) & mask)


def widen(a: Values) -> Values:
    """The same value in twice the bits."""
    return a.astype(np.dtype(f"{a.dtype.kind}{a.dtype.itemsize * 2}"))


def multiply_high(a: Values, b: Values) -> Values:
    """The upper half of the product."""
    if a.dtype.itemsize == 8:
        return _multiply_high_64(a, b)
    product: Values = widen(a) * widen(b)
    return (product >> bits_of(a)).astype(a.dtype)


def _multiply_high_64(a: Values, b: Values) -> Values:
    """By halves of 32 bits; a negative factor counts 2**64 too much of the other."""
    (a_high, a_low), (b_high, b_low) = ((v >> 32, v & 2**32 - 1) for v in map(unsigned, (a, b)))
    middle = a_high * b_low + (a_low * b_low >> 32)
    crossed = a_low * b_high + (middle & 2**32 - 1)
    high: Values = (a_high * b_high + (middle >> 32) + (crossed >> 32)).view(a.dtype)
    high -= np.where(a < 0, b, 0) + np.where(b < 0, a, 0)
    return high


def leading_zeros(a: Values) -> Values:
    """Smear the highest one to the right and count what is left."""
    for distance in (2**i for i in range(bits_of(a).bit_length() - 1)):
        a = a | a >> distance
    return np.subtract(bits_of(a), np.bitwise_count(a), dtype=np.uint32)


def highest_bit(a: Values) -> Values:
    """The place of the first bit unlike the sign, all ones if there is none."""
    if a.dtype.kind == "i":
        a = unsigned(a ^ a >> bits_of(a) - 1)
    return np.where(a == 0, 2**32 - 1, bits_of(a) - 1 - leading_zeros(a))


def highest_bit_from_left(a: Values) -> Values:
    """The shift that would bring that bit to the top, all ones if there is none."""
    place = highest_bit(a)
    return np.where(place == 2**32 - 1, place, bits_of(a) - 1 - place)


def reverse_bits(a: Values) -> Values:
    """Swap ever smaller groups of bits."""
    full = 2 ** bits_of(a) - 1
    for group in (bits_of(a) // 2**i for i in range(1, bits_of(a).bit_length())):
        low = full // (2**group + 1)
        a = (a & low) << group | (a >> group & low)
    return a


def smaller(a: Values, b: Values) -> Values:
    """Drop a NaN, as the GPU does; -0 is less than +0, which `fmin` leaves to chance."""
    if a.dtype.kind != "f":
        return np.minimum(a, b)
    return np.where(a == b, (unsigned(a) | unsigned(b)).view(a.dtype), np.fmin(a, b))


def larger(a: Values, b: Values) -> Values:
    """The same upwards."""
    if a.dtype.kind != "f":
        return np.maximum(a, b)
    return np.where(a == b, (unsigned(a) & unsigned(b)).view(a.dtype), np.fmax(a, b))


def choose(a: Values, b: Values, chosen: Values) -> Values:
    """Take `a` where the predicate holds."""
    return np.where(chosen, a, b)


ORDERED: Final[dict[str, Callable[[Values, Values], Values]]] = {
    "eq": np.equal,
    "ne": lambda a, b: (a < b) | (a > b),  # false on NaN in PTX, true in NumPy
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
OPPOSITE: Final = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
UNSIGNED: Final = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def _unordered(name: str) -> Callable[[Values, Values], Values]:
    """The unordered twin is true on NaN: it is whatever the opposite ordered one is not."""
    return lambda a, b: np.logical_not(ORDERED[OPPOSITE[name]](a, b))


COMPARISONS: Final = {
    **ORDERED,
    **{f"{name}u": _unordered(name) for name in ORDERED},
    **{alias: ORDERED[name] for alias, name in UNSIGNED.items()},
    "num": lambda a, b: (a == a) & (b == b),
    "nan": lambda a, b: (a != a) | (b != b),
}

LANEWISE: Final[dict[str, Callable[..., Values]]] = {
    "cvta.to.global": lambda a: a,  # generic and global addresses are the same number here
    "add": np.add,
    "add.rn": np.add,
    "sub": np.subtract,
    "sub.rn": np.subtract,
    "mul": np.multiply,
    "mul.rn": np.multiply,
    "mul.lo": np.multiply,
    "mul.hi": multiply_high,
    "mul.wide": lambda a, b: widen(a) * widen(b),
    "mad.lo": lambda a, b, c: a * b + c,
    "mad.hi": lambda a, b, c: multiply_high(a, b) + c,
    "mad.wide": lambda a, b, c: widen(a) * widen(b) + c,
    "fma.rn": fused_multiply_add,
    "div": truncating_divide,
    "div.rn": truncating_divide,
    "rem": truncating_remainder,
    "rcp.rn": np.reciprocal,
    "sqrt.rn": np.sqrt,
    "neg": np.negative,
    "abs": np.abs,
    "min": smaller,
    "max": larger,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "shl": shift_left,
    "shr": shift_right,
    "shf.l.wrap": funnel_left,
    "shf.r.wrap": funnel_right,
    "bfi": insert_field,
    "popc": np.bitwise_count,
    "clz": leading_zeros,
    "bfind": highest_bit,
    "bfind.shiftamt": highest_bit_from_left,
    "brev": reverse_bits,
    "selp": choose,
    **{f"setp.{name}": compare for name, compare in COMPARISONS.items()},
}
# Types of the sources where they are not all the instruction's own.
SOURCE_TYPES: Final[dict[str, Callable[[str], tuple[str, ...]]]] = {
    "shl": lambda own: (own, "u32"),
    "shr": lambda own: (own, "u32"),
    "bfi": lambda own: (own, own, "u32", "u32"),
    "selp": lambda own: (own, own, "pred"),
    "mad.wide": lambda own: (own, own, WIDER[own]),
}
