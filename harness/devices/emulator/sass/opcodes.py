"""Every opcode known here: which operands it writes, the modifiers it may carry, what it means.

Modifiers are listed, not skipped: `SEL.64` run as a 32-bit SEL gives a plausible wrong count. An
opcode without a meaning may stand in a kernel as long as no branch depends on what it writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from harness.devices.emulator.sass import comparisons, conversions, meanings
from harness.devices.emulator.sass.instructions import Decoded, Meaning, Outputs, Rank, Ranks, Row


def rigid(code: Decoded, ranks: Sequence[Rank]) -> Rank:
    """Nothing but the same inputs is known to give an affine output."""
    return Rank.OTHER if max(ranks, default=Rank.SAME) else Rank.SAME


def linear(code: Decoded, ranks: Sequence[Rank]) -> Rank:
    """A sum is as affine as its terms."""
    return max(ranks, default=Rank.SAME)


def product(code: Decoded, ranks: Sequence[Rank]) -> Rank:
    """The low word of a * b + c is affine if a or b is the same in every block."""
    a, b, *_ = ranks
    nonlinear = (a and b) or "HI" in code.modifiers
    return rigid(code, ranks) if nonlinear else linear(code, ranks)


def scaled(code: Decoded, ranks: Sequence[Rank]) -> Rank:
    """A value shifted to the left by the same amount in every block is a product."""
    amount = ranks[1] if code.opcode.endswith("SHF") else ranks[2]
    left = code.modifiers in ((), ("L", "U32"))
    return linear(code, ranks) if left and not amount else rigid(code, ranks)


COMPARISONS: Final = "LT LE GT GE EQ NE"
ROUNDING: Final = "FTZ RN RZ RM RP SAT"
FLOAT_COMPARISONS: Final = f"{COMPARISONS} LTU LEU GTU GEU EQU NEU NUM NAN FTZ AND OR XOR BF16_V2"
ACCESS: Final = "E U8 S8 U16 S16 64 128 CONSTANT STRONG WEAK CTA SM GPU SYS EF EL LU NA U"
ATOMIC: Final = f"{ACCESS} ADD MIN MAX INC DEC AND OR XOR EXCH CAS F16x2 F32 F64 S32 U32 FTZ RN"
CONVERSION: Final = f"{ROUNDING} TRUNC FLOOR CEIL NTZ F16 F32 F64 S8 U8 S16 U16 S32 U32 S64 U64"
PAIR_OF_C: Final = (("WIDE", (2,)), ("HI", (2,)))
PAIRS: Final = (("64", (0, 1, 2)),)
COMPARED_PAIRS: Final = (("S64", (0, 1)), ("U64", (0, 1)))


def row(
    outputs: Outputs,
    modifiers: str = "",
    meaning: Meaning | None = None,
    rank: Ranks | None = None,
    wide: str = "64",
    pairs: tuple[tuple[str, tuple[int, ...]], ...] = (),
    always_wide: bool = False,
) -> Row:
    """A row, its modifiers as words."""
    allowed, pair = frozenset(modifiers.split()), frozenset(wide.split())
    return Row(outputs, allowed, meaning, rank, pair, pairs, always_wide)


R: Final = "register"

INTEGERS: Final = {
    "IADD3": row(R, "X 64", meanings.add, linear, pairs=PAIRS),
    "IADD": row(R, "X 64", meanings.add, linear, pairs=PAIRS),
    "VIADD": row(R, "64", meanings.add, linear, pairs=PAIRS),
    "IMAD": row(
        R, "MOV SHL IADD X WIDE HI U32 S32", meanings.multiply_add, product, "WIDE", PAIR_OF_C
    ),
    "MOV": row(R, "64", meanings.move, linear, pairs=PAIRS),
    "IABS": row(R, "", meanings.absolute, rigid),
    "LEA": row(R, "HI X SX32", meanings.scaled_add, scaled),
    "SHF": row(R, "L R U32 S32 U64 S64 HI W", meanings.shift, scaled),
    "LOP3": row(R, "LUT", meanings.logic, rigid),
    "SEL": row(R, "64", meanings.select, linear, pairs=(("64", (0, 1)),)),
    "IMNMX": row(R, "U32 S64 U64", meanings.extreme, rigid, "S64 U64", COMPARED_PAIRS),
    "VIMNMX": row(R, "U32 S32 S64 U64", meanings.extreme, rigid, "S64 U64", COMPARED_PAIRS),
    "PRMT": row(R, "", meanings.permute_bytes, rigid),
    "ISETP": row(
        "two", f"{COMPARISONS} U32 S64 U64 AND OR XOR EX", comparisons.compare, rigid, "",
        COMPARED_PAIRS,
    ),
    "PLOP3": row("two", "LUT", meanings.predicate_logic, rigid),
}  # fmt: skip

# The uniform datapath: the same instructions on registers that a warp shares.
UNIFORM: Final = {
    **{f"U{name}": integer for name, integer in INTEGERS.items()},
    "R2UR": row(R, "", meanings.move, linear),
    "UI2F": row(R, CONVERSION, conversions.to_float, rigid, "F64", (("U64", (0,)),)),
    "UF2I": row(R, CONVERSION, None, None, "S64 U64"),
}  # fmt: skip

CONVERSIONS: Final = {
    "I2F": row(R, CONVERSION, conversions.to_float, rigid, "F64", (("U64", (0,)),)),
    "F2I": row(R, CONVERSION, conversions.to_integer, rigid, "S64 U64"),
    "MUFU": row(
        R, "RCP RSQ SQRT EX2 LG2 SIN COS TANH RCP64H RSQ64H F16", conversions.reciprocal, rigid
    ),
    "I2FP": row(R, CONVERSION, conversions.to_float, rigid),
    "FMUL": row(R, ROUNDING, conversions.multiply, rigid),
    "FSEL": row(R, "FTZ", conversions.select, rigid),
    "FSETP": row("two", FLOAT_COMPARISONS, conversions.compare, rigid),
    "HFMA2": row(R, "MMA FTZ RELU SAT BF16_V2 F32"),
}

# What these read is the launch, or an assumption: the machine knows it, no arithmetic does.
LAUNCH: Final = {
    "FCHK": row("first", "DIVIDE"),
    **dict.fromkeys(("S2R", "S2UR"), row(R)),
    **dict.fromkeys(("CS2R", "CS2UR"), row(R, "32", always_wide=True)),
    **dict.fromkeys(("LDC", "ULDC", "LDCU"), row(R, "64 128 U8 S8 U16 S16")),
}  # fmt: skip

CONTROL: Final = {
    "BRA": row("", "U DIV"), "EXIT": row(""), "CALL": row("", "REL NOINC"),
    "RET": row("", "REL NODEC", pairs=(("REL", (0,)),)),
    "BSSY": row("", "RECONVERGENT RELIABLE"), "BREAK": row("", "RELIABLE"),
    "BSYNC": row("", "RECONVERGENT RELIABLE"), "WARPSYNC": row("", "ALL COLLECTIVE"),
}  # fmt: skip

# Data: what these write is not known here, what they issue is.
DATA: Final = {
    **dict.fromkeys(("LDG", "LDS", "LDL", "LD"), row(R, ACCESS)),
    **dict.fromkeys(("STG", "STS", "STL", "ST"), row("", ACCESS)),
    **dict.fromkeys(("RED", "REDG"), row("", ATOMIC)),
    **dict.fromkeys(("ATOM", "ATOMG", "ATOMS"), row(R, f"{ATOMIC} POPC CAST SPIN")),
    "SHFL": row(R, "IDX UP DOWN BFLY"),
    "BAR": row("", "SYNC ARV DEFER_BLOCKING"),
    **dict.fromkeys(("VOTE", "VOTEU"), row("but last", "ANY ALL EQ")),
    "MATCH": row(R, "ANY ALL U64"), "REDUX": row(R, "SUM MIN MAX S32 AND OR XOR"),
    **dict.fromkeys(("FADD", "FFMA", "FMNMX", "FMNMX3"), row(R, f"{ROUNDING} NAN")),
    **dict.fromkeys(("FADD2", "FMUL2", "FFMA2"), row(R, f"{ROUNDING} F32x2", always_wide=True)),
    **dict.fromkeys(("HADD2", "HMUL2", "HMNMX2"), row(R, "FTZ RELU SAT BF16_V2 F32")),
    "HSETP2": row("two", FLOAT_COMPARISONS), "HSET2": row(R, f"{FLOAT_COMPARISONS} BF BM"),
    **dict.fromkeys(("DADD", "DMUL", "DFMA"), row(R, ROUNDING, always_wide=True)),
    "DSETP": row("two", FLOAT_COMPARISONS), "FRND": row(R, CONVERSION, None, None, "F64"),
    "F2F": row(R, CONVERSION, None, None, "F64"), "F2FP": row(R, f"{CONVERSION} PACK_AB BF16"),
    "I2I": row(R, CONVERSION), "F2IP": row(R, CONVERSION),
    **dict.fromkeys(("POPC", "UPOPC", "BREV", "UBREV", "P2R"), row(R)),
    **dict.fromkeys(("FLO", "UFLO"), row(R, "U32 SH")),
    **dict.fromkeys(("SGXT", "USGXT", "BMSK", "UBMSK"), row(R, "U32 W C")),
    **dict.fromkeys(("IDP", "IDP4A"), row(R, "4A 2A U8 S8 U32 S32 LO HI")),
    **dict.fromkeys(("NOP", "YIELD", "NANOSLEEP", "ERRBAR", "DEPBAR", "LDGDEPBAR"), row("", "LE")),
    **dict.fromkeys(("CCTL", "MEMBAR"), row("", "SC ALL SYS GPU CTA VC IVALL E PF2")),
}  # fmt: skip

# Known, and not to be followed: why.
JUMP: Final = "{} jumps to where a register says, so what follows is not known"
MOVE: Final = "{} moves a convergence barrier, so who waits for whom is not known"
REFUSED: Final = {**dict.fromkeys(("BRX", "BRXU", "JMX", "JMXU"), JUMP), "BMOV": MOVE}

TABLE: Final = {**INTEGERS, **UNIFORM, **CONVERSIONS, **LAUNCH, **CONTROL, **DATA}
