"""What the integer instructions of a slice compute: unsigned 64-bit arrays in, the same out.

An operand is below 2^32, or below 2^64 where the instruction takes a pair of registers; a negated
one is 2^32 - x, so that a sum carries as the hardware's ~x + 1 does, also for x = 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from harness.devices.emulator.sass.instructions import Decoded

Array = NDArray[Any]
Arrays = Sequence[Array]

WORD: Final = np.uint64(0xFFFFFFFF)
BITS: Final = np.uint64(32)


class Unknown(Exception):
    """An instruction's form has no meaning here; what it writes is not known."""


def signed(value: Array, bits: int = 32) -> NDArray[np.int64]:
    """Read the low 32 or all 64 bits as a signed number."""
    return (
        value.astype(np.uint32).view(np.int32).astype(np.int64) if bits == 32 else value.view("i8")
    )


def _known(condition: bool) -> None:
    if not condition:
        raise Unknown


def _truth(values: Arrays) -> tuple[list[Array], list[Array]]:
    """Tell numbers from predicates."""
    numbers = [value for value in values if value.dtype != np.bool_]
    return numbers, [value for value in values if value.dtype == np.bool_]


def _carries(code: Decoded, total: Array) -> list[Array]:
    carried = total >> BITS
    return [carried > np.uint64(i) for i in range(len(code.outputs) - 1)]


def add(code: Decoded, values: Arrays) -> list[Array]:
    """Add a, b and c, the carries of .X on top; the carry-outs follow the register."""
    numbers, carries = _truth(values)
    extended, pair = "X" in code.modifiers, "64" in code.modifiers
    _known(extended or not carries)
    _known(not extended or all(each.sign != "-" for each in code.sources))
    _known(not pair or all(each.discarded for each in code.outputs[1:]))
    total = sum([*numbers[1:], *(carry.astype(np.uint64) for carry in carries)], numbers[0])
    return [total if pair else total & WORD, *_carries(code, total)]


def multiply_add(code: Decoded, values: Arrays) -> list[Array]:
    """Multiply, add: the low word, all 64 bits (.WIDE), or the high word (.HI) with a 64-bit c."""
    numbers, carries = _truth(values)
    a, b, c = numbers
    wide, high = "WIDE" in code.modifiers, "HI" in code.modifiers
    if not wide and not high:
        _known(all(each.discarded for each in code.outputs[1:]))
        _known(bool(carries) == ("X" in code.modifiers))
        total = a * b + c
        return [
            sum((carry.astype(np.uint64) for carry in carries), total) & WORD,
            *_carries(code, total),
        ]
    _known(not carries and not any(each.sign for each in code.sources))
    product = a * b if "U32" in code.modifiers else (signed(a) * signed(b)).view(np.uint64)
    total = product + c
    overflow = [total < product] * (len(code.outputs) - 1)
    _known("U32" in code.modifiers or all(each.discarded for each in code.outputs[1:]))
    return [total if wide else total >> BITS, *overflow]


def move(code: Decoded, values: Arrays) -> list[Array]:
    """Copy the one source."""
    _known(len(values) == 1)
    return [values[0] & WORD if "64" not in code.modifiers else values[0]]


def absolute(code: Decoded, values: Arrays) -> list[Array]:
    """|a|."""
    return [np.abs(signed(values[0])).view(np.uint64) & WORD]


def scaled_add(code: Decoded, values: Arrays) -> list[Array]:
    """LEA: (a << s) + b; .HI takes the high word of (c:a) << s, c the sign of a under .SX32."""
    numbers, carries = _truth(values)
    kind = set(code.modifiers)
    _known(not any(each.sign for each in code.sources if each.kind != "predicate"))
    _known(bool(carries) == ("X" in kind))
    if "HI" not in kind:
        _known(not kind)
        a, b, shift = numbers
        total: Array = (a << shift & WORD) + b
    else:
        a, b, *upper, shift = numbers
        high: Array = signed(a).view(np.uint64) >> BITS if "SX32" in kind else upper[0]
        total = (((high & WORD) << BITS | a) << shift >> BITS) + b
    with_carry = sum((carry.astype(np.uint64) for carry in carries), total)
    return [with_carry & WORD, *_carries(code, with_carry)]


Shift = Callable[[Array, Array, Array], Array]

SHIFTS: Final[dict[tuple[str, ...], Shift]] = {
    ("L", "U32"): lambda low, high, s: _left(low, s) & WORD,
    ("L", "W", "U32"): lambda low, high, s: low << (s & np.uint64(31)) & WORD,
    ("L", "U64", "HI"): lambda low, high, s: _left(high << BITS | low, s) >> BITS,
    ("L", "W", "U32", "HI"): lambda low, high, s: (
        (high << BITS | low) << (s & np.uint64(31)) >> BITS
    ),
    ("R", "U32", "HI"): lambda low, high, s: _right(high, s),
    ("R", "S32", "HI"): lambda low, high, s: (
        (signed(high) >> np.minimum(s, 31).astype(np.int64)).view(np.uint64) & WORD
    ),
    ("R", "U64"): lambda low, high, s: _right(high << BITS | low, s) & WORD,
    ("R", "W", "U32"): lambda low, high, s: (high << BITS | low) >> (s & np.uint64(31)) & WORD,
}


def _left(value: Array, shift: Array) -> Array:
    return np.where(shift < 64, value << np.minimum(shift, 63), np.uint64(0))


def _right(value: Array, shift: Array) -> Array:
    return np.where(shift < 64, value >> np.minimum(shift, 63), np.uint64(0))


def shift(code: Decoded, values: Arrays) -> list[Array]:
    """SHF low, amount, high: one word of the pair, shifted; it stops at the width, .W wraps."""
    _known(code.modifiers in SHIFTS and not any(each.sign for each in code.sources))
    low, amount, high = values
    return [np.asarray(SHIFTS[code.modifiers](low, high, amount))]


def look_up(table: int, a: Array, b: Array, c: Array) -> Array:
    """Return the bitwise function of three inputs whose truth table is `table`."""
    ones = ~np.zeros((), a.dtype)
    result = np.zeros(np.broadcast_shapes(a.shape, b.shape, c.shape), a.dtype)
    for row in range(8):
        if table >> row & 1:
            terms = (x if row >> (2 - i) & 1 else x ^ ones for i, x in enumerate((a, b, c)))
            first, second, third = terms
            result = result | first & second & third
    return result


def logic(code: Decoded, values: Arrays) -> list[Array]:
    """LOP3: three words through a truth table; its predicate is result != 0, or the last source."""
    a, b, c, _, extra = values
    table = code.sources[3]
    _known(code.modifiers == ("LUT",) and table.kind == "integer")
    result = look_up(table.value, a, b, c) & WORD
    nonzero = (result != 0) | extra
    return [nonzero if output.kind == "predicate" else result for output in code.outputs]


def predicate_logic(code: Decoded, values: Arrays) -> list[Array]:
    """PLOP3: three predicates through two truth tables."""
    first, second = code.sources[3:]
    _known(code.modifiers == ("LUT",) and first.kind == second.kind == "integer")
    a, b, c = values[:3]
    return [look_up(table.value, a, b, c) for table in (first, second)]


def select(code: Decoded, values: Arrays) -> list[Array]:
    """The first if the predicate holds, else the second."""
    a, b, condition = values
    return [np.where(condition, a, b)]


def extreme(code: Decoded, values: Arrays) -> list[Array]:
    """The smaller if the predicate holds, else the larger."""
    numbers, conditions = _truth(values)
    a, b = numbers
    bits = 64 if {"S64", "U64"} & set(code.modifiers) else 32
    _known(all(each.discarded for each in code.outputs if each.kind == "predicate"))
    # The second predicate of the 64-bit form is not known but as !PT.
    _known(all(each.name in ("PT", "UPT") and each.sign for each in code.sources[3:]))
    unsigned = {"U32", "U64"} & set(code.modifiers)
    less = a < b if unsigned else signed(a, bits) < signed(b, bits)
    result = np.where(less == conditions[0], a, b)
    return [result if output.kind == "register" else conditions[0] for output in code.outputs]


def permute_bytes(code: Decoded, values: Arrays) -> list[Array]:
    """PRMT a, selector, b: four bytes of the eight; bit 3 of a nibble repeats the byte's sign."""
    _known(not code.modifiers)
    a, selector, b = values
    both, result = b << BITS | a, np.zeros((1, 1, 1), np.uint64)
    for place in range(4):
        nibble = selector >> np.uint64(4 * place)
        byte = both >> ((nibble & np.uint64(7)) * np.uint64(8)) & np.uint64(0xFF)
        sign = np.where(byte >> np.uint64(7), np.uint64(0xFF), np.uint64(0))
        chosen = np.where(nibble & np.uint64(8), sign, byte)
        result = result | chosen << np.uint64(8 * place)
    return [result]
