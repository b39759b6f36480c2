"""Kernels and launches that the tests share."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from harness.draws import DIVERGENT
from harness.workloads.reduction import VARIANTS
from kernels import Kernel, kernel, parameters

# Of a property over code that must be compiled first: 1,000 with --hypothesis-profile=fuzz.
CASES: Final = 1000 if settings().max_examples >= 500 else 20
ARCHITECTURES: Final = ("sm_80", "sm_90", "sm_100", "sm_120")
BLOCKS: Final = (32, 64, 128, 256, 512, 1024)
BRANCHES: Final = str(Path(__file__).with_name("branches"))

ROWS: Final = ({"ROW": 1024, "BLOCK": 128},)

# Every kernel of kernels/*.cu that a launch alone decides, with a size that it was made for.
COUNTED: Final = (
    *(variant.kernel for variant in VARIANTS),
    *(kernel("reduce_ladder", "atomic_alone", BLOCK=256, **d) for d in ({}, {"SPREAD": 1})),
    *(kernel("coalescing", f"update_{layout}") for layout in ("aos", "soa")),
    *(kernel("coalescing", f"copy_{pattern}") for pattern in ("offset", "strided", "permuted")),
    *(kernel("axpy", f"axpy_{type_}") for type_ in ("fp16", "fp32", "fp64")),
    *(kernel("vector", f"saxpy_{form}") for form in ("naive", "vectorized")),
    *(kernel("little", "read", BLOCK=256, UNROLL=loads) for loads in (1, 8)),
    kernel("little", "chase", BLOCK=256, UNROLL=1),
    *(kernel("banks", name, WIDTH=w) for w in (4, 16) for name in ("gather_bytes", "read_strided")),
    *(kernel("banks", "transpose", PAD=pad) for pad in (0, 1)),
    *(kernel("occupancy", "hold", SHARED=4096, VALUES=values) for values in (1, 64)),
    *(kernel("shuffle", f"shuffle_{form}") for form in ("from", "up", "down", "xor")),
    *(
        kernel("unroll", name, TURNS=16)
        for name in ("naive", "run_time_stride", "compile_time_offset")
    ),
    kernel("roofline", "fma_chain", FMAS=8),
    *(launch.kernel for launch in DIVERGENT),
    *(kernel("roofline", name, **row) for row in ROWS for name in ("relu", "dot", "gemv")),
    *(kernel("reduce_limit", name, BLOCK=128, LOADS=4) for name in ("reduce_v8", "reduce_warp")),
)
# Kernels with a branch that data decide: a reciprocal or a root has a slow path, a block waits.
REFUSED: Final = (
    *(kernel("roofline", name, **row) for row in ROWS for name in ("softmax", "layer_norm")),
    *(kernel("reduce_limit", name, BLOCK=128, LOADS=4) for name in ("reduce_v9", "reduce_tile")),
)
# Bulk copies are of no architecture before sm_90, and their instructions in no table.
BULK: Final = kernel("reduce_limit", "reduce_v10", BLOCK=128, STAGES=2, CHUNK=4096)


def branching(name: str) -> Kernel:
    """A kernel of branches.cu."""
    return Kernel(BRANCHES, name)


def arguments(entry: Kernel, n: int) -> list[Any]:
    """Arguments for a count: no address matters, every integer is n."""
    scalars = {"float": np.float32(1.5), "double": np.float64(1.5)}
    return [
        0 if each.type.endswith("*") else scalars.get(each.type, n) for each in parameters(entry)
    ]


def block_of(entry: Kernel, block: int) -> int:
    """The block a kernel was compiled for, if it was."""
    return dict(entry.defines).get("BLOCK", block)


def ladder() -> st.SearchStrategy[Kernel]:
    """Draw a rung, a counterfactual and a block."""
    return st.builds(
        lambda variant, block: replace(variant, block=block).kernel,
        st.sampled_from(VARIANTS),
        st.sampled_from(BLOCKS),
    )
