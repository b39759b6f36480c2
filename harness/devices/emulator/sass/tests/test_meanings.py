"""Each meaning against Python's integers, at the edges where 32 bits carry, wrap, change sign."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.devices.emulator import EmulatedDevice, Uncountable
from harness.devices.emulator.sass.meanings import Unknown
from harness.devices.emulator.sass.program import decode
from harness.devices.emulator.sass.registers import Registers, known
from harness.devices.emulator.sass.tests.assembly import instructions
from harness.devices.emulator.sass.tests.launches import ARCHITECTURES, branching

ONES: Final = 0xFFFFFFFF
EDGES: Final = (0, 1, 2, 31, 32, 0x7FFFFFFF, 0x80000000, 0x80000001, ONES - 1, ONES)
WORDS: Final = st.sampled_from(EDGES) | st.integers(0, ONES)
PAIRS: Final = st.builds(lambda high, low: high << 32 | low, WORDS, WORDS)
BITS: Final = st.booleans()


def sources_of(text: str) -> list[str]:
    """The registers that an instruction reads, by name."""
    read = text.split(",", 1)[1]
    return [name for name in ("R2", "R4", "R6", "P0", "P1") if name in read]


def compute(text: str, *values: int | bool) -> list[int]:
    """Return what an instruction writes, given what stands in its sources: R2, R4, R6, P0, P1."""
    code = decode(instructions(text)[0])
    registers, shape = Registers({}), (1, 1, 1)
    everyone: Any = np.ones(shape, bool)
    for name, value in zip(sources_of(text), values, strict=True):
        if isinstance(value, bool):
            registers.write(name, known(value), everyone, None)
            continue
        registers.write(name, known(value & ONES), everyone, None)
        registers.write(f"R{int(name[1:]) + 1}", known(value >> 32), everyone, None)
    read = [registers.read(s, i in code.pairs, 1).bits for i, s in enumerate(code.sources)]
    assert code.row.meaning
    return [int(result.flat[0]) for result in code.row.meaning(code, read)]


def signed(value: int, bits: int = 32) -> int:
    """As two's complement."""
    return value - (1 << bits) if value >> bits - 1 else value


def low(value: int) -> int:
    """What a register keeps."""
    return value & ONES


def words(value: int) -> int:
    """What a pair keeps."""
    return value & (1 << 64) - 1


THREE: Final[dict[str, Callable[[int, int, int], int]]] = {
    "IADD3 R0,R2,R4,R6": lambda a, b, c: low(a + b + c),
    "IADD3 R0,R2,-R4,R6": lambda a, b, c: low(a - b + c),
    "IMAD R0,R2,R4,R6": lambda a, b, c: low(a * b + c),
    "IMAD.MOV R0,R2,R4,-R6": lambda a, b, c: low(a * b - c),
    "LEA R0,R2,R4,0x3": lambda a, b, c: low((a << 3) + b),
    "LEA.HI R0,R2,R4,R6,0x5": lambda a, b, c: low(((c << 32 | a) << 5 >> 32) + b),
    "LEA.HI.SX32 R0,R2,R4,0x1e": lambda a, b, c: low((signed(a) << 30 >> 32) + b),
    "LOP3.LUT R0,R2,R4,R6,0x96,!PT": lambda a, b, c: a ^ b ^ c,
    "LOP3.LUT R0,R2,R4,R6,0xea,!PT": lambda a, b, c: a & b | c,
    "LOP3.LUT R0,RZ,R4,RZ,0x33,!PT": lambda a, b, c: low(~b),
    "SHF.L.U32 R0,R2,0x7,RZ": lambda a, b, c: low(a << 7),
    "SHF.L.U32 R0,R2,R4,RZ": lambda a, b, c: low(a << min(b, 64)),
    "SHF.L.U64.HI R0,R2,0x3,R6": lambda a, b, c: words((c << 32 | a) << 3) >> 32,
    "SHF.R.U32.HI R0,RZ,R4,R6": lambda a, b, c: c >> min(b, 64),
    "SHF.R.S32.HI R0,RZ,R4,R6": lambda a, b, c: low(signed(c) >> min(b, 31)),
    "SHF.R.U64 R0,R2,0x9,R6": lambda a, b, c: low((c << 32 | a) >> 9),
    "SHF.L.W.U32.HI R0,R2,0x9,R2": lambda a, b, c: low(a << 9 | a >> 23),
    "IABS R0,R2": lambda a, b, c: low(abs(signed(a))),
    "PRMT R0,R2,0x7610,R6": lambda a, b, c: a & 0xFFFF | c & 0xFFFF0000,
    "PRMT R0,R2,0x9910,RZ": lambda a, b, c: low(a & 0xFFFF | -(a >> 15 & 1) << 16),
    "IMAD.HI.U32 R0,R2,R4,RZ": lambda a, b, c: a * b >> 32,
    "IMAD.HI R0,R2,R4,RZ": lambda a, b, c: low(signed(a) * signed(b) >> 32),
    "IMNMX R0,R2,R4,PT": lambda a, b, c: low(min(signed(a), signed(b))),
    "IMNMX.U32 R0,R2,R4,!PT": lambda a, b, c: max(a, b),
    "I2F.U16 R0,R2": lambda a, b, c: int(np.float32(a & 0xFFFF).view(np.uint32)),
}


@pytest.mark.parametrize("text", THREE)
@given(a=WORDS, b=WORDS, c=WORDS)
def test_words(text: str, a: int, b: int, c: int) -> None:
    """One word out of up to three."""
    values = [v for v, name in ((a, "R2"), (b, "R4"), (c, "R6")) if name in text]
    assert compute(text, *values) == [THREE[text](a, b, c)]


@given(WORDS, WORDS, PAIRS)
def test_wide_products(a: int, b: int, c: int) -> None:
    """The addend is 64 bits wide; only the unsigned form carries out."""
    total = a * b + c
    assert compute("IMAD.WIDE.U32 R0,P2,R2,R4,R6", a, b, c) == [words(total), total >> 64]
    assert compute("IMAD.WIDE R0,R2,R4,R6", a, b, c) == [words(signed(a) * signed(b) + c)]
    assert compute("IMAD.HI.U32 R0,P2,R2,R4,R6", a, b, c) == [words(total) >> 32, total >> 64]


@given(PAIRS, PAIRS)
def test_64_bits_are_added_and_subtracted_in_two_words(a: int, b: int) -> None:
    """-R is ~R + 1 in the low word, also for 0; ~R in the high one."""
    sums = ("IADD3 R0,P2,R2,R4,RZ", "IADD3.X R0,R2,R4,RZ,P0,!PT", a + b)
    differences = ("IADD3 R0,P2,R2,-R4,RZ", "IADD3.X R0,R2,~R4,RZ,P0,!PT", a - b)
    others = ("IADD R0,P2,R2,R4", "IMAD.X R0,R2,0x1,R4,P0", a + b)
    for first, second, expected in (sums, differences, others):
        bottom, carry = compute(first, low(a), low(b))
        top = compute(second, a >> 32, b >> 32, bool(carry))[0]
        assert top << 32 | bottom == words(expected)
    assert compute("IADD.64 R0,R2,-R4", a, b) == [words(a - b)]
    assert compute("IADD.64 R0,R2,-0x1", a) == [words(a - 1)]


@given(WORDS, WORDS, WORDS)
def test_three_words_carry_twice(a: int, b: int, c: int) -> None:
    """The first carry-out holds from 2^32 on, the second from 2^33."""
    total = a + b + c
    expected = [low(total), int(total >= 1 << 32), int(total >= 1 << 33)]
    assert compute("IADD3 R0,P2,P3,R2,R4,R6", a, b, c) == expected


@given(PAIRS, PAIRS, BITS, BITS)
def test_64_bits_are_shifted_chosen_and_bounded(a: int, b: int, p: bool, q: bool) -> None:
    """As a pair, or in two words with a carry between them."""
    bottom, carry = compute("LEA R0,P2,R2,R4,0x3", low(a), low(b))
    top = compute("LEA.HI.X R0,R2,R4,R6,0x3,P0", low(a), b >> 32, a >> 32, bool(carry))[0]
    assert top << 32 | bottom == words((a << 3) + b)
    assert compute("SEL.64 R0,R2,R4,P0", a, b, p) == [a if p else b]
    larger = max(signed(a, 64), signed(b, 64))
    assert compute("IMNMX.S64 PT,PT,R0,R2,R4,!PT,!PT", a, b)[2] == words(larger)
    first, second = compute("PLOP3.LUT P2,P3,P0,P1,PT,0x80,0x7f", p, q)
    assert (first, second) == (p and q, not (p and q))


COMPARE: Final[dict[str, Callable[[int, int], bool]]] = {
    "LT": int.__lt__, "LE": int.__le__, "GT": int.__gt__,
    "GE": int.__ge__, "EQ": int.__eq__, "NE": int.__ne__,
}  # fmt: skip


@pytest.mark.parametrize("name", COMPARE)
@given(a=PAIRS, b=PAIRS, p=BITS)
def test_comparisons(name: str, a: int, b: int, p: bool) -> None:
    """32 bits; 64 in one instruction; 64 in two, where the high words go on from the low ones."""
    compare, (x, y) = COMPARE[name], (low(a), low(b))
    unsigned = compute(f"ISETP.{name}.U32.AND P2,P3,R2,R4,P0", x, y, p)
    assert unsigned == [compare(x, y) and p, not compare(x, y) and p]
    with_sign = compare(signed(x), signed(y))
    assert compute(f"ISETP.{name}.OR P2,PT,R2,R4,P0", x, y, p)[0] == (with_sign or p)
    below = bool(unsigned[0]) if p else compare(x, y)
    extended = compute(f"ISETP.{name}.AND.EX P2,PT,R2,R4,PT,P0", a >> 32, b >> 32, below)[0]
    assert extended == compare(signed(a, 64), signed(b, 64))
    assert compute(f"ISETP.{name}.S64.AND P2,PT,R2,R4,PT", a, b)[0] == extended
    assert compute(f"ISETP.{name}.U64.AND P2,PT,R2,R4,PT", a, b)[0] == compare(a, b)


@given(WORDS.filter(bool), WORDS)
def test_a_quotient_starts_from_a_reciprocal_below_it(divisor: int, word: int) -> None:
    """I2F.RP is not below the divisor, so that the reciprocal is not above; F2I truncates."""
    (above,) = compute("I2F.U32.RP R0,R2", divisor)
    assert float(np.uint32(above).view(np.float32)) >= divisor
    (reciprocal,) = compute("MUFU.RCP R0,R2", above)
    assert float(np.uint32(reciprocal).view(np.float32)) * divisor <= 1 + 2.0**-23
    value = np.float32(word)
    (integer,) = compute("F2I.FTZ.U32.TRUNC.NTZ R0,R2", int(value.view(np.uint32)))
    assert integer == min(int(value), ONES)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@given(st.data())
def test_divisions_by_a_number_of_the_launch_are_exact(
    architecture: str, data: st.DataObject
) -> None:
    """Thread t stores from t / d to n in steps of d: 32 bits, and 64 bits by a library's call."""
    scale = data.draw(st.sampled_from([1, 1 << 31, 1 << 40]), "scale")
    d = data.draw(st.integers(1, 40), "d") * scale + data.draw(st.integers(0, 9), "more")
    n = data.draw(st.integers(0, 30), "n") * d + data.draw(st.integers(0, d), "rest")
    blocks = data.draw(st.integers(1, 12), "blocks")
    launch = (branching("divide"), blocks, 1, 0, n, d)
    count = EmulatedDevice(architecture).count_sass(*launch)
    stores = sum(max(-(-(n - t // d) // d), 0) for t in range(blocks))
    assert count.by_opcode.get("STG", 0) == stores


@pytest.mark.parametrize(
    "text",
    [
        "IADD3.X R0,R2,-R4,RZ,P0,!PT",  # what a negated operand is in .X is not known
        "IADD.64 R0,R2,0x80000000",  # nor whether this is extended by its sign
        "LEA R0,-R2,R4,0x3",
        "SHF.R.S64 R0,R2,0x3,R6",
        "IMAD.WIDE R0,-R2,R4,R6",
        "VIMNMX R0,P2,PT,R2,R4,!PT",
        "I2F R0,R2",
        "PRMT.F4E R0,R2,0x1,R4",
    ],
)
def test_a_form_without_a_known_meaning_computes_nothing(text: str) -> None:
    """It poisons what it writes, and a branch that reads that is refused."""
    values = [True if name[0] == "P" else 5 for name in sources_of(text)]
    with pytest.raises((Unknown, Uncountable)):
        compute(text, *values)
