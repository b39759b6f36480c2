"""Read PTX text into entries of basic blocks; what an instruction means is not known here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from harness.devices.emulator.declarations import (
    Registers,
    Variable,
    launch_limits,
    shared_variables,
)

COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
SCOPE: Final = r"\{((?:[^{}]++|\{(?:[^{}]++|\{[^{}]*\})*+\})*+)\}"  # scopes and vectors inside
ENTRY: Final = re.compile(r"\.entry\s+(\w+)\s*\(([^)]*)\)([^{]*)" + SCOPE)
PARAMETER: Final = re.compile(
    r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)\s+(?:\.ptr\s+[^,]*?)?(\w+)(?:\[\d+\])?$"
)
LABEL: Final = re.compile(r"(\$\w+):")
STATEMENT: Final = re.compile(r"(?:@(!?)([%\w]+)\s+)?([a-z][\w.:]*)\s*(.*)", re.DOTALL)
OPERAND: Final = re.compile(r"\s*(\{[^}]*\}|\[[^\]]*\]|[^,]+)")
ADDRESS: Final = re.compile(r"([%$\w]+)\s*(?:\+\s*(-?\w+))?$")
FLOAT: Final = re.compile(r"0[fFdD]([0-9A-Fa-f]+)$")
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
    """A kernel: parameters, launch limits and shared variables by name, basic blocks."""

    name: str
    parameters: dict[str, str]
    limits: dict[str, tuple[int, ...]]
    variables: dict[str, Variable]
    shared: int
    registers: Registers = field(default_factory=Registers)
    blocks: list[list[Instruction]] = field(default_factory=lambda: [[]])
    labels: dict[str, int] = field(default_factory=dict)

    def type_of(self, register: str) -> str:
        """Return the declared type of `register`: "%r12" was declared as `.b32 %r<16>`."""
        return self.registers.kind(register)


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
    parameters, directives, body = text
    shared = shared_variables(outside + body, body)
    entry = Entry(name, dict(_parameters(parameters)), launch_limits(directives), *shared)
    for statement in _statements(body, entry.registers):
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


def _statements(body: str, registers: Registers) -> Iterator[str]:
    """Split at labels and semicolons; registers are declared and scopes opened on the way."""
    for part in LABEL.sub(r"\1:;", body).split(";"):
        statement = " ".join(part.split())
        while statement.startswith(("{", "}")):
            (registers.open if statement[0] == "{" else registers.close)()
            statement = statement[1:].lstrip()
        registers.declare(statement)
        if statement and not statement.startswith("."):
            yield statement


def _append(entry: Entry, statement: str) -> None:
    """Add a statement to the last block; a label or a jump ends it, so no jump lands inside one."""
    if statement.endswith(":"):
        if entry.blocks[-1]:
            entry.blocks.append([])
        if statement[:-1] in entry.labels:
            raise PtxError(f"two labels of {entry.name} are called {statement[:-1]}: rename one")
        entry.labels[statement[:-1]] = len(entry.blocks) - 1
        return
    instruction = _instruction(statement, entry.registers)
    entry.blocks[-1].append(instruction)
    if instruction.opcode in ENDS_BLOCK:
        entry.blocks.append([])


def _instruction(statement: str, registers: Registers) -> Instruction:
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
        tuple(_operand(text.strip(), registers) for text in OPERAND.findall(operands)),
        Register(registers.find(guard) or guard) if guard else None,
        bool(negated),
        statement,
    )


def _operand(text: str, registers: Registers) -> Operand:
    """Read an operand; what cannot be read stays text, for whoever refuses the instruction."""
    if text.startswith("{"):
        return Vector(tuple(_operand(part.strip(), registers) for part in text[1:-1].split(",")))
    if "|" in text:
        return Vector(tuple(_operand(part.strip(), registers) for part in text.split("|")))
    if text.startswith("[") and (match := ADDRESS.match(text[1:-1].strip())):
        base = _operand(match[1], registers)
        if isinstance(base, (Register, Symbol)):
            return Address(base, int(match[2] or "0", 0))
    if register := registers.find(text):
        return Register(register)
    return _immediate(text) or Symbol(text)


def _immediate(text: str) -> Immediate | None:
    """Read 12, -1, 0x1F, 0f3F800000 (float32 bits) or 0d3FF0000000000000 (float64 bits)."""
    if match := FLOAT.match(text):
        return Immediate(int(match[1], 16))
    try:
        return Immediate(int(text.rstrip("U"), 0))
    except ValueError:
        return None
