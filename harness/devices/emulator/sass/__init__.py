"""The warp instructions of a launch, counted from the machine code: no GPU, no data, no time.

Only the instructions that decide control flow are executed; every one that a group of lanes would
issue is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from harness.devices.disassembly import disassemble
from harness.devices.emulator.sass.counting import Extent, Grid
from harness.devices.emulator.sass.cubin import Image, read
from harness.devices.emulator.sass.instructions import Uncountable
from harness.devices.emulator.sass.program import Program
from kernels import Kernel, compile_kernel

__all__ = ["SassCount", "Uncountable", "count"]

BARRIERS = "every thread of a block reaches its barriers"


@dataclass(frozen=True)
class SassCount:
    """Machine instructions of one launch.

    Attributes
    ----------
    total
        Warp instructions issued, predicated-off ones too: smsp__inst_executed.sum.
    by_opcode
        The same by opcode without modifiers, "LDG".
    idle
        Issues that no lane took part in, by opcode: only of those opcodes that were asked for.
    blocks_run
        Blocks that were executed to know what all of them do.
    assumptions
        What was taken for granted, in words.
    architecture, compiler
        Whose code this is, such as "sm_90", (13, 0). A count is a property of both.
    """

    total: int
    by_opcode: Mapping[str, int]
    idle: Mapping[str, int]
    blocks_run: int
    assumptions: tuple[str, ...]
    architecture: str
    compiler: tuple[int, int]


@cache
def load(
    cubin: bytes, name: str, architecture: str, watched: frozenset[str] = frozenset()
) -> tuple[Program, Image]:
    """Disassemble one entry of a cubin and slice it.

    Raises
    ------
    LookupError
        The cubin has no such entry.
    Uncountable
        It has an instruction that is not known here.
    SassError, DisassemblerMissing
        As `harness.devices.disassembly.disassemble`.
    """
    entries = disassemble(cubin)
    if name not in entries:
        raise LookupError(f"this {architecture} cubin has no {name}")
    image = read(cubin, name, architecture)
    try:
        return Program(name, entries[name], image.functions, watched), image
    except Uncountable as refusal:
        raise Uncountable(f"{name} for {architecture}: {refusal}") from None


def count(
    kernel: Kernel,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    arguments: Sequence[np.generic],
    architecture: str,
    *,
    watched: frozenset[str] = frozenset(),
    every_block: bool = False,
) -> SassCount:
    """Count a launch of `kernel` compiled here; `arguments` are its parameters as NumPy scalars.

    Raises
    ------
    Uncountable
        A branch depends on data or on a clock, or the code is not understood; the message quotes
        the instruction.
    """
    binary = compile_kernel(kernel, architecture)
    program, image = load(binary.cubin, kernel.name, architecture, watched)
    blocks, threads = _extent(grid), _extent(block)
    constants = image.constants(blocks, threads, arguments)
    tally = Grid(program, constants, blocks, threads).count(every_block)
    by_opcode: Counter[str] = Counter()
    for offset, times in tally.executions.items():
        for code in program.blocks[offset].code:
            by_opcode[code.opcode] += times
    assumed = {BARRIERS} if "BAR" in by_opcode else set()
    return SassCount(
        by_opcode.total(),
        dict(sorted(by_opcode.items())),
        dict(sorted(tally.idle.items())),
        tally.blocks_run,
        tuple(sorted(tally.assumptions | assumed)),
        architecture,
        binary.compiler,
    )


def _extent(size: int | Sequence[int]) -> Extent:
    sizes = (size,) if isinstance(size, int) else tuple(size)
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z
