"""The machine code of a kernel (SASS), read from its cubin by nvdisasm; needs no GPU and no driver.

PTX is what the compiler hands to the assembler. The assembler then moves loads, merges, predicates
and drops instructions, so what a warp really issues, and in which order, stands only here.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any, Final, Literal

from kernels import Kernel, compile_kernel

PACKAGE: Final = "nvidia-cuda-nvdisasm"
INSTRUCTION_BYTES: Final = 16  # from compute capability 7.0 on
OPCODE: Final = re.compile(r"[A-Z][A-Z0-9]*(\.\w+)*")
PREDICATE: Final = re.compile(r"(@!?U?P[0-9T])?")
# All predicates at once are an operand, and nvdisasm's JSON takes it for a guard: its place.
PREDICATES: Final = "PR"
PREDICATES_AT: Final = {"P2R": 1, "R2P": 0}
FIELDS: Final = frozenset({"opcode", "operands", "predicate", "other-attributes"})

Space = Literal["global", "shared"]
ACCESSES: Final[dict[str, tuple[Literal["load", "store"], Space]]] = {
    "LDG": ("load", "global"),
    "STG": ("store", "global"),
    "LDS": ("load", "shared"),
    "STS": ("store", "shared"),
}
# Loads of constants, and what a thread spills to memory of its own.
NEITHER_SPACE: Final = frozenset({"LDC", "LDCU", "LDL", "STL"})
# LD and ST find their space at run time; LDGSTS, LDSM, STAS, UBLKCP, UTMALDG move more than a lane.
OTHER_ACCESS: Final = re.compile(r"(LD|ST|UBLK|UTMA)\w*")
BYTES: Final = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
WORD: Final = 4  # bytes of an access that names no width
# 64-bit addresses; the read-only path; volatile accesses, and sm_75 and older; LDS.U of sm_75.
NO_WIDTH: Final = frozenset({"E", "CONSTANT", "STRONG", "SYS", "U"})


class DisassemblerMissing(RuntimeError):
    """nvdisasm is not installed; the message says what to install."""


class SassError(ValueError):
    """The machine code is not what this reader understands; the message quotes it."""


@dataclass(frozen=True)
class Instruction:
    """One instruction. `@!P0 LDG.E.128 R4,[R2.64]` has opcode "LDG" and modifiers ("E", "128").

    Attributes
    ----------
    predicate
        As "@P0" or "@!P0"; "" if there is none.
    offset
        Bytes from the first instruction of the entry.
    """

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[str, ...]
    predicate: str
    text: str
    offset: int


@dataclass(frozen=True)
class Access:
    """A load from, or a store to, global or shared memory; `bytes` are those of one lane."""

    kind: Literal["load", "store"]
    space: Space
    bytes: int
    instruction: Instruction


def instructions(kernel: Kernel, architecture: str) -> tuple[Instruction, ...]:
    """Return the machine code of `kernel` for a real architecture such as "sm_90".

    In program order, with the out-of-line helpers and the padding that follow the kernel's code.

    Raises
    ------
    DisassemblerMissing
        There is no nvdisasm.
    SassError
        nvdisasm refuses the cubin, or says something unknown.
    LookupError
        The cubin has no such entry.
    """
    entries = disassemble(compile_kernel(kernel, architecture).cubin)
    if kernel.name not in entries:
        raise LookupError(f"{kernel.path.name} for {architecture} has no {kernel.name}")
    return entries[kernel.name]


@cache
def memory_instructions(kernel: Kernel, architecture: str) -> tuple[Access, ...]:
    """Return the loads and stores of global and shared memory, in program order; no atomics.

    Raises
    ------
    SassError
        An access whose space or width cannot be told; and whatever `instructions` raises.
    """
    accesses = map(access, instructions(kernel, architecture))
    return tuple(found for found in accesses if found)


def access(instruction: Instruction) -> Access | None:
    """Return what `instruction` loads or stores in global or shared memory, if it does."""
    opcode = instruction.opcode
    if opcode in ACCESSES:
        return Access(*ACCESSES[opcode], _width(instruction), instruction)
    if opcode not in NEITHER_SPACE and OTHER_ACCESS.fullmatch(opcode):
        raise SassError(f"{_where(instruction)}: which memory {opcode} accesses is not known here")
    return None


def _width(instruction: Instruction) -> int:
    named = [modifier for modifier in instruction.modifiers if modifier not in NO_WIDTH]
    if unknown := [modifier for modifier in named if modifier not in BYTES]:
        raise SassError(f"{_where(instruction)}: the modifier {unknown[0]} is not known here")
    return BYTES[named[0]] if named else WORD


def _where(instruction: Instruction) -> str:
    return f"{instruction.text!r} at {instruction.offset:#x}"


@cache
def nvdisasm() -> Path:
    """Return NVIDIA's disassembler: from its wheel, else from the PATH.

    Raises
    ------
    DisassemblerMissing
        It is in neither.
    """
    try:
        listed = files(PACKAGE) or []
    except PackageNotFoundError:
        listed = []
    for file in listed:
        if Path(file).stem == "nvdisasm" and (tool := Path(str(file.locate()))).is_file():
            return tool
    if found := shutil.which("nvdisasm"):
        return Path(found)
    raise DisassemblerMissing(
        "nvdisasm, which reads a kernel's machine code, is neither installed nor on the PATH: "
        f"pip install {PACKAGE} (for CUDA 12 and 13; it needs no GPU)"
    )


@cache
def disassemble(cubin: bytes) -> dict[str, tuple[Instruction, ...]]:
    """Return the instructions of each entry of a cubin, by name.

    Raises
    ------
    DisassemblerMissing
        There is no nvdisasm.
    SassError
        nvdisasm refuses the cubin, or says something unknown.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "kernel.cubin")
        file.write_bytes(cubin)
        command = [str(nvdisasm()), "-json", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SassError(
            f"{nvdisasm()} cannot read this cubin of {len(cubin)} bytes: {done.stderr.strip()}; "
            f"one older than the compiler may not: pip install --upgrade {PACKAGE}"
        )
    return read(done.stdout)


def read(output: str) -> dict[str, tuple[Instruction, ...]]:
    """Read what `nvdisasm -json` prints: a header, then the functions.

    Raises
    ------
    SassError
        It is something else; the message quotes what is not understood.
    """
    try:
        _, functions = json.loads(output)
        return {each["function-name"]: _function(each) for each in functions}
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, SassError):
            raise
        raise SassError(f"nvdisasm -json printed {output[:80]!r} ({error!r})") from error


def _function(printed: dict[str, Any]) -> tuple[Instruction, ...]:
    code, name = printed["sass-instructions"], printed["function-name"]
    if printed["start"] or printed["length"] != INSTRUCTION_BYTES * len(code):
        raise SassError(
            f"{name} starts at {printed['start']} and has {len(code)} instructions in "
            f"{printed['length']} bytes; known are {INSTRUCTION_BYTES} each, from 0"
        )
    return tuple(_instruction(fields, INSTRUCTION_BYTES * i) for i, fields in enumerate(code))


def _instruction(fields: dict[str, Any], offset: int) -> Instruction:
    name, predicate = fields["opcode"], fields.get("predicate", "")
    operands = [operand for operand in fields.get("operands", "").split(",") if operand]
    if predicate == PREDICATES and (place := PREDICATES_AT.get(name.partition(".")[0])) is not None:
        predicate = ""
        operands.insert(place, PREDICATES)
    known = OPCODE.fullmatch(name) and PREDICATE.fullmatch(predicate)
    if not known or fields.keys() - FIELDS:
        raise SassError(f"nvdisasm printed {fields} at {offset:#x}, which is not known here")
    opcode, *modifiers = name.split(".")
    return Instruction(
        opcode,
        tuple(modifiers),
        tuple(operands),
        predicate,
        " ".join(filter(None, (predicate, name, ",".join(operands)))),
        offset,
    )
