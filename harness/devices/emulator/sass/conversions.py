"""Where integers pass through float32 on their way to a branch: division, and constants.

A division by a run-time number starts from a reciprocal and corrects it twice, so the IEEE
reciprocal gives the same quotient as the hardware's approximation.
"""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from harness.devices.emulator.sass.comparisons import OPERATORS
from harness.devices.emulator.sass.instructions import Decoded
from harness.devices.emulator.sass.meanings import Arrays, Unknown, signed

NUMBER: Final = re.compile(r"-?\d+(\.\d+)?(e[+-]\d+)?")


def _float(bits: NDArray[Any]) -> NDArray[np.float32]:
    return bits.astype(np.uint32).view(np.float32)


def _bits(value: NDArray[np.float32]) -> NDArray[np.uint64]:
    return value.astype(np.float32).view(np.uint32).astype(np.uint64)


def _towards(exact: NDArray[Any], end: float) -> NDArray[np.float32]:
    """Round to float32 upwards, or, with an end of 0, towards zero."""
    nearest = exact.astype(np.float32)
    given = nearest.astype(exact.dtype)
    wrong = given < exact if end else np.abs(given) > np.abs(exact)
    return np.where(wrong, np.nextafter(nearest, np.float32(end)), nearest)


# Bits of the integer that are read, and where the result is rounded to.
FLOATS: Final = {
    ("RP",): (-32, np.inf),
    ("U32", "RP"): (32, np.inf),
    ("U64", "RP"): (64, np.inf),
    ("U16",): (16, 0.0),  # exact
    ("F32", "U32", "RZ"): (32, 0.0),
}


def to_float(code: Decoded, values: Arrays) -> list[NDArray[Any]]:
    """I2F: the float32 next to an integer, on the side that the rounding says."""
    if code.modifiers not in FLOATS or code.sources[0].sign:
        raise Unknown
    bits, end = FLOATS[code.modifiers]
    integer = signed(values[0]) if bits < 0 else values[0] & np.uint64((1 << bits) - 1)
    return [_bits(_towards(integer.astype(np.longdouble), end))]


INTEGERS: Final = {
    ("FTZ", "U32", "TRUNC", "NTZ"): 2.0**32,
    ("U32", "TRUNC", "NTZ"): 2.0**32,
    ("U64", "TRUNC"): 2.0**64,
}


def to_integer(code: Decoded, values: Arrays) -> list[NDArray[Any]]:
    """F2I.TRUNC: towards zero; what is too large becomes the largest, NaN and negatives zero."""
    if code.modifiers not in INTEGERS:
        raise Unknown
    end = INTEGERS[code.modifiers]
    value = np.nan_to_num(_float(values[0]), nan=0.0, posinf=end).astype(np.float64)
    inside = np.where(value < end, np.maximum(value, 0), 0).astype(np.uint64)
    return [np.where(value < end, inside, np.uint64(int(end) - 1))]


def reciprocal(code: Decoded, values: Arrays) -> list[NDArray[Any]]:
    """MUFU.RCP: 1 / x."""
    if code.modifiers != ("RCP",) or code.sources[0].sign:
        raise Unknown
    return [_bits(np.float32(1) / _float(values[0]))]


def _positive(code: Decoded) -> None:
    if any(source.sign in ("-", "~") for source in code.sources):
        raise Unknown


def multiply(code: Decoded, values: Arrays) -> list[NDArray[Any]]:
    """FMUL: rounded to nearest, or towards zero; two 24-bit factors are exact in float64."""
    _positive(code)
    if code.modifiers not in ((), ("RZ",)):
        raise Unknown
    exact = _float(values[0]).astype(np.float64) * _float(values[1])
    return [_bits(_towards(exact, 0.0) if code.modifiers else exact.astype(np.float32))]


def select(code: Decoded, values: Arrays) -> list[NDArray[Any]]:
    """FSEL: the first if the predicate holds, else the second."""
    _positive(code)
    if code.modifiers:
        raise Unknown
    a, b, condition = values
    return [np.where(condition, a, b)]


def compare(code: Decoded, values: Arrays) -> list[NDArray[Any]]:
    """FSETP.AND: an outcome and its opposite; an operator with a U holds for NaN too."""
    _positive(code)
    name, *rest = code.modifiers
    if rest != ["AND"] or name.rstrip("U") not in OPERATORS:
        raise Unknown
    a, b = _float(values[0]), _float(values[1])
    outcome = OPERATORS[name.rstrip("U")](a, b) & ~(np.isnan(a) | np.isnan(b))
    if name.endswith("U"):
        outcome = outcome | np.isnan(a) | np.isnan(b)
    return [outcome & values[2], ~outcome & values[2]]


def halves(code: Decoded, values: Arrays) -> list[NDArray[Any]]:
    """HFMA2 -0, 0, a, b: the compiler's way to write a 32-bit constant as two halves."""
    zero, other, *literals = (text.strip() for text in code.instruction.operands[1:])
    if (zero, other) != ("-RZ", "RZ") or not all(map(NUMBER.fullmatch, literals)):
        raise Unknown
    high, low = (int(np.float16(float(text)).view(np.uint16)) for text in literals)
    return [np.full((1, 1, 1), high << 16 | low, np.uint64)]
