"""A sum in Triton: programs as many as the GPU holds walk the array, then one adds their sums.

Triton compiles a function from its source file, so it stands in a file of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
import triton
import triton.language as tl

TILE: Final = 8192  # elements of a program and trip; the fastest of 4096, 8192, 16384 on an H200
WARPS: Final = 8
RESIDENT_WARPS: Final = 64  # of an SM


# Triton reads annotations as types of its own, so the arguments have none but those.
@triton.jit  # type: ignore[untyped-decorator]
def sum_tiles(x, sums, n, programs: tl.constexpr, tile: tl.constexpr):  # type: ignore[no-untyped-def]
    """Add every `programs`-th tile of x, element by element, then across the tile."""
    program = tl.program_id(0)
    running = tl.zeros((tile,), tl.float32)
    for start in range(program.to(tl.int64) * tile, n, programs * tile):
        at = start + tl.arange(0, tile)
        running += tl.load(x + at, mask=at < n, other=0.0)
    tl.store(sums + program, tl.sum(running))


@triton.jit  # type: ignore[untyped-decorator]
def sum_sums(sums, out, count, tile: tl.constexpr):  # type: ignore[no-untyped-def]
    """Add the programs' sums."""
    at = tl.arange(0, tile)
    tl.store(out, tl.sum(tl.load(sums + at, mask=at < count, other=0.0)))


def prepare(x: Any) -> Callable[[], Any]:
    """Return the call that queues the sum of x, which is float32 on the GPU."""
    tensor = torch.as_tensor(x, device="cuda")
    n, out = tensor.numel(), torch.empty(1, device="cuda")
    processors = torch.cuda.get_device_properties(0).multi_processor_count
    programs = min(triton.cdiv(n, TILE), processors * RESIDENT_WARPS // WARPS)
    sums = torch.empty(programs, device="cuda") if programs > 1 else out

    def call() -> Any:
        sum_tiles[(programs,)](tensor, sums, n, programs, TILE, num_warps=WARPS)
        if programs > 1:
            sum_sums[(1,)](sums, out, programs, triton.next_power_of_2(programs), num_warps=WARPS)
        return out

    return call
