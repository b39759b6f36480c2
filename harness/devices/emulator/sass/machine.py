"""Run the slice of a kernel for some blocks and count what each group of lanes issues.

A step is one basic block: counted once per group, then only its kept instructions are executed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from harness.devices.emulator.sass import supplies
from harness.devices.emulator.sass.boxes import Box, NotProven, prove
from harness.devices.emulator.sass.branches import ENDINGS, JOINS
from harness.devices.emulator.sass.groups import Groups, Stuck
from harness.devices.emulator.sass.instructions import Decoded, Rank, Uncountable
from harness.devices.emulator.sass.meanings import BITS, WORD, Unknown
from harness.devices.emulator.sass.opcodes import rigid
from harness.devices.emulator.sass.operands import Operand
from harness.devices.emulator.sass.program import ENDS, Program
from harness.devices.emulator.sass.registers import UNWRITTEN, Registers, Value, sources, unknown
from harness.devices.emulator.threads import Lanes

STEP_LIMIT: Final = 2_000_000  # basic blocks, some minutes
COMPARED: Final = frozenset({"ISETP", "UISETP"})


class Machine:
    """Some blocks of a launch, run together to their end.

    Parameters
    ----------
    program
        What runs.
    constants
        Bank 0, as the launch fills it.
    block
        Threads along x, y, z.
    indices
        The blocks that run, (rows, 3).
    box
        If these are the probes of a box: every branch must be proven for all of it.

    Attributes
    ----------
    executions
        Issues of each basic block by its offset: of all rows, or of one if they are probes.
    idle
        Issues by opcode, among those the program watches, that no lane takes part in.
    """

    def __init__(
        self,
        program: Program,
        constants: Mapping[int, int],
        block: tuple[int, int, int],
        indices: NDArray[np.int64],
        box: Box | None = None,
    ) -> None:
        self.program, self.box = program, box
        self.groups = Groups(len(indices), block[0] * block[1] * block[2])
        self.registers = Registers(constants)
        self.executions: Counter[int] = Counter()
        self.idle: Counter[str] = Counter()
        self.assumptions: set[str] = set()
        self.specials = supplies.special_registers(self.groups.index, block, indices, box)

    def run(self) -> None:
        """Step until every lane has left.

        Raises
        ------
        Uncountable
            A decision depends on something unknown; lanes wait for ever; the kernel is endless.
        Differ, NotProven
            The blocks of the box do not all do the same, or may not.
        """
        with np.errstate(all="ignore"):
            for _ in range(STEP_LIMIT):
                try:
                    step = self.groups.next()
                except Stuck as stuck:
                    raise Uncountable(f"{self.program.name}: {stuck}") from None
                if step is None:
                    return
                self._step(*step)
        raise Uncountable(f"{self.program.name}: still running after {STEP_LIMIT} steps")

    def _step(self, offset: int, lanes: Lanes) -> None:
        block = self.program.blocks[offset]
        self.executions[offset] += self.issued(lanes)
        for code in self.program.slice[offset]:
            if code.opcode in JOINS:
                JOINS[code.opcode](self, code, lanes & self.holds(code, lanes))
            elif code.opcode not in ENDS:
                self._execute(code, lanes)
        try:
            if block.last.opcode in ENDINGS:
                ENDINGS[block.last.opcode](self, block.last, lanes)
            else:
                self.groups.go(block.end, lanes)
        except Stuck as stuck:
            raise Uncountable(f"{block.last.where}: {stuck}") from None

    def issued(self, lanes: Lanes) -> int:
        """Return how many groups `lanes` are, in all rows, or in one if these are probes."""
        groups = self.groups.count(lanes)
        return int(groups[0] if self.box else groups.sum() * (self.groups.blocks // len(groups)))

    def holds(self, code: Decoded, lanes: Lanes) -> NDArray[np.bool_]:
        """Return where a control instruction acts, which must be known."""
        acts = np.ones((1, 1, 1), np.bool_)
        for condition in code.conditions:
            acts = acts & self.decide(code, condition, lanes)
        return acts

    def decide(self, code: Decoded, operand: Operand, lanes: Lanes) -> NDArray[np.bool_]:
        """Return a value that decides where lanes go.

        Raises
        ------
        Uncountable
            It is not known in one of `lanes`; the message quotes both instructions.
        NotProven
            It may differ within the box.
        """
        wide = code.sources.index(operand) in code.pairs if operand in code.sources else False
        value = self.registers.read(operand, wide, code.offset + 1)
        if value.source is not None and (blame := np.where(lanes, value.source, 0)).any():
            raise Uncountable(self._explain(code, int(blame.max())))
        if value.rank:
            raise NotProven
        return value.bits[:1] if self.box else value.bits

    def _explain(self, code: Decoded, source: int) -> str:
        place, unwritten = (source % UNWRITTEN or code.offset + 1) - 1, source >= UNWRITTEN
        maker = self.program.listing[place]
        why = "reads what neither the code nor the launch wrote"
        return (
            f"{self.program.name}: {code.where} is decided by {maker.where}, "
            f"which {why if unwritten else supplies.reason(maker)}"
        )

    def _execute(self, code: Decoded, lanes: Lanes) -> None:
        if code.guard and code.opcode in self.program.watched:
            acting = lanes & self.decide(code, code.guard, lanes)
            self.idle[code.opcode] += self.issued(lanes) - self._acting_groups(lanes, acting)
        active, guard = lanes, None
        if code.guard is not None:
            guard = self.registers.read(code.guard, False, code.offset + 1)
            active = lanes & guard.bits
        for name, value in self._results(code, active):
            if guard is not None:
                rank = Rank.OTHER if guard.rank else value.rank
                value = Value(value.bits, sources(value, guard), rank)
            others = self.groups.running & ~active
            self.registers.write(name, value, active, others if others.any() else None)

    def _acting_groups(self, lanes: Lanes, acting: Lanes) -> int:
        """Return how many groups of `lanes` have a lane in `acting`."""
        leader = self.groups.leader
        mates = (leader[..., None, :] == leader[..., :, None]) & acting[..., None, :]
        return self.issued(lanes & mates.any(axis=-1))

    def _results(self, code: Decoded, lanes: Lanes) -> list[tuple[str, Value]]:
        """Return what an instruction writes, by register."""
        try:
            if code.opcode in supplies.TABLE:
                words = supplies.TABLE[code.opcode](self, code)
                names = [name for output in code.outputs for name in code.words(output)]
                return list(zip(names, words, strict=False))
            if code.row.meaning is None:
                raise Unknown
            return self._compute(code, lanes)
        except Unknown:
            return [
                (name, unknown(code.offset + 1, output.kind == "predicate"))
                for output in code.outputs
                for name in code.words(output)
            ]

    def _compute(self, code: Decoded, lanes: Lanes) -> list[tuple[str, Value]]:
        read = [
            self.registers.read(source, place in code.pairs, code.offset + 1)
            for place, source in enumerate(code.sources)
        ]
        assert code.row.meaning
        assert code.row.rank
        results = code.row.meaning(code, [value.bits for value in read])
        source, ranks = sources(*read), [value.rank for value in read]
        if code.opcode in COMPARED and self._proven(code, read, lanes):
            ranks, results = [Rank.SAME], [result[:1] for result in results]
        first, others = code.row.rank(code, ranks), rigid(code, ranks)
        written = []
        for output, bits in zip(code.outputs, results, strict=True):
            names = code.words(output)
            parts = [bits] if len(names) < 2 else [bits & WORD, bits >> BITS]
            for place, (name, part) in enumerate(zip(names, parts, strict=False)):
                rank = others if place or output.kind == "predicate" else first
                blame = self._blame_lanes(name, part, code, lanes) if name[0] == "U" else None
                unclear = source if blame is None else blame
                written.append((name, Value(part, unclear, rank)))
        return written

    def _proven(self, code: Decoded, read: list[Value], lanes: Lanes) -> bool:
        """Whether a comparison of affine numbers comes out alike in the whole box."""
        a, b, *rest = read
        ranks = {a.rank, b.rank}
        affine = self.box and max(ranks) == Rank.AFFINE and not any(each.rank for each in rest)
        if not affine or "EX" in code.modifiers or code.pairs:  # proven are 32-bit numbers alone
            return False
        assert self.box is not None
        source = sources(a, b)
        clear = lanes if source is None else lanes & (source == 0)
        prove(self.box, code, a.bits, b.bits, clear)
        return True

    def _blame_lanes(
        self, name: str, bits: NDArray[np.uint64], code: Decoded, lanes: Lanes
    ) -> NDArray[np.int64] | None:
        """A warp has one uniform register: where its lanes disagree, its value is not known."""
        if bits.shape[-1] == 1:
            return None
        high = np.where(lanes, bits, 0).max(axis=-1, keepdims=True)
        low = np.where(lanes, bits, high).min(axis=-1, keepdims=True)
        apart = np.where(high != low, np.int64(code.offset + 1), np.int64(0))
        return apart if apart.any() else None
