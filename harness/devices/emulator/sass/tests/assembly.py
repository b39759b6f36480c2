"""Machine code written by hand, whose counts can be derived by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

from harness.devices import disassembly
from harness.devices.emulator.sass.counting import Extent, Grid, Tally
from harness.devices.emulator.sass.program import Program

LINE: Final = re.compile(r"(?P<predicate>@!?U?P\w )?(?P<opcode>\S+)( (?P<operands>\S+))?")


def instructions(text: str) -> tuple[disassembly.Instruction, ...]:
    """Read one instruction a line, as nvdisasm would print it."""
    lines = [LINE.fullmatch(line.strip()) for line in text.strip().splitlines()]
    code = [
        {name: found.strip() for name, found in line.groupdict().items() if found}
        for line in lines
        if line
    ]
    assert len(code) == len(lines)
    function = {"function-name": "f", "start": 0, "length": 16 * len(code)}
    return disassembly.read(json.dumps([{}, [{**function, "sass-instructions": code}]]))["f"]


def assemble(
    text: str, functions: Mapping[str, int] | None = None, watched: frozenset[str] = frozenset()
) -> Program:
    """Make a program of some lines; a label is an offset, 0x10 an instruction."""
    return Program("f", instructions(text), functions or {}, watched)


def run(
    program: Program,
    block: Extent = (32, 1, 1),
    grid: Extent = (1, 1, 1),
    constants: Mapping[int, int] | None = None,
    every_block: bool = False,
) -> Tally:
    """Count a launch."""
    return Grid(program, constants or {}, grid, block).count(every_block)


def total(program: Program, block: Extent = (32, 1, 1), grid: Extent = (1, 1, 1)) -> int:
    """Return the instructions of a launch."""
    executions = run(program, block, grid).executions
    return sum(len(program.blocks[at].code) * times for at, times in executions.items())
