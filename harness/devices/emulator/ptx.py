"""Read PTX text into entries of basic blocks; what an instruction means is not known here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
SCOPE: Final = r"\{((?:[^{}]++|\{(?:[^{}]++|\{[^{}]*\})*+\})*+)\}"  # scopes and vectors inside
ENTRY: Final = re.compile(r"\.entry\s+(\w+)\s*\(([^)]*)\)[^{]*" + SCOPE)
PARAMETER: Final = re.compile(
    r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)\s+(?:\.ptr\s+[^,]*?)?(\w+)(?:\[\d+\])?$"
)
REGISTERS: Final = re.compile(r"\.reg\s+\.(\w+)\s+(%\w+)(?:<\d+>)?\s*;")
SHARED: Final = re.compile(
    r"(\.extern\s+)?\.shared\s+\.align\s+(\d+)\s+\.[busf](\d+)\s+(\w+)(?:\[(\d*)\])?\s*;"
)
LABEL: Final = re.compile(r"(\$\w+):")
STATEMENT: Final = re.compile(r"(?:@(!?)(%\w+)\s+)?([a-z][\w.:]*)\s*(.*)", re.DOTALL)
OPERAND: Final = re.compile(r"\s*(\{[^}]*\}|\[[^\]]*\]|[^,]+)")
ADDRESS: Final = re.compile(r"([%$\w]+)\s*(?:\+\s*(-?\w+))?$")
FLOAT: Final = re.compile(r"0[fFdD]([0-9A-Fa-f]+)$")
DIGITS: Final = "0123456789"
TYPES: Final = frozenset(
    {"pred", "f16", "f16x2", "bf16", "bf16x2", "f32", "f64", "b8", "b16", "b32", "b64", "b128"}
    | {f"{kind}{bits}" for kind in "us" for bits in (8, 16, 32, 64)}
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
    """A constant, as bits; -1 stands for all ones."""

    bits: int


@dataclass(frozen=True)
class Symbol:
    """A special register, variable, parameter or label; or text that means nothing here."""

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

    name: str
    opcode: str
    modifiers: tuple[str, ...]
    types: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Register | None
    negated: bool
    text: str


@dataclass
class Entry:
    """A kernel: parameters and register types by name, shared bytes, basic blocks."""

    name: str
    parameters: dict[str, str]
    prefixes: dict[str, str]
    symbols: dict[str, int] = field(default_factory=dict)
    shared: int = 0
    blocks: list[list[Instruction]] = field(default_factory=lambda: [[]])
    labels: dict[str, int] = field(default_factory=dict)

    def type_of(self, register: str) -> str:
        """Return the declared type of `register`: "%r12" was declared as `.b32 %r<16>`."""
        return self.prefixes[register.rstrip(DIGITS)]


def parse(text: str) -> dict[str, Entry]:
    """Return the entries of a PTX module by name.

    Raises
    ------
    PtxError
        The module has no entry, or a statement cannot be read.
    """
    text = COMMENT.sub("", text)
    outside = ENTRY.sub("", text)
    entries = {name: _entry(name, rest, outside) for name, *rest in ENTRY.findall(text)}
    if not entries:
        raise PtxError(f"no .entry in this PTX: {text[:80]!r}")
    return entries


def _entry(name: str, text: list[str], outside: str) -> Entry:
    parameters, body = text
    prefixes = {prefix.rstrip(DIGITS): kind for kind, prefix in REGISTERS.findall(body)}
    entry = Entry(name, dict(_parameters(parameters)), prefixes)
    variables = SHARED.findall(outside) + SHARED.findall(body)
    # A dynamic array begins where the static ones end.
    for dynamic, align, bits, symbol, length in sorted(variables, key=lambda v: bool(v[0])):
        if re.search(rf"\b{symbol}\b", body):
            size = 0 if dynamic else int(bits) // 8 * int(length or 1)
            entry.symbols[symbol] = -(-entry.shared // int(align)) * int(align)
            entry.shared = entry.symbols[symbol] + size
    for statement in _statements(body):
        _append(entry, statement)
    if not entry.blocks[-1]:
        entry.blocks.pop()
    return entry


def _parameters(text: str) -> Iterator[tuple[str, str]]:
    for line in filter(None, (" ".join(part.split()) for part in text.split(","))):
        match = PARAMETER.match(line)
        if not match:
            raise PtxError(f"cannot read the parameter {line!r}")
        yield match[2], match[1]


def _statements(body: str) -> Iterator[str]:
    """Split at labels and semicolons; declarations and pragmas have done their work already."""
    for part in LABEL.sub(r"\1:;", body).split(";"):
        # A statement may open or close a scope: its registers are as good as the entry's.
        statement = " ".join(part.split()).lstrip("{} ")
        if statement and not statement.startswith("."):
            yield statement


def _append(entry: Entry, statement: str) -> None:
    """Add a statement to the last block; a label or a jump ends it, so no jump lands inside one."""
    if statement.endswith(":"):
        if entry.blocks[-1]:
            entry.blocks.append([])
        entry.labels[statement[:-1]] = len(entry.blocks) - 1
        return
    instruction = _instruction(statement, entry.prefixes)
    entry.blocks[-1].append(instruction)
    if instruction.opcode in ENDS_BLOCK:
        entry.blocks.append([])


def _instruction(statement: str, prefixes: Mapping[str, str]) -> Instruction:
    match = STATEMENT.match(statement)
    if not match:
        raise PtxError(f"cannot read {statement!r}")
    negated, guard, name, operands = match.groups()
    opcode, *suffixes = name.split(".")
    return Instruction(
        name,
        opcode,
        tuple(s for s in suffixes if s not in TYPES),
        tuple(s for s in suffixes if s in TYPES),
        tuple(_operand(text.strip(), prefixes) for text in OPERAND.findall(operands)),
        Register(guard) if guard else None,
        bool(negated),
        statement,
    )


def _operand(text: str, prefixes: Mapping[str, str]) -> Operand:
    """Read an operand; what cannot be read stays text, for whoever refuses the instruction."""
    if text.startswith("{"):
        return Vector(tuple(_operand(part.strip(), prefixes) for part in text[1:-1].split(",")))
    if "|" in text:
        return Vector(tuple(_operand(part.strip(), prefixes) for part in text.split("|")))
    if text.startswith("[") and (match := ADDRESS.match(text[1:-1].strip())):
        base = _operand(match[1], prefixes)
        if isinstance(base, (Register, Symbol)):
            return Address(base, int(match[2] or "0", 0))
    if text.startswith("%") and text.rstrip(DIGITS) in prefixes:
        return Register(text)
    return _immediate(text) or Symbol(text)


def _immediate(text: str) -> Immediate | None:
    """Read 12, -1, 0x1F, 0f3F800000 (float32 bits) or 0d3FF0000000000000 (float64 bits)."""
    if match := FLOAT.match(text):
        return Immediate(int(match[1], 16))
    try:
        return Immediate(int(text.rstrip("U"), 0))
    except ValueError:
        return None
