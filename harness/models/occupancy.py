"""How many blocks an SM holds at once: the least of what its warps, registers and memory allow.

The rules are those of NVIDIA's calculator, `cuda_occupancy.h` of CUDA 13, which the tests hold this
one against. Barriers are left out: an SM has at least one for each block it can hold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from harness.models.datasheet import (
    MAX_BLOCK,
    REGISTER_UNIT,
    REGISTERS,
    SMSPS,
    WARP,
    Multiprocessor,
)

UNLIMITED: Final = 1 << 31


@dataclass(frozen=True)
class Occupancy:
    """Blocks an SM holds, by each of its limits.

    Attributes
    ----------
    by_warps, by_blocks, by_registers, by_shared
        What each allows alone; 0 if one block is already too much.
    warps_per_block, warps
        Of the kernel, and those the SM has room for.
    """

    by_warps: int
    by_blocks: int
    by_registers: int
    by_shared: int
    warps_per_block: int
    warps: int

    @property
    def limits(self) -> dict[str, int]:
        """The blocks that each limit allows."""
        return {
            "warps": self.by_warps,
            "blocks": self.by_blocks,
            "registers": self.by_registers,
            "shared memory": self.by_shared,
        }

    @property
    def blocks(self) -> int:
        """Resident blocks; 0 means that such a block cannot be launched."""
        return min(self.limits.values())

    @property
    def limiters(self) -> tuple[str, ...]:
        """What the number of blocks is limited by; several if they agree."""
        return tuple(name for name, blocks in self.limits.items() if blocks == self.blocks)

    @property
    def share(self) -> float:
        """Resident warps of those the SM has room for: what is called occupancy."""
        return self.blocks * self.warps_per_block / self.warps


def occupancy(
    sm: Multiprocessor, threads: int, registers: int = 0, static: int = 0, dynamic: int = 0
) -> Occupancy:
    """Return how many blocks `sm` holds.

    Parameters
    ----------
    threads, registers
        Of a block; of a thread.
    static, dynamic
        Bytes of shared memory of a block.

    Raises
    ------
    ValueError
        A block has no thread, or something is negative.
    """
    if threads < 1 or min(registers, static, dynamic) < 0:
        raise ValueError(
            f"{threads} threads, {registers} registers, {static} + {dynamic} bytes: "
            "a block has at least one thread, and nothing is negative"
        )
    warps = math.ceil(threads / WARP)
    return Occupancy(
        sm.warps // warps if threads <= MAX_BLOCK else 0,
        sm.blocks,
        _by_registers(warps, registers),
        _by_shared(sm, static + dynamic),
        warps,
        sm.warps,
    )


def _by_registers(warps: int, registers: int) -> int:
    """Each SMSP holds whole warps, whose registers come in units.

    Whether one block fits at all is decided as if its warps filled all SMSPs evenly.
    """
    per_warp = rounded_up(registers * WARP, REGISTER_UNIT)
    if not per_warp:
        return UNLIMITED
    if per_warp * rounded_up(warps, SMSPS) > REGISTERS:
        return 0
    return REGISTERS // SMSPS // per_warp * SMSPS // warps


def _by_shared(sm: Multiprocessor, asked: int) -> int:
    """The largest carve-out divided by what a block takes, CUDA's own share included."""
    taken = rounded_up(asked + sm.reserved, sm.shared_unit)
    if taken > sm.shared_per_block + sm.reserved:
        return 0
    return sm.shared // taken if taken else UNLIMITED


def rounded_up(value: int, unit: int) -> int:
    """Return the least multiple of `unit` that is not below `value`."""
    return -(-value // unit) * unit
