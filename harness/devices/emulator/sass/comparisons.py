"""ISETP: two integers compared, the outcome combined with a predicate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from harness.devices.emulator.sass.instructions import Decoded
from harness.devices.emulator.sass.meanings import WORD, Unknown, signed

Compare = Callable[[Any, Any], Any]

OPERATORS: Final[dict[str, Compare]] = {
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
    "EQ": np.equal,
    "NE": np.not_equal,
}
# What decides a 64-bit comparison by its high words alone; if those are equal, the low words do.
STRICT: Final[dict[str, Compare]] = {
    "LT": np.less,
    "LE": np.less,
    "GT": np.greater,
    "GE": np.greater,
    "EQ": lambda a, b: np.zeros_like(a == b),
    "NE": np.not_equal,
}
COMBINE: Final[dict[str, Compare]] = {
    "AND": np.logical_and,
    "OR": np.logical_or,
    "XOR": np.logical_xor,
}


def operator(code: Decoded) -> str:
    """Return the comparison's name."""
    (name,) = set(code.modifiers) & OPERATORS.keys()
    return name


def typed(code: Decoded, a: NDArray[Any], b: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Read both sides as the numbers that are compared."""
    modifiers = set(code.modifiers)
    if "U64" in modifiers:
        return a, b
    if "S64" in modifiers:
        return signed(a, 64), signed(b, 64)
    if "U32" in modifiers:
        return (a & WORD).astype(np.int64), (b & WORD).astype(np.int64)
    return signed(a), signed(b)


def compare(code: Decoded, values: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """The outcome and its opposite, combined with the third source; .EX goes on from a low word."""
    a, b = typed(code, *values[:2])
    name, extended = operator(code), "EX" in code.modifiers
    if len(values) != (4 if extended else 3):
        raise Unknown
    outcome = OPERATORS[name](a, b)
    if extended:
        outcome = STRICT[name](a, b) | ((a == b) & values[3])
    (combine,) = set(code.modifiers) & COMBINE.keys()
    return [COMBINE[combine](each, values[2]) for each in (outcome, ~outcome)]
