"""Two instruments on one compilation: machine instructions against what the PTX interpreter sees.

A machine instruction that is predicated off is issued and moves nothing, so it is a load here and
no request there; those are counted apart and taken off.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.devices.arguments import POINTERS
from harness.devices.emulator import Counters, EmulatedDevice, SassCount
from harness.devices.emulator.sass.tests.launches import ARCHITECTURES, CASES, ROWS
from harness.workloads.reduction import VARIANTS
from kernels import Kernel, kernel, parameters

ELEMENTS: Final = 1 << 16  # what every array has, as many as the largest launch touches
WATCHED: Final = ("LDG", "STG", "RED", "REDG", "ATOMG", "SHFL", "BAR")


@dataclass(frozen=True)
class Small:
    """A launch for both: scalars by the name of their parameter, 0 if not named."""

    kernel: Kernel
    grid: int
    block: int
    scalars: tuple[tuple[str, int], ...] = ()

    def arguments(self, device: EmulatedDevice) -> list[Any]:
        """Arrays of zeros, and the scalars."""
        scalars = dict(self.scalars)
        plain = {"float": np.float32(1), "double": np.float64(1)}
        return [
            device.put(np.zeros(ELEMENTS, _dtype(each.type)))
            if each.type.endswith("*")
            else plain.get(each.type, scalars.get(each.name, 0))
            for each in parameters(self.kernel)
        ]


def _dtype(type_: str) -> str:
    base = type_.removesuffix("*").strip()
    return {"unsigned short": "u2", "unsigned char": "u1"}.get(
        base, POINTERS.get(base, ("f4", 1))[0]
    )


def small(
    entry: st.SearchStrategy[Kernel], grid: int, blocks: st.SearchStrategy[int], **scalars: Any
) -> st.SearchStrategy[Small]:
    """Draw launches of some kernels with up to `grid` blocks."""
    named = st.fixed_dictionaries(scalars).map(lambda drawn: tuple(drawn.items()))
    return st.builds(Small, entry, st.integers(1, grid), blocks, named)


def fitted(entry: Kernel, grid: int, **scalars: Any) -> st.SearchStrategy[Small]:
    """Draw launches of a kernel that was compiled for its block."""
    return small(st.just(entry), grid, st.just(dict(entry.defines)["BLOCK"]), **scalars)


def any_of(source: str, *names: str, **defines: int) -> st.SearchStrategy[Kernel]:
    """Draw one of some kernels of a source."""
    return st.sampled_from([kernel(source, name, **defines) for name in names])


ANY_BLOCK: Final = st.integers(1, 256)
WARPS: Final = st.integers(1, 8).map(lambda warps: 32 * warps)
N: Final = st.integers(0, 4096)
FAMILIES: Final = (
    *(
        fitted(replace(variant, block=block).kernel, 12, n=N, n4=N)
        for variant in VARIANTS
        for block in (64, 256)
    ),
    small(any_of("coalescing", "update_aos", "update_soa"), 8, ANY_BLOCK),
    small(
        any_of("coalescing", "copy_offset", "copy_strided"), 8, ANY_BLOCK,
        offset=st.integers(0, 64), stride=st.integers(0, 16),
    ),
    small(any_of("axpy", "axpy_fp16", "axpy_fp32", "axpy_fp64"), 9, ANY_BLOCK, n=N),
    small(any_of("vector", "saxpy_naive", "saxpy_vectorized"), 9, ANY_BLOCK, n=N),
    *(
        fitted(kernel("little", "read", BLOCK=256, UNROLL=loads), 3, trips=st.integers(0, 5))
        for loads in (1, 8)
    ),
    small(any_of("unroll", "naive", "compile_time_offset", TURNS=3), 4, ANY_BLOCK),
    small(any_of("banks", "read_strided", WIDTH=4), 4, ANY_BLOCK, stride=st.integers(0, 64),
          trips=st.integers(0, 3)),
    small(any_of("banks", "transpose", PAD=1), 16, st.just(256), n=st.just(128)),
    small(any_of("shuffle", "shuffle_xor", "shuffle_down"), 3, WARPS, width=st.just(16)),
    small(any_of("occupancy", "hold", SHARED=4096, VALUES=8), 3, WARPS),
    small(any_of("divergence", "nested_loops", "break_continue", "early_return", "uneven_stride"),
          4, ANY_BLOCK, n=N),
    *(fitted(kernel("roofline", name, **row), 4) for row in ROWS for name in ("relu", "dot")),
)  # fmt: skip


def requests(counters: Counters) -> dict[str, int]:
    """What the PTX interpreter saw, under the names of the machine code."""
    return {
        "LDG": counters.traffic("ld", "global").requests,
        "STG": counters.traffic("st", "global").requests,
        "RED": counters.traffic("atom", "global").requests,
        "BAR": counters.issued("bar"),
        "SHFL": counters.issued("shfl"),
    }


def issued(count: SassCount) -> dict[str, int]:
    """What a lane took part in; RED, REDG and ATOMG are one thing in PTX."""
    done = {name: count.by_opcode.get(name, 0) - count.idle.get(name, 0) for name in WATCHED}
    done["RED"] += done.pop("REDG") + done.pop("ATOMG")
    return done


@settings(max_examples=CASES)
@given(st.one_of(*FAMILIES), st.sampled_from(ARCHITECTURES))
def test_machine_code_and_ptx_ask_the_memory_for_the_same(launch: Small, architecture: str) -> None:
    """Loads, stores, atomics, barriers and shuffles, by warp."""
    device = EmulatedDevice(architecture)
    given_ = (launch.kernel, launch.grid, launch.block, *launch.arguments(device))
    counters = device.count(lambda: device.launch(*given_))
    assert issued(device.count_sass(*given_, idle=WATCHED)) == requests(counters)
