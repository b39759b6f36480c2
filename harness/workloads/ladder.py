"""The reduce ladder in machine instructions, beside the column that the seminar prints.

That column was taken on an A100: sm_80, 2^24 floats, 16 blocks on each of 108 SMs.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from harness.baselines import PUBLISHED, read
from harness.devices.emulator.sass import SassCount, count
from harness.workloads.reduction import RUNGS, Reduction

BLOCK: Final = 256
PERSISTENT: Final = 1728  # blocks of V5 to V7: 16 on each SM of an A100
ARCHITECTURES: Final = ("sm_80", "sm_90", "sm_100", "sm_120")
LADDER: Final = tuple(f"reduce_v{rung}" for rung in range(1, 8))


def ladder(rung: str, n: int, grid: int, architecture: str) -> SassCount:
    """Count a rung on n floats, on `grid` blocks if it is a persistent one."""
    blocks = grid if RUNGS[rung].persistent else max(-(-n // BLOCK), 1)
    arguments = (np.uint64(0), np.uint64(0), np.int32(n // RUNGS[rung].width))
    return count(Reduction(rung, block=BLOCK).kernel, blocks, BLOCK, arguments, architecture)


def published() -> dict[str, int]:
    """Return the seminar's column by rung, as printed; V1 has none."""
    rows = read(PUBLISHED).document["benchmarks"]
    found = {row["param"]: row["extra_info"].get("warp instructions") for row in rows}
    return {rung: int(printed) for rung, printed in found.items() if printed}


def table(n: int, grid: int) -> str:
    """Return the counts by rung and architecture, the published column beside."""
    printed = published()
    lines = [f"{'':10}" + "".join(f"{name:>13}" for name in (*ARCHITECTURES, "published"))]
    for rung in LADDER:
        counts = [ladder(rung, n, grid, architecture) for architecture in ARCHITECTURES]
        column = f"{printed[rung]:>13,}" if rung in printed else f"{'-':>13}"
        lines.append(f"{rung:10}" + "".join(f"{each.total:>13,}" for each in counts) + column)
    return "\n".join(lines)
