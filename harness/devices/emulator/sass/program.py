"""A kernel's basic blocks, and the slice of them that decides control flow."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from harness.devices.disassembly import INSTRUCTION_BYTES, Instruction
from harness.devices.emulator.sass.instructions import Decoded, Uncountable
from harness.devices.emulator.sass.opcodes import CONTROL, REFUSED, TABLE
from harness.devices.emulator.sass.operands import Operand, parse

WAITS: Final = frozenset({"BSYNC", "WARPSYNC"})  # alone in their block: they may be issued again
ENDS: Final = frozenset({"BRA", "BREAK", "EXIT", "CALL", "RET"}) | WAITS
SPLIT: Final = re.compile(r",(?![^\[]*\])")
LEAD: Final = re.compile("p*r?p*")


def decode(instruction: Instruction) -> Decoded:
    """Look up an instruction's row and tell its operands apart.

    Raises
    ------
    Uncountable
        The opcode or a modifier is in no row.
    """
    where = f"`{instruction.text}` at {instruction.offset:#x}"
    row = TABLE.get(instruction.opcode)
    if row is None:
        why = REFUSED.get(instruction.opcode, "the opcode {} is not known here")
        raise Uncountable(f"{where}: {why.format(instruction.opcode)}")
    modifiers = frozenset(instruction.modifiers)
    if unknown := modifiers - row.modifiers:
        raise Uncountable(f"{where}: the modifier {min(unknown)} is not known here")
    operands = tuple(map(parse, instruction.operands))
    cut = _outputs(operands, row.outputs)
    narrow = "32" in modifiers or not (row.always_wide or row.wide & modifiers)
    pairs = frozenset(i for name, chosen in row.pairs if name in modifiers for i in chosen)
    return Decoded(
        instruction,
        row,
        parse(instruction.predicate[1:]) if instruction.predicate else None,
        operands[:cut],
        operands[cut:],
        4 if "128" in modifiers else 1 if narrow else 2,
        pairs,
    )


def _outputs(operands: Sequence[Operand], rule: str) -> int:
    """Return how many of the operands are written."""
    match rule:
        case "first" | "two":
            return 1 if rule == "first" else 2
        case "but last":
            return len(operands) - 1
        case "register":
            kinds = "".join(_letter(operand) for operand in operands)
            found = LEAD.match(kinds)
            return found.end() if found else 0
    return 0


def _letter(operand: Operand) -> str:
    """A register or a predicate that can be written, or anything else."""
    if operand.sign or operand.kind not in ("register", "predicate"):
        return "x"
    return operand.kind[0]


@dataclass(frozen=True)
class Block:
    """Instructions that run together, and the offsets where their lanes may go on."""

    code: tuple[Decoded, ...]
    successors: tuple[int, ...]

    @property
    def last(self) -> Decoded:
        """The one that decides where the lanes go."""
        return self.code[-1]

    @property
    def end(self) -> int:
        """Where lanes go on that do not branch."""
        return self.last.offset + INSTRUCTION_BYTES


class Program:
    """The part of an entry that can be reached, cut into basic blocks.

    Parameters
    ----------
    name, instructions
        Of the entry.
    functions
        Where CALL finds its targets.
    watched
        Opcodes whose guards are to be known as well, to tell which issues do nothing.

    Raises
    ------
    Uncountable
        An opcode, a modifier or a jump that is not known here.
    """

    def __init__(
        self,
        name: str,
        instructions: Sequence[Instruction],
        functions: Mapping[str, int],
        watched: frozenset[str] = frozenset(),
    ) -> None:
        self.name = name
        self.watched = watched
        self._functions = functions
        self._code = {each.offset: each for each in instructions}
        self._decoded: dict[int, Decoded] = {}
        self._returns: set[int] = set()
        self.blocks = self._cut()
        self.offsets = sorted(self.blocks)
        self.slice = self._slice()

    def _reach(self) -> dict[int, tuple[int, ...]]:
        """Return what follows each instruction that can be reached; returns go to every caller."""
        follows: dict[int, tuple[int, ...]] = {}
        while True:
            todo, known = [0], len(self._returns)
            follows.clear()
            while todo:
                if (at := todo.pop()) not in follows:
                    follows[at] = self._follow(at)
                    todo.extend(follows[at])
            if len(self._returns) == known:
                return follows

    def _follow(self, at: int) -> tuple[int, ...]:
        code, after = self._at(at), at + INSTRUCTION_BYTES
        match code.opcode:
            case "BRA" | "CALL":
                target = self.target(code)
                if code.opcode == "CALL":
                    self._returns.add(after)
                always = code.guard is None and len(code.sources) == 1
                return (target,) if always else (target, after)
            case "EXIT":
                return (after,) if code.conditions else ()
            case "RET":
                return (*sorted(self._returns), *((after,) if code.guard else ()))
            case "WARPSYNC" if "COLLECTIVE" in code.modifiers:
                return ()  # refused when a lane comes by
        return (after,)

    def _at(self, offset: int) -> Decoded:
        if offset not in self._decoded:
            if offset not in self._code:
                raise Uncountable(f"{self.name}: something leads to {offset:#x}, past its code")
            self._decoded[offset] = decode(self._code[offset])
        return self._decoded[offset]

    def target(self, code: Decoded) -> int:
        """Return where a BRA or a CALL leads, in bytes from the entry.

        Raises
        ------
        Uncountable
            It is neither an offset nor a function of the kernel.
        """
        label = code.instruction.operands[-1].strip()
        known = code.sources[-1].kind == "integer"
        offset = code.sources[-1].value if known else self._functions.get(label)
        if offset is None:
            raise Uncountable(f"{code.where}: where {label} is, this cubin does not say")
        return offset

    def _cut(self) -> dict[int, Block]:
        follows = self._reach()
        starts = {0} | {s for at, next_ in follows.items() for s in next_ if self._breaks(at, s)}
        blocks: dict[int, Block] = {}
        for start in starts:
            code = [self._decoded[start]]
            while (at := code[-1].offset + INSTRUCTION_BYTES) in follows and at not in starts:
                if code[-1].opcode in ENDS:
                    break
                code.append(self._decoded[at])
            blocks[start] = Block(tuple(code), follows[code[-1].offset])
        return blocks

    def _breaks(self, at: int, successor: int) -> bool:
        apart = self._decoded[at].opcode in ENDS or self._decoded[successor].opcode in WAITS
        return apart or successor != at + INSTRUCTION_BYTES

    @cached_property
    def listing(self) -> dict[int, Decoded]:
        """Every instruction that can be reached, by offset."""
        return dict(sorted(self._decoded.items()))

    def _slice(self) -> dict[int, tuple[Decoded, ...]]:
        """Return what each block must execute, by strong liveness from what decides control flow.

        Flow-sensitive, since registers are used again: only a definition that reaches a decision.
        """
        live: dict[int, frozenset[str]] = dict.fromkeys(self.blocks, frozenset())
        kept: dict[int, tuple[Decoded, ...]] = {}
        changed = True
        while changed:
            changed = False
            for start in reversed(self.offsets):
                kept[start], before = self._backward(self.blocks[start], live)
                changed, live[start] = changed or before != live[start], before
        return kept

    def _backward(
        self, block: Block, live: Mapping[int, frozenset[str]]
    ) -> tuple[tuple[Decoded, ...], frozenset[str]]:
        needed: frozenset[str] = frozenset().union(*(live[after] for after in block.successors))
        kept: list[Decoded] = []
        for code in reversed(block.code):
            wanted = code.opcode in CONTROL or bool(code.writes & needed)
            if not wanted and not (code.opcode in self.watched and code.guard):
                continue
            kept.append(code)
            if wanted and code.guard is None:
                needed -= code.writes
            needed |= code.reads if wanted else frozenset(code.guard.words(1) if code.guard else ())
        return tuple(reversed(kept)), needed
