"""Decide before the first step what each instruction runs, and refuse what nothing can run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from harness.devices.emulator.lanewise import DTYPES
from harness.devices.emulator.machine import Handler
from harness.devices.emulator.operations import Unsupported, handler_of
from harness.devices.emulator.ptx import (
    Address,
    Entry,
    Instruction,
    Operand,
    Register,
    Symbol,
    Vector,
)
from harness.devices.emulator.threads import SPECIAL_REGISTERS

WORD: Final = 4  # bytes
# Directives that ask nothing of a launch but a size of the block. Clusters do.
LIMITS: Final = frozenset({"maxntid", "reqntid", "minnctapersm", "maxnreg"})
# Opcodes whose first operand is read, not written.
NO_TARGET: Final = frozenset({"st", "red", "bra", "bar", "membar", "prefetch", "ret", "exit"})


class Program:
    """An entry ready to run.

    Attributes
    ----------
    blocks
        Its basic blocks, each instruction with its handler.
    merged
        The registers whose old values inactive lanes must keep.
    granule
        Bytes of the smallest access to shared memory, at most a word.

    Raises
    ------
    Unsupported
        An instruction is in no table, or names what the emulated device does not have; or the
        entry asks for launches that it does not do.
    """

    def __init__(self, entry: Entry) -> None:
        _check_limits(entry)
        self.entry = entry
        self.blocks: list[list[tuple[Instruction, Handler]]] = [
            [(instruction, handler_of(instruction)) for instruction in block]
            for block in entry.blocks
        ]
        for instruction in self.instructions():
            self._check_names(instruction)
        self.merged = _merged_registers(entry)
        self.granule = min(map(_granule, self.instructions()), default=WORD)

    def instructions(self) -> Iterator[Instruction]:
        """Yield all instructions in order."""
        for block in self.entry.blocks:
            yield from block

    def _check_names(self, instruction: Instruction) -> None:
        entry = self.entry
        known = {"_", *SPECIAL_REGISTERS, *entry.variables, *entry.labels, *entry.parameters}
        for name in _names(Symbol, *instruction.operands):
            if name not in known:
                raise Unsupported(f"`{instruction.text}`: the emulated device has no {name!r}")


def _check_limits(entry: Entry) -> None:
    for name, sizes in entry.limits.items():
        if name not in LIMITS or (name == "reqntid" and set(sizes[1:]) - {1}):
            asked = f".{name} {', '.join(map(str, sizes))}".strip()
            raise Unsupported(f"{entry.name}: the emulated device has no launch with `{asked}`")


def target_registers(instruction: Instruction) -> frozenset[str]:
    """Return the registers `instruction` writes."""
    if instruction.opcode in NO_TARGET:
        return frozenset()
    return frozenset(_names(Register, *instruction.operands[:1]))


def source_registers(instruction: Instruction) -> frozenset[str]:
    """Return the registers `instruction` reads."""
    first = 0 if instruction.opcode in NO_TARGET else 1
    guard = (instruction.guard,) if instruction.guard else ()
    return frozenset(_names(Register, *instruction.operands[first:], *guard))


def _names(kind: type[Register | Symbol], *operands: Operand) -> Iterator[str]:
    """Name the registers or symbols in operands, those inside addresses and vectors too."""
    for operand in operands:
        match operand:
            case Address(base, _):
                yield from _names(kind, base)
            case Vector(members):
                yield from _names(kind, *members)
            case Register(name) | Symbol(name) if isinstance(operand, kind):
                yield name


def _merged_registers(entry: Entry) -> frozenset[str]:
    """Return the registers that some basic block reads before it writes them in all its lanes.

    What the inactive lanes of any other register hold never matters.
    """
    carried: set[str] = set()
    for block in entry.blocks:
        written: set[str] = set()
        for instruction in block:
            carried |= source_registers(instruction) - written
            if instruction.guard:
                carried |= target_registers(instruction)
            else:
                written |= target_registers(instruction)
    return frozenset(carried)


def _granule(instruction: Instruction) -> int:
    if "shared" not in instruction.modifiers:
        return WORD
    return min(WORD, DTYPES[instruction.types[-1]].itemsize)
