"""The sum as the libraries have it: what `reduce_sum` is held against, in the same run.

Each is called as its documentation says, its scratch memory and compilation done beforehand. It
takes as long as all kernels, copies and fills that it queues.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import numpy as np

from harness.devices import Device, Launch, Routine
from harness.workloads.limit import ELEMENTS, whole_numbers

Call = Callable[[], Any]  # queues the sum, returns where it will be


def _cupy(x: Any) -> Call:
    """CuPy's sum: CUB's kernels, built into CuPy."""
    cupy = import_module("cupy")
    return lambda: cupy.sum(x)


def _torch(x: Any) -> Call:
    """PyTorch's own reduction."""
    torch = import_module("torch")
    tensor = torch.as_tensor(x, device="cuda")
    return lambda: torch.sum(tensor)


def _cub(determinism: str) -> Callable[[Any], Call]:
    """CUB of cuda-cccl: by default two kernels, with any order of addition one with atomics."""

    def prepare(x: Any) -> Call:
        cupy, compute = import_module("cupy"), import_module("cuda.compute")
        chosen = import_module("cuda.compute.determinism").Determinism[determinism]
        out, start = cupy.empty(1, x.dtype), np.zeros(1, x.dtype)
        fixed = {"d_out": out, "op": compute.OpKind.PLUS, "h_init": start}
        reduce = compute.make_reduce_into(d_in=x, determinism=chosen, **fixed)
        fixed |= {"d_in": x, "num_items": x.size}
        scratch = cupy.empty(max(1, reduce(temp_storage=None, **fixed)), np.uint8)

        def call() -> Any:
            reduce(temp_storage=scratch, **fixed)
            return out

        return call

    return prepare


def _triton(x: Any) -> Call:
    """A reduction in Triton, two kernels of one program a tile, each summed by tl.sum."""
    return import_module("harness.workloads.peer_triton").prepare(x)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Library:
    """What has to be installed, and how a sum is prepared."""

    module: str
    prepare: Callable[[Any], Call]


LIBRARIES: Final = {
    "cupy.sum": Library("cupy", _cupy),
    "torch.sum": Library("torch", _torch),
    "CUB": Library("cuda.compute", _cub("RUN_TO_RUN")),
    "CUB in any order": Library("cuda.compute", _cub("NOT_GUARANTEED")),
    "Triton": Library("triton", _triton),
}


@cache
def missing(library: str) -> str:
    """Return why a library cannot be used here, "" if it can."""
    module = LIBRARIES[library].module
    try:
        if find_spec(module) is None:
            return f"{module} is not installed"
        import_module(module)
    except Exception as error:  # a library that is there and does not load says so in its own way
        return f"{module} cannot be loaded ({error})"
    return ""


@dataclass(frozen=True)
class Peer:
    """The sum of n float32 by a library; a Workload."""

    library: str
    n: int

    @property
    def name(self) -> str:
        """The library, then type and size."""
        return f"{self.library} float32 n={self.n}"

    def prepare(self, device: Device) -> Launch:
        """Return the routine on the numbers that `Sum` adds; it needs a GPU and the library."""
        x, total = whole_numbers(device, "float32", self.n)
        call = LIBRARIES[self.library].prepare(x)

        def check() -> None:
            found = float(call().item())
            assert found == total, f"{self.name} gives {found}; the sum is exactly {total}"

        size = self.n * ELEMENTS["float32"].stored.itemsize
        return Launch(Routine(self.name, call), 0, 0, (), size, check)
