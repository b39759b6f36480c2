"""Count a launch: by boxes of blocks that provably do the same, else block by block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from harness.devices.emulator.sass.boxes import Box, Differ, NotProven
from harness.devices.emulator.sass.machine import Machine
from harness.devices.emulator.sass.program import Program
from harness.devices.emulator.threads import WARP

LANES_AT_ONCE: Final = 1 << 17  # amortises Python; many more would leave the cache
FEW: Final = 16  # blocks that are run as soon as probed
BOXES: Final = 4096  # probed in vain before every block is run

Extent = tuple[int, int, int]


@dataclass
class Tally:
    """What was counted so far: issues by basic block, idle issues by opcode."""

    executions: Counter[int] = field(default_factory=Counter)
    idle: Counter[str] = field(default_factory=Counter)
    assumptions: set[str] = field(default_factory=set)
    blocks_run: int = 0

    def add(self, machine: Machine, times: int = 1) -> None:
        """Add what a machine has counted, `times` over."""
        for place, count in machine.executions.items():
            self.executions[place] += count * times
        for opcode, count in machine.idle.items():
            self.idle[opcode] += count * times
        self.assumptions |= machine.assumptions


@dataclass(frozen=True)
class Grid:
    """A launch: the program, its constants, threads and blocks along x, y, z."""

    program: Program
    constants: Mapping[int, int]
    grid: Extent
    block: Extent

    def count(self, every_block: bool) -> Tally:
        """Return the counts of all blocks; `every_block` proves nothing and runs them all."""
        tally, todo, probed = Tally(), [Box((0, 0, 0), self.grid)], 0
        while todo:
            box = todo.pop()
            if every_block or box.blocks <= FEW or probed == BOXES:
                self._run_all(box, tally)
                continue
            probed += 1
            try:
                self._probe(box, tally)
            except Differ as parting:
                todo.extend(box.cut(parting.axis, parting.at))
            except NotProven:
                self._run_all(box, tally)
        return tally

    def _probe(self, box: Box, tally: Tally) -> None:
        probes = box.probes
        tally.blocks_run += len(probes)
        machine = Machine(self.program, self.constants, self.block, probes, box)
        machine.run()
        tally.add(machine, box.blocks)

    def _run_all(self, box: Box, tally: Tally) -> None:
        x, y, z = self.block
        at_once = max(LANES_AT_ONCE // (-(-x * y * z // WARP) * WARP), 1)
        for start in range(0, box.blocks, at_once):
            blocks = box.range(start, min(start + at_once, box.blocks))
            tally.blocks_run += len(blocks)
            machine = Machine(self.program, self.constants, self.block, blocks)
            machine.run()
            tally.add(machine)
