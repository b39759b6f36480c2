"""How many bytes an SM has in flight, from a kernel's compiled code; Little's law does the rest.

Bytes in flight of an SM = bytes a thread can ask for before it must wait x resident threads.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from functools import cache
from typing import Final

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from harness.devices.disassembly import access, instructions
from harness.devices.emulator.crosslane import elements
from harness.devices.emulator.lanewise import DTYPES
from harness.devices.emulator.program import source_registers, target_registers
from harness.devices.emulator.ptx import Entry, Instruction, parse
from harness.models.datasheet import multiprocessor
from harness.models.occupancy import Occupancy, occupancy
from kernels import Kernel, compile_kernel

SASS_REGISTER: Final = re.compile(r"\bR\d+")
JUMPS: Final = frozenset({"BRA", "BRX", "CALL", "RET", "EXIT"})
REGISTER_COUNT: Final = 0x2F  # the attribute of .nv.info that holds (symbol, registers)


def bytes_in_flight(kernel: Kernel, block: int, architecture: str) -> int:
    """Return the bytes that one SM full of `kernel` can have on the way from memory."""
    return bytes_per_thread(kernel, architecture) * resident_threads(kernel, block, architecture)


@cache
def bytes_per_thread(kernel: Kernel, architecture: str) -> int:
    """Return the most bytes of loads that a thread can issue before it needs the first.

    These are the loads of one basic block whose addresses need no other load of that block. The
    compiler may issue them together as long as no store or barrier stands between.
    """
    return max(_independent_loads(block) for block in _entry(kernel, architecture).blocks)


def _independent_loads(block: Iterable[Instruction]) -> int:
    most, together = 0, 0
    loaded: set[str] = set()
    for instruction in block:
        targets, depends = target_registers(instruction), source_registers(instruction) & loaded
        loads = instruction.opcode == "ld" and "global" in instruction.modifiers
        if instruction.opcode in ("st", "atom", "red", "bar") or (loads and depends):
            together, loaded = 0, set()
        if loads:
            size = DTYPES[instruction.types[-1]].itemsize
            together += size * len(elements(instruction.operands[0]))
            most = max(most, together)
        loaded = loaded | targets if loads or depends else loaded - targets
    return most


@cache
def loads_under_way(kernel: Kernel, architecture: str) -> int:
    """Return the most global loads of `kernel` that machine code issues before it uses the first.

    Of one stretch of straight code, since a jump may leave it. The assembler decides: of loads that
    PTX has side by side it may take one after another, to save registers.

    Raises
    ------
    harness.devices.disassembly.DisassemblerMissing, harness.devices.disassembly.SassError
        The machine code cannot be read.
    """
    most, waiting = 0, 0
    awaited: set[str] = set()
    for instruction in instructions(kernel, architecture):
        named = set(SASS_REGISTER.findall(" ".join(instruction.operands)))
        if instruction.opcode in JUMPS or named & awaited:
            waiting, awaited = 0, set()
        if instruction.opcode == "LDG":
            found = access(instruction)
            assert found
            first = int(instruction.operands[0].removeprefix("R"))
            awaited |= {f"R{first + i}" for i in range(max(1, found.bytes // 4))}
            waiting += 1
            most = max(most, waiting)
    return most


@cache
def registers_per_thread(kernel: Kernel, architecture: str) -> int:
    """Return the registers the compiled kernel takes per thread, from its cubin."""
    elf = ELFFile(io.BytesIO(compile_kernel(kernel, architecture).cubin))
    sections = {section.name: section for section in elf.iter_sections()}
    table = sections[".symtab"]
    assert isinstance(table, SymbolTableSection)
    symbols = [symbol.name for symbol in table.iter_symbols()]
    info: bytes = sections[".nv.info"].data()
    words = memoryview(info[: len(info) // 4 * 4]).cast("I")
    at = 0
    while at < len(words):  # format and attribute, then a size in bytes, or a value of 16 bits
        kind, attribute, size = words[at] & 0xFF, words[at] >> 8 & 0xFF, words[at] >> 16
        if attribute == REGISTER_COUNT and symbols[words[at + 1]] == kernel.name:
            return words[at + 2]
        at += 1 + (size // 4 if kind == 4 else 0)
    raise LookupError(f"the cubin of {kernel} for {architecture} does not say its registers")


def shared_per_block(kernel: Kernel, architecture: str) -> int:
    """Return the bytes of static shared memory that a block of the compiled kernel takes."""
    return _entry(kernel, architecture).shared


def compiled_occupancy(
    kernel: Kernel, block: int, architecture: str, dynamic: int = 0
) -> Occupancy:
    """Return how many blocks of the compiled kernel one SM holds."""
    return occupancy(
        multiprocessor(architecture),
        block,
        registers_per_thread(kernel, architecture),
        shared_per_block(kernel, architecture),
        dynamic,
    )


def resident_threads(kernel: Kernel, block: int, architecture: str) -> int:
    """Return the threads of `kernel` that one SM holds."""
    return compiled_occupancy(kernel, block, architecture).blocks * block


@cache
def _entry(kernel: Kernel, architecture: str) -> Entry:
    return parse(compile_kernel(kernel, architecture).ptx)[kernel.name]
