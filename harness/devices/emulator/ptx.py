"""Read PTX text into entries of basic blocks; what an instruction means is not known here."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
ENTRY: Final = re.compile(r"\.entry\s+(\w+)\s*\(([^)]*)\)[^{]*\{(.*?)\n\}", re.DOTALL)
PARAMETER: Final = re.compile(r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)\s+(?:\.ptr\s+[^,]*?)?(\w+)$")
REGISTERS: Final = re.compile(r"\.reg\s+\.(\w+)\s+(%\w+)<(\d+)>")
SHARED: Final = re.compile(r"\.shared\s+\.align\s+(\d+)\s+\.b(\d+)\s+(\w+)(?:\[(\d*)\])?")
LABEL: Final = re.compile(r"(\$\w+):")
STATEMENT: Final = re.compile(r"(?:@(!?)(%\w+)\s+)?([a-z][\w.:]*)\s*(.*)", re.DOTALL)
OPERAND: Final = re.compile(r"\{[^}]*\}|\[[^\]]*\]|[^,]+")
ADDRESS: Final = re.compile(r"([%$\w]+)\s*(?:\+\s*(-?\w+))?$")
TYPES: Final = frozenset(
    "b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64 pred f16 f16x2 bf16".split()
)
ENDS_BLOCK: Final = frozenset({"bra", "bar", "ret", "exit"})


class PtxError(ValueError):
    """The text is not PTX this reader understands; the message quotes it."""


@dataclass(frozen=True)
class Register:
    """A register, read through whatever type the instruction names."""

    name: str


@dataclass(frozen=True)
class Immediate:
    """A constant: its bits, and whether they were written as a float."""

    bits: int
    floating: bool = False


@dataclass(frozen=True)
class Symbol:
    """A special register, variable, parameter or label."""

    name: str


@dataclass(frozen=True)
class Address:
    """`[base + offset]`, offset in bytes."""

    base: Register | Symbol
    offset: int = 0


@dataclass(frozen=True)
class Vector:
    """`{a, b}`: the elements of one vector access; `a|b`: the two results of one instruction."""

    elements: tuple[Operand, ...]


Operand = Register | Immediate | Symbol | Address | Vector


@dataclass(frozen=True)
class Instruction:
    """One instruction. `add.s32` has opcode "add", no modifiers, types ("s32",)."""

    opcode: str
    modifiers: tuple[str, ...]
    types: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: str | None
    negated: bool
    text: str

    @property
    def name(self) -> str:
        """The whole mnemonic, such as "ld.shared.f32"."""
        return self.text.split("@")[-1].split()[1 if self.guard else 0]


@dataclass
class Entry:
    """A kernel: parameters (name, type), register types by prefix, shared bytes, basic blocks."""

    name: str
    parameters: dict[str, str]
    prefixes: dict[str, str]
    symbols: dict[str, int] = field(default_factory=dict)
    shared: int = 0
    blocks: list[list[Instruction]] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)

    def type_of(self, register: str) -> str:
        """Return the declared type of `register`: "%r12" was declared as `.b32 %r<16>`."""
        return self.prefixes[register.rstrip("0123456789")]


def parse(text: str) -> dict[str, Entry]:
    """Return the entries of a PTX module by name.

    Raises
    ------
    PtxError
        The module has no entry, or a statement cannot be read.
    """
    text = COMMENT.sub("", text)
    entries = {name: _entry(name, *rest) for name, *rest in ENTRY.findall(text)}
    if not entries:
        raise PtxError(f"no .entry in this PTX: {text[:80]!r}")
    return entries


def _entry(name: str, parameters: str, body: str) -> Entry:
    prefixes = {prefix: kind for kind, prefix, _ in REGISTERS.findall(body)}
    entry = Entry(name, dict(_parameters(parameters)), prefixes)
    for align, bits, symbol, length in SHARED.findall(body):
        _reserve(entry, symbol, int(align), int(bits) // 8 * int(length or 1))
    entry.blocks.append([])
    for statement in _statements(body):
        _append(entry, statement)
    entry.blocks = [*entry.blocks[:-1], entry.blocks[-1]] if entry.blocks[-1] else entry.blocks[:-1]
    return entry


def _parameters(text: str) -> Iterator[tuple[str, str]]:
    for line in filter(None, (part.strip() for part in text.split(","))):
        match = PARAMETER.match(line)
        if not match:
            raise PtxError(f"cannot read the parameter {line!r}")
        yield match[2], match[1]


def _reserve(entry: Entry, symbol: str, align: int, size: int) -> None:
    offset = -(-entry.shared // align) * align
    entry.symbols[symbol] = offset
    entry.shared = offset + size


def _statements(body: str) -> Iterator[str]:
    """Split at labels and semicolons; declarations and pragmas have done their work already."""
    for part in LABEL.sub(r"\1:;", body).split(";"):
        statement = " ".join(part.split())
        if statement and not statement.startswith("."):
            yield statement


def _append(entry: Entry, statement: str) -> None:
    """Add a statement to the last block; a label or a jump ends it, so no jump lands inside one."""
    if statement.endswith(":"):
        if entry.blocks[-1]:
            entry.blocks.append([])
        entry.labels[statement[:-1]] = len(entry.blocks) - 1
        return
    instruction = _instruction(statement)
    entry.blocks[-1].append(instruction)
    if instruction.opcode in ENDS_BLOCK:
        entry.blocks.append([])


def _instruction(statement: str) -> Instruction:
    match = STATEMENT.match(statement)
    if not match:
        raise PtxError(f"cannot read {statement!r}")
    negated, guard, mnemonic, operands = match.groups()
    opcode, *suffixes = mnemonic.split(".")
    return Instruction(
        opcode,
        tuple(s for s in suffixes if s not in TYPES),
        tuple(s for s in suffixes if s in TYPES),
        tuple(_operand(text.strip()) for text in OPERAND.findall(operands)),
        guard,
        bool(negated),
        statement,
    )


def _operand(text: str) -> Operand:
    if text.startswith("{"):
        return Vector(tuple(_operand(part.strip()) for part in text[1:-1].split(",")))
    if text.startswith("["):
        return _address(text[1:-1])
    if "|" in text:
        return Vector(tuple(_operand(part.strip()) for part in text.split("|")))
    if text.startswith("%"):
        return Symbol(text) if "." in text or text == "%laneid" else Register(text)
    if text.startswith(("$", "_")) or text[0].isalpha():
        return Symbol(text)
    return _immediate(text)


def _address(text: str) -> Address:
    match = ADDRESS.match(text.strip())
    if not match:
        raise PtxError(f"cannot read the address [{text}]")
    base = Register(match[1]) if match[1].startswith("%") else Symbol(match[1])
    return Address(base, int(match[2] or "0", 0))


def _immediate(text: str) -> Immediate:
    """Read 12, -1, 0x1F, 0f3F800000 (float32 bits) or 0d3FF0000000000000 (float64 bits)."""
    try:
        if text[:2] in ("0f", "0F"):
            return Immediate(int(text[2:], 16), floating=True)
        if text[:2] in ("0d", "0D"):
            return Immediate(struct.unpack("<q", struct.pack("<Q", int(text[2:], 16)))[0], True)
        return Immediate(int(text.rstrip("U"), 0))
    except ValueError:
        raise PtxError(f"cannot read the operand {text!r}") from None
