"""What an H200 counted of launches that were chosen by hand, in the form of a stored record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from harness.draws import Draw, Zeros
from harness.instructions import Measured, Record
from kernels import Kernel

Count = tuple[str, int, int, tuple[int, ...], int]  # kernel, blocks, threads, scalars, instructions


def measured(
    source: str,
    codes: Mapping[str, str],
    name: str,
    blocks: int,
    threads: int,
    scalars: tuple[int, ...],
    executed: int,
) -> Measured:
    """Return a launch and the warp instructions that it executed.

    `codes` has the SHA-256 of the machine code that ran, by kernel.
    """
    memory = Zeros("u4", blocks * threads + 64)
    launch = Draw(Kernel(source, name), blocks, threads, (memory, *scalars))
    return Measured(launch, executed, None, codes[name])


def record(launches: Iterable[Measured]) -> Record:
    """Return the record: NVRTC 13.0.88 made the code, smsp__inst_executed.sum was read."""
    return Record("NVIDIA H200, 2026-11-30, Nsight Compute", "sm_90", (13, 0), tuple(launches))
