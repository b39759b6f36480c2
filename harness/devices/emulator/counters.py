"""What a warp asks of the memory, counted exactly: an observer that executes nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from harness.devices.emulator.memory import Addresses
from harness.devices.emulator.program import Program
from harness.devices.emulator.ptx import Instruction
from harness.devices.emulator.threads import WARP, Lanes, Threads

SECTOR: Final = 32  # bytes: what L1 and L2 move
BANKS: Final = 32
BANK_WIDTH: Final = 4  # bytes
PHASE: Final = BANKS * BANK_WIDTH  # bytes one wavefront can bring; a wider request takes phases


@dataclass(frozen=True)
class Traffic:
    """The requests of some memory instructions, one request a warp.

    `lanes` and `bytes` count active lanes only. `sectors` are distinct 32-byte sectors per request
    (global), `wavefronts` the passes the banks need (shared), `degree` the most for one request.
    Lanes that meet in an atomic are not told apart here: see `Counters.atomics`.
    """

    requests: int = 0
    lanes: int = 0
    bytes: int = 0
    sectors: int = 0
    wavefronts: int = 0
    degree: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        """Sum the counts and keep the worse degree."""
        return Traffic(
            self.requests + other.requests,
            self.lanes + other.lanes,
            self.bytes + other.bytes,
            self.sectors + other.sectors,
            self.wavefronts + other.wavefronts,
            max(self.degree, other.degree),
        )


@dataclass(frozen=True)
class Access:
    """One memory instruction executed once, by all warps that reached it together."""

    opcode: str
    space: str
    traffic: Traffic


@dataclass
class Counters:
    """The counts of one or more launches.

    Attributes
    ----------
    warp_instructions, lane_instructions
        PTX instructions issued, per warp and per lane, whatever their guard says. Not SASS.
    opcodes
        Warp instructions by mnemonic, such as "ld.shared.f32".
    accesses
        Every memory instruction in the order of execution.
    atomics
        Lane operations per global address.
    """

    warp_instructions: int = 0
    lane_instructions: int = 0
    opcodes: Counter[str] = field(default_factory=Counter)
    accesses: list[Access] = field(default_factory=list)
    atomics: Counter[int] = field(default_factory=Counter)

    def traffic(self, opcode: str, space: str) -> Traffic:
        """Sum the accesses of one opcode ("ld", "st", "atom") and space ("global", "shared")."""
        chosen = (a.traffic for a in self.accesses if (a.opcode, a.space) == (opcode, space))
        return sum(chosen, Traffic())

    def degrees(self, opcode: str, space: str) -> list[int]:
        """Return the worst bank conflict of each executed instruction, in order."""
        return [a.traffic.degree for a in self.accesses if (a.opcode, a.space) == (opcode, space)]

    def issued(self, opcode: str) -> int:
        """Return the warp instructions of an opcode: issued("bar") are barrier arrivals by warp."""
        return sum(n for name, n in self.opcodes.items() if name.split(".")[0] == opcode)


class Counting:
    """The observer that fills `counters`."""

    def __init__(self, program: Program, counters: Counters) -> None:
        self._counters = counters
        self._blocks = [[i.name for i in block] for block in program.entry.blocks]

    def begin(self, threads: Threads) -> None:
        """Take the threads that run next."""
        self._together = threads.blocks

    def issue(self, block: int, lanes: Lanes) -> None:
        """Count a basic block: its instructions issue for every warp with a lane in it."""
        names, alike = self._blocks[block], self._alike(lanes)
        warps = int(np.count_nonzero(lanes.any(axis=-1))) * alike
        self._counters.warp_instructions += warps * len(names)
        self._counters.lane_instructions += int(np.count_nonzero(lanes)) * alike * len(names)
        for name in names:
            self._counters.opcodes[name] += warps

    def access(
        self, instruction: Instruction, space: str, address: Addresses, size: int, lanes: Lanes
    ) -> None:
        """Count the requests, sectors or wavefronts of one executed memory instruction."""
        address, lanes = np.broadcast_arrays(address, lanes)
        opcode = "atom" if instruction.opcode == "red" else instruction.opcode
        if (opcode, space) == ("atom", "global"):
            places, counts = np.unique(address[lanes], return_counts=True)
            found = zip(places.tolist(), counts.tolist(), strict=True)
            self._counters.atomics.update(dict(found))
        traffic = measure(space, address, size, lanes, self._alike(lanes))
        self._counters.accesses.append(Access(opcode, space, traffic))

    def order_warp(self, lanes: Lanes) -> None:
        """Ordering costs nothing beyond its instruction."""

    def _alike(self, lanes: Lanes) -> int:
        """Return how many blocks each row of `lanes` stands for; atomics come in full."""
        return self._together // len(lanes)


def measure(space: str, address: Addresses, size: int, lanes: Lanes, alike: int) -> Traffic:
    """Count the traffic of requests shaped (blocks, warps, 32), each row standing for `alike`."""
    active = int(np.count_nonzero(lanes))
    requests = int(np.count_nonzero(lanes.any(axis=-1)))
    sectors, wavefronts, degree = 0, 0, 0
    if space == "global":
        warp = np.arange(lanes.size // WARP).repeat(WARP).reshape(lanes.shape)
        sectors = len(distinct(warp[lanes], address[lanes] // SECTOR)[0])
    else:
        per_request = wavefronts_per_request(address, size, lanes)
        wavefronts, degree = int(np.sum(per_request)), int(np.max(per_request))
    return Traffic(
        requests * alike,
        active * alike,
        active * size * alike,
        sectors * alike,
        wavefronts * alike,
        degree,
    )


def wavefronts_per_request(address: Addresses, size: int, lanes: Lanes) -> NDArray[np.int64]:
    """Return the wavefronts of each warp's shared-memory request, 0 for an idle warp.

    In one wavefront a bank serves one word. Accesses of 8 and 16 bytes go by half and quarter warps
    (CUDA C++ Programming Guide, shared memory): 128 bytes a phase either way.
    """
    warps, words = lanes.size // WARP, max(size // BANK_WIDTH, 1)
    phases = max(size * WARP // PHASE, 1)
    group = (np.arange(lanes.size) * phases // WARP).reshape(lanes.shape)[lanes].repeat(words)
    word = (address[lanes][:, None] // BANK_WIDTH + np.arange(words)).reshape(-1)
    group, word = distinct(group, word)
    depth = np.bincount(group * BANKS + word % BANKS, minlength=warps * phases * BANKS)
    wavefronts: NDArray[np.int64] = depth.reshape(warps, phases, BANKS).max(axis=-1).sum(axis=-1)
    return wavefronts


def distinct(
    group: NDArray[np.int64], value: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct (group, value) pairs; one packed key sorts faster than rows."""
    key = group << 40 | value
    if (key[1:] < key[:-1]).any():
        key = np.sort(key)
    key = key[np.concatenate(([True], key[1:] != key[:-1]))[: len(key)]]
    return key >> 40, key & (1 << 40) - 1
