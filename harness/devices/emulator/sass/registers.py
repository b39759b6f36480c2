"""Registers per lane: bits, whether they are known, and how they depend on the block.

Arrays keep the smallest shape that broadcasts to (blocks, warps, 32): NumPy's broadcasting is the
uniform datapath.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from harness.devices.emulator.sass.instructions import Rank
from harness.devices.emulator.sass.meanings import BITS, WORD, Unknown
from harness.devices.emulator.sass.operands import ZERO, Operand
from harness.devices.emulator.threads import Lanes

# Added to the reader's place: nothing ever wrote what it reads.
UNWRITTEN: Final = 1 << 40


@dataclass(frozen=True)
class Value:
    """What a register holds.

    Attributes
    ----------
    bits
        uint64 below 2^32, or bool for a predicate.
    source
        Offset + 1 of the instruction that made it unknown, 0 where it is known.
    rank
        How it depends on the block.
    """

    bits: NDArray[Any]
    source: NDArray[np.int64] | None = None
    rank: Rank = Rank.SAME


def known(number: int | bool) -> Value:
    """One value for all lanes."""
    dtype = np.bool_ if isinstance(number, bool) else np.uint64
    return Value(np.full((1, 1, 1), number, dtype))


def unknown(source: int, predicate: bool = False) -> Value:
    """What an instruction without a meaning writes."""
    bits: NDArray[Any] = np.zeros((1, 1, 1), np.bool_ if predicate else np.uint64)
    return Value(bits, np.full((1, 1, 1), source, np.int64))


def sources(*values: Value) -> NDArray[np.int64] | None:
    """Return what makes a result unknown, if anything does."""
    found = [value.source for value in values if value.source is not None]
    total: NDArray[np.int64] | None = None
    for each in found:
        total = each if total is None else np.maximum(total, each)
    return total


class Registers:
    """The register file of some blocks, and the constant bank of their launch."""

    def __init__(self, constants: Mapping[int, int]) -> None:
        self._held: dict[str, Value] = {}
        self._constants = constants

    def constant(self, offset: int, source: int) -> Value:
        """Return a word of constant bank 0; what the launch did not put there is not known."""
        word = self._constants.get(offset)
        return unknown(UNWRITTEN + source) if word is None else known(word)

    def register(self, name: str, predicate: bool, source: int) -> Value:
        """Return what a register or predicate holds."""
        if name in self._held:
            return self._held[name]
        return unknown(UNWRITTEN + source, predicate)

    def read(self, operand: Operand, wide: bool, source: int) -> Value:
        """Return an operand's values; `source` blames the reader for what was never written.

        Raises
        ------
        Unknown
            The operand is of a kind that has no value here.
        """
        if operand.kind == "predicate":
            truth = known(True) if operand.discarded else self.register(operand.name, True, source)
            return Value(~truth.bits, truth.source, truth.rank) if operand.sign else truth
        if operand.kind == "integer":
            return _number(operand.value, wide)
        if operand.kind == "float" and not wide:
            return known(int(np.float32(operand.name).view(np.uint32)))
        if operand.kind not in ("register", "constant"):
            raise Unknown
        low = self._word(operand, 0, source)
        if not wide:
            return _signed(low, operand.sign, 32)
        high = self._word(operand, 1, source)
        bits = high.bits << BITS | low.bits
        return _signed(Value(bits, sources(low, high), max(low.rank, high.rank)), operand.sign, 64)

    def _word(self, operand: Operand, place: int, source: int) -> Value:
        if operand.kind == "constant":
            return self.constant(operand.value + 4 * place, source)
        if operand.name in ZERO:
            return known(0)
        return self.register(operand.words(place + 1)[place], False, source)

    def write(self, name: str, value: Value, lanes: Lanes, rest: Lanes | None) -> None:
        """Set a register in `lanes`; `rest` are the other lanes that still matter, if any do."""
        if rest is not None:
            value = self._merge(name, value, lanes)
        self._held[name] = value

    def _merge(self, name: str, value: Value, lanes: Lanes) -> Value:
        old = self.register(name, value.bits.dtype == np.bool_, 0)
        source = None
        if value.source is not None or old.source is not None:
            zero = np.zeros((1, 1, 1), np.int64)
            new, before = (zero if v.source is None else v.source for v in (value, old))
            source = np.where(lanes, new, before)
            source = source if source.any() else None
        bits = np.where(lanes, value.bits, old.bits)
        return Value(bits, source, max(value.rank, old.rank))


def _number(value: int, wide: bool) -> Value:
    # Whether 0x80000000 is extended by its sign in a 64-bit form is not known.
    if wide and 1 << 31 <= value < 1 << 32:
        raise Unknown
    return known(value & (1 << (64 if wide else 32)) - 1)


SIGNS: Final[dict[str, Callable[[NDArray[Any], int], NDArray[Any]]]] = {
    "": lambda bits, width: bits,
    "-": lambda bits, width: np.uint64(1 << 32) - bits if width == 32 else np.uint64(0) - bits,
    "|": lambda bits, width: bits & np.uint64(0x7FFFFFFF),  # of a float
    "~": lambda bits, width: bits ^ (WORD if width == 32 else ~np.uint64(0)),
}


def _signed(value: Value, sign: str, width: int) -> Value:
    return Value(SIGNS[sign](value.bits, width), value.source, value.rank) if sign else value
