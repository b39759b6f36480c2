"""Every row of the arithmetic table against Python's integers, rationals and `math`."""

from __future__ import annotations

import math
from typing import Any, Final

import pytest

from harness.devices.emulator.lanewise import COMPARISONS, LANEWISE
from harness.devices.emulator.rounding import ROUND_TO_INTEGER
from harness.devices.emulator.tests.ptx_text import NUMPY, exactly, run_lanes

NAN, INF = math.nan, math.inf
INT_MAX, INT_MIN, UINT_MAX = 2**31 - 1, -(2**31), 2**32 - 1
LONG_MAX, LONG_MIN, ULONG_MAX = 2**63 - 1, -(2**63), 2**64 - 1
EPS: Final = 2.0**-23  # between 1 and the next float32
TINY: Final = 2.0**-149  # the smallest float32 above zero
MAX: Final = (2 - EPS) * 2.0**127
Row = tuple[str, str, list[tuple[Any, ...]]]

# mnemonic, signature, cases: the sources and then the expected result
ARITHMETIC: Final[list[Row]] = [
    ("cvta.to.global.u64", "u64 -> u64", [(0x100, 0x100)]),
    ("add.s32", "s32 s32 -> s32", [(2, -3, -1), (INT_MAX, 1, INT_MIN)]),
    ("add.s64", "s64 s64 -> s64", [(2**40, 1, 2**40 + 1), (LONG_MAX, 1, LONG_MIN)]),
    ("add.s16", "s16 s16 -> s16", [(32767, 1, -32768)]),
    ("add.f32", "f32 f32 -> f32", [(1, EPS / 2, 1), (1, EPS, 1 + EPS), (MAX, MAX, INF)]),
    ("add.f32", "f32 f32 -> f32", [(INF, -INF, NAN), (NAN, 1, NAN), (-0.0, 0.0, 0.0)]),
    ("add.rn.f64", "f64 f64 -> f64", [(0.1, 0.2, 0.1 + 0.2)]),
    ("add.f16", "f16 f16 -> f16", [(2048, 1, 2048), (2048, 3, 2052), (65504, 16, INF)]),
    ("mul.f16", "f16 f16 -> f16", [(2.0**-14, 0.5, 2.0**-15), (256, 256, INF)]),
    ("sub.s32", "s32 s32 -> s32", [(INT_MIN, 1, INT_MAX)]),
    ("sub.f32", "f32 f32 -> f32", [(1, EPS / 4, 1), (INF, INF, NAN)]),
    ("sub.rn.f32", "f32 f32 -> f32", [(3, 5, -2)]),
    ("mul.f32", "f32 f32 -> f32", [(2.0**-126, 0.5, 2.0**-127), (TINY, 0.5, 0), (INF, 0, NAN)]),
    ("mul.f64", "f64 f64 -> f64", [(0.1, 3, 0.1 * 3), (2.0**-1022, 0.5, 2.0**-1023)]),
    ("mul.rn.f32", "f32 f32 -> f32", [(1 + 2**-12, 1 + 2**-12, 1 + 2**-11)]),
    ("mul.lo.s32", "s32 s32 -> s32", [(2**16, 2**16, 0), (-3, 7, -21)]),
    ("mul.lo.s16", "s16 s16 -> s16", [(300, 300, 90000 - 2**16)]),
    ("mul.hi.s32", "s32 s32 -> s32", [(-1, 1, -1), (INT_MIN, INT_MIN, 2**30)]),
    ("mul.hi.u32", "u32 u32 -> u32", [(UINT_MAX, UINT_MAX, UINT_MAX - 1)]),
    ("mul.hi.u64", "u64 u64 -> u64", [(ULONG_MAX, ULONG_MAX, ULONG_MAX - 1)]),
    ("mul.hi.s64", "s64 s64 -> s64", [(-1, 1, -1), (LONG_MIN, LONG_MIN, 2**62), (LONG_MIN, 2, -1)]),
    ("mul.wide.s32", "s32 s32 -> s64", [(INT_MIN, INT_MIN, 2**62), (-1, 4, -4)]),
    ("mul.wide.u32", "u32 u32 -> u64", [(UINT_MAX, UINT_MAX, UINT_MAX**2)]),
    ("mul.wide.u16", "u16 u16 -> u32", [(65535, 65535, 65535**2)]),
    ("mad.lo.s32", "s32 s32 s32 -> s32", [(3, 4, 5, 17), (2**16, 2**16, 7, 7)]),
    ("mad.lo.s64", "s64 s64 s64 -> s64", [(2**33, 2, 1, 2**34 + 1)]),
    ("mad.hi.u32", "u32 u32 u32 -> u32", [(UINT_MAX, UINT_MAX, 1, UINT_MAX)]),
    ("mad.wide.u32", "u32 u32 u64 -> u64", [(UINT_MAX, 4, 2**40, 4 * UINT_MAX + 2**40)]),
    ("mad.wide.s32", "s32 s32 s64 -> s64", [(-1, 80, 2**40, 2**40 - 80)]),
    ("div.s32", "s32 s32 -> s32", [(-7, 2, -3), (7, -2, -3), (-8, -2, 4)]),
    ("div.u32", "u32 u32 -> u32", [(UINT_MAX, 2, INT_MAX)]),
    ("div.s64", "s64 s64 -> s64", [(-(2**40) - 1, 2**20, -(2**20))]),
    ("div.rn.f32", "f32 f32 -> f32", [(1, 0, INF), (-1, 0, -INF), (0, 0, NAN), (1, 4, 0.25)]),
    ("div.rn.f64", "f64 f64 -> f64", [(1, 3, 1 / 3)]),
    # PTX leaves these open; hardware and NumPy differ, so nothing else may rely on them.
    ("div.s32", "s32 s32 -> s32", [(5, 0, -1), (-5, 0, -1), (0, 0, -1)]),
    ("div.u32", "u32 u32 -> u32", [(5, 0, UINT_MAX)]),
    ("rem.s32", "s32 s32 -> s32", [(5, 0, 5)]),
    ("rem.s32", "s32 s32 -> s32", [(-7, 2, -1), (7, -2, 1), (6, 3, 0)]),
    ("rem.u64", "u64 u64 -> u64", [(ULONG_MAX, 10, ULONG_MAX % 10)]),
    ("rcp.rn.f32", "f32 -> f32", [(4, 0.25), (0, INF), (-0.0, -INF), (INF, 0)]),
    ("rcp.rn.f64", "f64 -> f64", [(3, 1 / 3)]),
    ("sqrt.rn.f32", "f32 -> f32", [(9, 3), (-1, NAN), (-0.0, -0.0), (INF, INF)]),
    ("sqrt.rn.f64", "f64 -> f64", [(2, math.sqrt(2))]),
    ("neg.s32", "s32 -> s32", [(5, -5), (INT_MIN, INT_MIN)]),
    ("neg.f32", "f32 -> f32", [(0.0, -0.0), (-INF, INF)]),
    ("abs.s32", "s32 -> s32", [(-5, 5)]),
    ("abs.f32", "f32 -> f32", [(-0.0, 0.0), (-INF, INF), (NAN, NAN)]),
    ("min.s32", "s32 s32 -> s32", [(-1, 1, -1)]),
    ("min.u32", "u32 u32 -> u32", [(UINT_MAX, 1, 1)]),
    ("min.f32", "f32 f32 -> f32", [(NAN, 1, 1), (1, NAN, 1), (NAN, NAN, NAN), (INF, 1, 1)]),
    ("min.f32", "f32 f32 -> f32", [(0.0, -0.0, -0.0), (-0.0, 0.0, -0.0)]),
    ("max.s32", "s32 s32 -> s32", [(-1, 1, 1)]),
    ("max.f64", "f64 f64 -> f64", [(NAN, -INF, -INF), (NAN, NAN, NAN)]),
    ("max.f32", "f32 f32 -> f32", [(0.0, -0.0, 0.0), (-0.0, 0.0, 0.0)]),
]  # fmt: skip

BITS: Final[list[Row]] = [
    ("and.b32", "b32 b32 -> b32", [(0b1100, 0b1010, 0b1000)]),
    ("or.b32", "b32 b32 -> b32", [(0b1100, 0b1010, 0b1110)]),
    ("xor.b64", "b64 b64 -> b64", [(ULONG_MAX, 1, ULONG_MAX - 1)]),
    ("not.b32", "b32 -> b32", [(0, UINT_MAX)]),
    ("not.pred", "pred -> pred", [(0, 1), (1, 0)]),
    ("and.pred", "pred pred -> pred", [(1, 1, 1), (1, 0, 0)]),
    ("xor.pred", "pred pred -> pred", [(1, 1, 0), (1, 0, 1)]),
    ("shl.b32", "b32 u32 -> b32", [(1, 31, 2**31), (1, 32, 0), (1, 33, 0), (1, UINT_MAX, 0)]),
    ("shl.b64", "b64 u32 -> b64", [(1, 32, 2**32), (1, 63, 2**63), (1, 64, 0)]),
    ("shl.b16", "b16 u32 -> b16", [(3, 15, 2**15), (1, 16, 0)]),
    ("shr.u32", "u32 u32 -> u32", [(2**31, 31, 1), (2**31, 32, 0), (2**31, 33, 0)]),
    ("shr.s32", "s32 u32 -> s32", [(-8, 1, -4), (-8, 32, -1), (-8, 40, -1), (8, 99, 0)]),
    ("shr.s64", "s64 u32 -> s64", [(-8, 64, -1), (LONG_MIN, 63, -1)]),
    ("shr.b64", "b64 u32 -> b64", [(2**63, 63, 1), (2**63, 64, 0)]),
    ("shf.l.wrap.b32", "b32 b32 u32 -> b32", [(0x89 << 24, 0x1234567, 8, 0x23456789)]),
    ("shf.r.wrap.b32", "b32 b32 u32 -> b32", [(0x89ABCDEF, 0x67, 8, 0x6789ABCD), (1, 2, 32, 1)]),
    ("popc.b32", "b32 -> u32", [(0, 0), (UINT_MAX, 32), (0b1011, 3)]),
    ("popc.b64", "b64 -> u32", [(ULONG_MAX, 64)]),
    ("clz.b32", "b32 -> u32", [(0, 32), (1, 31), (UINT_MAX, 0), (2**24 - 1, 8)]),
    ("clz.b64", "b64 -> u32", [(0, 64), (ULONG_MAX, 0), (2**53, 10)]),
    ("bfind.u32", "u32 -> u32", [(0, UINT_MAX), (1, 0), (2**31, 31)]),
    ("bfind.s32", "s32 -> u32", [(0, UINT_MAX), (-1, UINT_MAX), (-2, 0), (INT_MIN, 30)]),
    ("bfind.shiftamt.u32", "u32 -> u32", [(0, UINT_MAX), (1, 31), (2**31, 0)]),
    ("bfind.shiftamt.u64", "u64 -> u32", [(0, UINT_MAX), (1, 63)]),
    ("brev.b32", "b32 -> b32", [(1, 2**31), (0b1101, 0b1011 << 28)]),
    ("brev.b64", "b64 -> b64", [(1, 2**63), (0xF0, 0x0F << 56)]),
    ("selp.b32", "b32 b32 pred -> b32", [(7, 9, 1, 7), (7, 9, 0, 9)]),
    ("selp.f64", "f64 f64 pred -> f64", [(NAN, 1, 1, NAN), (NAN, 1, 0, 1)]),
]  # fmt: skip

CONVERSIONS: Final[list[Row]] = [
    ("cvt.rzi.s32.f32", "f32 -> s32", [(-2.7, -2), (INF, INT_MAX), (-INF, INT_MIN), (NAN, 0)]),
    ("cvt.rzi.u32.f32", "f32 -> u32", [(-1, 0), (2.0**32, UINT_MAX), (2.0**31, 2**31), (NAN, 0)]),
    ("cvt.rzi.s64.f32", "f32 -> s64", [(2.0**63, LONG_MAX), (-INF, LONG_MIN), (NAN, LONG_MIN)]),
    ("cvt.rzi.u64.f64", "f64 -> u64", [(2.0**64, ULONG_MAX), (-1, 0), (NAN, 2**63)]),
    ("cvt.rzi.s32.f64", "f64 -> s32", [(2.0**31 - 0.5, INT_MAX), (1e10, INT_MAX), (NAN, INT_MIN)]),
    ("cvt.rni.s32.f32", "f32 -> s32", [(0.5, 0), (1.5, 2), (2.5, 2), (-0.5, 0)]),
    ("cvt.rmi.s32.f32", "f32 -> s32", [(-0.5, -1), (1.9, 1)]),
    ("cvt.rpi.s32.f32", "f32 -> s32", [(-0.5, 0), (1.1, 2)]),
    ("cvt.rzi.s8.f32", "f32 -> s8", [(300, 127), (-300, -128)]),
    ("cvt.rni.f32.f32", "f32 -> f32", [(2.5, 2), (-0.4, -0.0), (NAN, NAN), (INF, INF)]),
    ("cvt.rmi.f64.f64", "f64 -> f64", [(-1.5, -2)]),
    ("cvt.rpi.f32.f32", "f32 -> f32", [(1.25, 2)]),
    ("cvt.rzi.f32.f32", "f32 -> f32", [(-1.75, -1)]),
    ("cvt.rn.f32.s32", "s32 -> f32", [(2**24 + 1, 2**24), (2**24 + 3, 2**24 + 4)]),
    ("cvt.rn.f32.u64", "u64 -> f32", [(2**40 + 2**16, 2**40), (2**40 + 2**16 + 1, 2**40 + 2**17)]),
    ("cvt.rn.f64.s64", "s64 -> f64", [(2**53 + 1, 2.0**53), (2**53 + 3, 2.0**53 + 4)]),
    ("cvt.rn.f32.f64", "f64 -> f32", [(1 + EPS / 2, 1), (1 + 1.5 * EPS, 1 + 2 * EPS), (1e99, INF)]),
    ("cvt.rn.f32.f64", "f64 -> f32", [(2.0**-150, 0), (2.0**-150 * 1.5, TINY), (NAN, NAN)]),
    ("cvt.rn.f16.f32", "f32 -> f16", [(2049, 2048), (2051, 2052), (65520, INF), (2.0**-25, 0)]),
    ("cvt.f32.f16", "f16 -> f32", [(2.0**-24, 2.0**-24), (NAN, NAN)]),
    ("cvt.f64.f32", "f32 -> f64", [(TINY, TINY), (NAN, NAN), (-0.0, -0.0)]),
    ("cvt.s64.s32", "s32 -> s64", [(-1, -1)]),
    ("cvt.u64.u32", "u32 -> u64", [(UINT_MAX, UINT_MAX)]),
    ("cvt.u32.u64", "u64 -> u32", [(2**32 + 5, 5)]),
    ("cvt.s32.s8", "s8 -> s32", [(-1, -1)]),
    ("cvt.u16.u32", "u32 -> u16", [(65537, 1)]),
]  # fmt: skip

# whether the comparison holds: less, equal, greater, one side NaN
OUTCOMES: Final = {
    "eq": "0100", "ne": "1010", "lt": "1000", "le": "1100", "gt": "0010", "ge": "0110",
    "equ": "0101", "neu": "1011", "ltu": "1001", "leu": "1101", "gtu": "0011", "geu": "0111",
    "num": "1110", "nan": "0001",
}  # fmt: skip
COMPARED: Final[list[Row]] = [
    *(
        (
            f"setp.{name}.{kind}",
            f"{kind} {kind} -> pred",
            [
                (1, 2, int(less)), (0.0, -0.0, int(equal)), (INF, 2, int(greater)),
                (NAN, 1, int(nan)), (1, NAN, int(nan)), (NAN, NAN, int(nan)),
            ],
        )
        for name, (less, equal, greater, nan) in ((n, [*o]) for n, o in OUTCOMES.items())
        for kind in ("f32", "f64")
    ),
    ("setp.lo.u32", "u32 u32 -> pred", [(1, UINT_MAX, 1), (1, 1, 0)]),
    ("setp.ls.u32", "u32 u32 -> pred", [(1, 1, 1), (UINT_MAX, 1, 0)]),
    ("setp.hi.u32", "u32 u32 -> pred", [(UINT_MAX, 1, 1), (1, 1, 0)]),
    ("setp.hs.u32", "u32 u32 -> pred", [(1, 1, 1), (1, UINT_MAX, 0)]),
    ("setp.lt.s32", "s32 s32 -> pred", [(-1, 1, 1)]),
    ("setp.lt.u32", "u32 u32 -> pred", [(UINT_MAX, 1, 0)]),
    ("setp.ne.s64", "s64 s64 -> pred", [(2**32, 0, 1)]),
]  # fmt: skip
ROWS: Final = [*ARITHMETIC, *BITS, *CONVERSIONS, *COMPARED]


def same(found: Any, expected: Any) -> bool:
    """Compare bits, so zeros by sign, but take any NaN for any other."""
    return bool(found.tobytes() == expected.tobytes() or (found != found and expected != expected))


@pytest.mark.parametrize(("mnemonic", "signature", "cases"), ROWS, ids=lambda v: str(v)[:24])
def test_row(mnemonic: str, signature: str, cases: list[tuple[Any, ...]]) -> None:
    *sources, target = zip(*cases, strict=True)
    operands = ", ".join(("%d", "%a", "%b", "%c")[: len(cases[0])])
    (found,) = run_lanes(f"{mnemonic} {operands};", signature, *sources)
    expected = exactly(target, signature.split()[-1])
    for case, one, other in zip(cases, found, expected, strict=True):
        assert same(one, other), f"{mnemonic} of {case[:-1]} gave {one}, not {other}"


def test_every_row_of_the_table_is_tested() -> None:
    tested = {mnemonic_of(mnemonic) for mnemonic, _, _ in ROWS}
    assert set(LANEWISE) - tested == {"fma.rn", "bfi"}  # test_rounding.py, test_integers.py
    assert {f"setp.{name}" for name in COMPARISONS} <= tested
    conversions = {name for mnemonic, _, _ in CONVERSIONS for name in mnemonic.split(".")}
    assert set(ROUND_TO_INTEGER) | {"rn"} <= conversions


def mnemonic_of(name: str) -> str:
    """Drop the types: `add.rn.f32` is `add.rn`."""
    return ".".join(part for part in name.split(".") if part not in NUMPY)
