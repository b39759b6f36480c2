"""An instruction decoded by its opcode's row: what it writes, what it reads, what it computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Literal

from numpy.typing import NDArray

from harness.devices.disassembly import Instruction, SassError
from harness.devices.emulator.sass.operands import Operand


class Uncountable(SassError):
    """The kernel cannot be counted without running it; the message quotes the instruction."""


class Rank(IntEnum):
    """How a register depends on the block's index within a box of blocks.

    The same in every block; affine in each coordinate, modulo 2^32; or anything else.
    """

    SAME = 0
    AFFINE = 1
    OTHER = 2


# "": none. "register": the first register, and the predicates right before and after it. "first":
# the first operand. "two": the first two. "but last": all but the last.
Outputs = Literal["", "register", "first", "two", "but last"]
Meaning = Callable[["Decoded", Sequence[NDArray[Any]]], list[NDArray[Any]]]
Ranks = Callable[["Decoded", Sequence[Rank]], Rank]


@dataclass(frozen=True)
class Row:
    """One opcode.

    Attributes
    ----------
    outputs
        Which operands it writes.
    modifiers
        All it may carry; another one is refused, since it may change the shape.
    meaning
        What it computes; None poisons what it writes.
    rank
        How the first result depends on the block, by the ranks of what it is made of.
    wide
        The modifiers under which it writes two registers; "128" is four for everyone.
    pairs
        The sources that are 64 bits wide, by modifier.
    """

    outputs: Outputs
    modifiers: frozenset[str]
    meaning: Meaning | None = None
    rank: Ranks | None = None
    wide: frozenset[str] = frozenset({"64"})
    pairs: tuple[tuple[str, tuple[int, ...]], ...] = ()
    always_wide: bool = False


@dataclass(frozen=True)
class Decoded:
    """One instruction with its operands told apart."""

    instruction: Instruction
    row: Row
    guard: Operand | None
    outputs: tuple[Operand, ...]
    sources: tuple[Operand, ...]
    width: int  # registers that it writes from its output register on
    pairs: frozenset[int]  # which sources are 64 bits wide

    @property
    def opcode(self) -> str:
        """Without modifiers."""
        return self.instruction.opcode

    @property
    def modifiers(self) -> tuple[str, ...]:
        """In order."""
        return self.instruction.modifiers

    @property
    def offset(self) -> int:
        """Bytes from the first instruction of the entry."""
        return self.instruction.offset

    @property
    def conditions(self) -> tuple[Operand, ...]:
        """What must hold in a lane for a control instruction to act: `@P0 BREAK B1,P1` has two."""
        guard = (self.guard,) if self.guard else ()
        return (*guard, *(source for source in self.sources if source.kind == "predicate"))

    @property
    def where(self) -> str:
        """The instruction as messages quote it."""
        return f"`{self.instruction.text}` at {self.offset:#x}"

    @property
    def writes(self) -> frozenset[str]:
        """Registers and predicates."""
        return frozenset(word for output in self.outputs for word in self.words(output))

    @property
    def reads(self) -> frozenset[str]:
        """Registers and predicates of the sources and the guard; none if there is no meaning."""
        guard = self.guard.words(1) if self.guard else ()
        if self.row.meaning is None and self.opcode not in CONSULTED:
            return frozenset(guard)
        words = (
            word
            for i, source in enumerate(self.sources)
            for word in source.words(2 if i in self.pairs else 1)
        )
        return frozenset((*guard, *words))

    def words(self, output: Operand) -> tuple[str, ...]:
        """The registers that one output covers."""
        return output.words(self.width if output.kind == "register" else 1)


# These compute nothing, but where they send a lane depends on their operands.
CONSULTED = frozenset({"BRA", "BREAK", "EXIT", "RET", "WARPSYNC"})
