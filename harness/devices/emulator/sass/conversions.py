"""Where integers pass through float32 on their way to a branch: division, and constants.

A division by a run-time number starts from a reciprocal and corrects it twice, so the IEEE
reciprocal gives the same quotient as the hardware's approximation.
"""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from harness.devices.emulator.sass.instructions import Decoded
from harness.devices.emulator.sass.meanings import Arrays, Unknown, signed

NUMBER: Final = re.compile(r"-?\d+(\.\d+)?(e[+-]\d+)?")


def _float(bits: NDArray[Any]) -> NDArray[np.float32]:
    return bits.astype(np.uint32).view(np.float32)


def _bits(value: NDArray[np.float32]) -> NDArray[np.uint64]:
    return value.astype(np.float32).view(np.uint32).astype(np.uint64)


def to_float(code: Decoded, values: Arrays) -> list[NDArray[Any]]:
    """I2F.RP: the least float32 that is not below the integer."""
    modifiers = set(code.modifiers)
    if "RP" not in modifiers or modifiers - {"RP", "U32", "S32", "U64"}:
        raise Unknown
    (integer,) = values
    exact = integer.astype(np.longdouble) if modifiers & {"U32", "U64"} else signed(integer)
    nearest = exact.astype(np.float32)
    above = np.nextafter(nearest, np.float32(np.inf))
    return [_bits(np.where(nearest.astype(np.longdouble) < exact, above, nearest))]


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


def halves(code: Decoded, values: Arrays) -> list[NDArray[Any]]:
    """HFMA2 -0, 0, a, b: the compiler's way to write a 32-bit constant as two halves."""
    zero, other, *literals = (text.strip() for text in code.instruction.operands[1:])
    if (zero, other) != ("-RZ", "RZ") or not all(map(NUMBER.fullmatch, literals)):
        raise Unknown
    high, low = (int(np.float16(float(text)).view(np.uint16)) for text in literals)
    return [np.full((1, 1, 1), high << 16 | low, np.uint64)]
