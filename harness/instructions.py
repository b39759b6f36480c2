"""Executed instructions: what a GPU counted of launches fixed and drawn, and what we count.

A count is a property of the machine code, so a record names it: by NVRTC's version and by the
SHA-256 of each entry's code. It also holds what `count_sass` said where the code was made. Whoever
compiles the same code can count again; whoever compiles other code is told so.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from harness.baselines import ROOT
from harness.devices.disassembly import DisassemblerMissing, SassError
from harness.devices.emulator import EmulatedDevice
from harness.devices.emulator.sass import cubin
from harness.draws import PARTING, Draw, Zeros, launches
from kernels import compile_kernel, kernel

FILE: Final = "instructions.json"
EXECUTED: Final = "smsp__inst_executed.sum"
NONE_PARTED: Final = (
    "no kernel whose lanes part was held against this GPU's counter yet: record it anew with "
    "`python -m harness.profiler --random 40`"
)


@dataclass(frozen=True)
class Measured:
    """One launch of a record.

    Attributes
    ----------
    executed
        Warp instructions by the hardware's counter.
    counted
        By `count_sass`, of the code that ran; None if that machine could not disassemble it.
    code
        SHA-256 of the entry's machine code.
    """

    launch: Draw
    executed: int
    counted: int | None
    code: str


@dataclass(frozen=True)
class Record:
    """What one GPU counted; `compiler` is NVRTC's version, (13, 0)."""

    label: str
    architecture: str
    compiler: tuple[int, int]
    launches: tuple[Measured, ...]

    @property
    def divergent(self) -> tuple[Measured, ...]:
        """The launches of kernels whose lanes part; none if the record is older than they are."""
        return tuple(each for each in self.launches if each.launch.kernel.source == PARTING)

    @property
    def drawn(self) -> tuple[Measured, ...]:
        """The other launches."""
        return tuple(each for each in self.launches if each.launch.kernel.source != PARTING)


def identify() -> dict[str, Any]:
    """Name the GPU, its driver and its architecture."""
    from harness.devices import telemetry
    from harness.devices.cuda import CudaDevice

    device = CudaDevice()
    driver = telemetry.state(device.bus_id).get("driver")
    return {"device": device.name, "driver": driver, "architecture": device.architecture}


def run(chosen: Sequence[Draw]) -> None:
    """Run every launch once, for a profiler to watch."""
    from harness.devices.cuda import CudaDevice

    device = CudaDevice()
    for each in chosen:
        each.prepare(device).on(device)


Profiler = Callable[[Sequence[str], Sequence[str], int], list[dict[str, float]]]


def main(
    options: argparse.Namespace,
    profile: Callable[..., list[dict[str, float]]],
    child: Callable[..., str],
) -> dict[str, Any] | None:
    """Return the record of `options.random` drawn launches, or be a process that this starts."""
    if options.launch:
        run(launches(options.seed, options.random))
    elif options.identify:
        print(json.dumps(identify()))
    else:
        chosen = ("--random", str(options.random), "--seed", str(options.seed))
        gpu = json.loads(child("--identify", *chosen))
        return document(options.seed, options.random, gpu, partial(profile, chosen=chosen))
    return None


def document(seed: int, number: int, gpu: dict[str, Any], profile: Profiler) -> dict[str, Any]:
    """Profile `number` drawn launches and the fixed ones; return the hardware's counts and ours."""
    chosen = launches(seed, number)
    counters = profile([each.kernel.name for each in chosen], [EXECUTED], 1)
    compiler = compile_kernel(chosen[0].kernel, gpu["architecture"]).compiler
    today = datetime.now(UTC).date().isoformat()
    measured = [
        _entry(each, gpu["architecture"], int(found[EXECUTED]))
        for each, found in zip(chosen, counters, strict=True)
    ]
    return {**gpu, "date": today, "nvrtc": list(compiler), "seed": seed, "launches": measured}


def _entry(launch: Draw, architecture: str, executed: int) -> dict[str, Any]:
    entry = launch.kernel
    return {
        "name": launch.name,
        "kernel": [entry.source, entry.name, dict(entry.defines)],
        "grid": launch.grid,
        "block": launch.block,
        "arguments": [
            [each.dtype, each.size] if isinstance(each, Zeros) else each
            for each in launch.arguments
        ],
        "executed": executed,
        "counted": _count(launch, architecture),
        "code": code(launch, architecture),
    }


def _count(launch: Draw, architecture: str) -> int | None:
    try:
        return count(launch, architecture)
    except (DisassemblerMissing, SassError):  # the measurement stands without it
        return None


def count(launch: Draw, architecture: str) -> int:
    """Return the warp instructions of a launch, of the code that is compiled here."""
    device = EmulatedDevice(architecture)
    return device.count_sass(launch.kernel, launch.grid, launch.block, *launch.counted).total


def code(launch: Draw, architecture: str) -> str:
    """Return the SHA-256 of the machine code that is compiled here."""
    compiled = compile_kernel(launch.kernel, architecture)
    return sha256(cubin.code(compiled.cubin, launch.kernel.name)).hexdigest()


def stored(root: Path = ROOT) -> list[Record]:
    """Return every record."""
    return [read(path) for path in sorted(root.glob(f"*/{FILE}"))]


def read(path: Path) -> Record:
    """Return the record in one file.

    Raises
    ------
    ValueError
        It is damaged; the message names it and says what to do.
    """
    try:
        found = json.loads(path.read_text("utf-8"))
        measured = tuple(_measured(each) for each in found["launches"])
        label = f"{found['device']}, {found['date']}, Nsight Compute"
        major, minor = found["nvrtc"]
        return Record(label, found["architecture"], (major, minor), measured)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path} is damaged ({error!r}): restore it with git, or record it anew with "
            "`python -m harness.profiler --random 40` on that GPU"
        ) from error


def _measured(entry: dict[str, Any]) -> Measured:
    source, name, defines = entry["kernel"]
    arguments = tuple(Zeros(*a) if isinstance(a, list) else a for a in entry["arguments"])
    launch = Draw(kernel(source, name, **defines), entry["grid"], entry["block"], arguments)
    return Measured(launch, entry["executed"], entry["counted"], entry["code"])
