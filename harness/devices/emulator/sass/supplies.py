"""What a launch supplies: special registers, constants, and numbers written in the instruction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from harness.devices.emulator.sass.boxes import Box
from harness.devices.emulator.sass.conversions import halves
from harness.devices.emulator.sass.instructions import Decoded, Rank
from harness.devices.emulator.sass.meanings import Unknown
from harness.devices.emulator.sass.registers import Registers, Value, known
from harness.devices.emulator.threads import WARP

NO_SLOW_DIVISION: Final = "no float division takes its slow path (FCHK is false)"
CLOCKS: Final = ("SR_CLOCKLO", "SR_CLOCKHI", "SR_GLOBALTIMERLO", "SR_GLOBALTIMERHI")
NARROW: Final = {"U8": 8, "U16": 16}


class Supplied(Protocol):
    """What keeps the supplies of a launch, and what was assumed of it."""

    registers: Registers
    specials: dict[str, Value]
    assumptions: set[str]


def special_registers(
    index: NDArray[np.int64],
    block: tuple[int, int, int],
    blocks: NDArray[np.int64],
    box: Box | None,
) -> dict[str, Value]:
    """Return the special registers of some blocks (rows, 3); affine where these probe a box."""
    x, y, _ = block
    thread = {"X": index % x, "Y": index // x % y, "Z": index // (x * y)}
    found = {f"SR_TID.{axis}": Value(place.astype(np.uint64)) for axis, place in thread.items()}
    for axis, name in enumerate("XYZ"):
        varies = box is not None and box.extent[axis] > 1
        where = blocks[:, axis].astype(np.uint64).reshape(-1, 1, 1)
        alike = bool((where == where[:1]).all())
        rank = Rank.AFFINE if varies else Rank.SAME
        found[f"SR_CTAID.{name}"] = Value(where[:1] if alike else where, rank=rank)
    lane = (index % WARP).astype(np.uint64)
    return {**found, "SR_LANEID": Value(lane), "SRZ": known(0)}


def special(machine: Supplied, code: Decoded) -> list[Value]:
    """S2R, S2UR, CS2R: a special register, and zero above it."""
    name = code.instruction.operands[-1]
    if name not in machine.specials or (code.outputs[0].name[0] == "U" and "TID" in name):
        raise Unknown
    return [machine.specials[name], known(0)]


def constant(machine: Supplied, code: Decoded) -> list[Value]:
    """LDC, ULDC, LDCU: words of the constant bank."""
    (source,) = code.sources
    if source.kind != "constant" or source.sign or {"S8", "S16"} & set(code.modifiers):
        raise Unknown
    words = [
        machine.registers.constant(source.value + 4 * place, code.offset + 1)
        for place in range(code.width)
    ]
    if bits := [NARROW[modifier] for modifier in code.modifiers if modifier in NARROW]:
        return [_narrow(machine, code, source.value, bits[0])]
    return words


def _narrow(machine: Supplied, code: Decoded, offset: int, bits: int) -> Value:
    word = machine.registers.constant(offset // 4 * 4, code.offset + 1)
    shifted = word.bits >> np.uint64(8 * (offset % 4)) & np.uint64((1 << bits) - 1)
    return Value(shifted, word.source, word.rank)


def immediate(machine: Supplied, code: Decoded) -> list[Value]:
    """HFMA2: a constant that the compiler wrote as two halves."""
    return [Value(bits) for bits in halves(code, [])]


def never(machine: Supplied, code: Decoded) -> list[Value]:
    """FCHK: whether a float division needs its slow path; taken to be false, and said so."""
    machine.assumptions.add(NO_SLOW_DIVISION)
    return [known(False)]


TABLE: Final[dict[str, Callable[[Supplied, Decoded], list[Value]]]] = {
    **dict.fromkeys(("S2R", "S2UR", "CS2R", "CS2UR"), special),
    **dict.fromkeys(("LDC", "ULDC", "LDCU"), constant),
    "HFMA2": immediate,
    "FCHK": never,
}


def reason(maker: Decoded) -> str:
    """Say why the result of an instruction is not known."""
    if maker.instruction.operands and maker.instruction.operands[-1] in CLOCKS:
        return "reads a clock: only a run tells it"
    if maker.opcode in TABLE or maker.row.meaning is not None:
        return "is not known in this form: give it a meaning in opcodes.py and a test"
    return "depends on data, or has no meaning here: only a run tells it"
