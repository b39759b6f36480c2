"""A library's product is checked like a kernel of our own, and says what is missing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness.devices import Routine
from harness.devices.emulator import EmulatedDevice
from harness.workloads import library
from harness.workloads.library import Gemm

DEVICE = EmulatedDevice()  # its memory is all that is needed


def product(a: Any, b: Any, out: Any) -> None:
    """Multiply as cuBLAS does: sums in fp32, the result in the type of the operands."""
    wide = a.values.astype(np.float32) @ b.values.astype(np.float32)
    out.values[:] = wide.astype(out.values.dtype).ravel()


def slightly_wrong(a: Any, b: Any, out: Any) -> None:
    """Forget the last of the products that make an element."""
    product(SimpleNamespace(values=a.values[:, :-1]), SimpleNamespace(values=b.values[:-1]), out)


def handle() -> int:
    return 1


def no_handle() -> int:
    raise ImportError("libcublas.so.13: cannot open shared object file")


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A CuPy that multiplies by NumPy."""
    cuda = SimpleNamespace(device=SimpleNamespace(get_cublas_handle=handle))
    fake = SimpleNamespace(dot=product, cuda=cuda)
    monkeypatch.setattr(library, "import_cupy", lambda: fake)
    return fake


@pytest.mark.parametrize("kind", ["fp16", "fp32"])
def test_a_right_product_passes_and_a_slightly_wrong_one_does_not(
    cupy: SimpleNamespace, kind: str
) -> None:
    """96 products an element, each about 1/3: one too few is found."""
    Gemm(kind, 96).prepare(DEVICE).check()
    cupy.dot = slightly_wrong
    with pytest.raises(AssertionError, match=f"cublas gemm {kind} n=96 is off by"):
        Gemm(kind, 96).prepare(DEVICE).check()


def test_an_output_left_alone_does_not_pass(cupy: SimpleNamespace) -> None:
    """The poison is NaN."""
    cupy.dot = lambda a, b, out: None
    with pytest.raises(AssertionError, match="is off by nan"):
        Gemm("fp32", 96).prepare(DEVICE).check()


def test_the_launch_is_a_routine_that_knows_its_work(cupy: SimpleNamespace) -> None:
    """2 n^3 FLOP over 3 n^2 elements."""
    launch = Gemm("fp16", 96).prepare(DEVICE)
    assert isinstance(launch.kernel, Routine)
    assert str(launch.kernel) == "cublas gemm fp16 n=96"
    assert (launch.flop, launch.bytes) == (2 * 96**3, 3 * 96**2 * 2)
    launch.on(DEVICE)


def test_a_missing_library_is_named(cupy: SimpleNamespace) -> None:
    """With what to install."""
    cupy.cuda.device.get_cublas_handle = no_handle
    with pytest.raises(ImportError, match=r"libcublas\.so\.13.*: install nvidia-cublas"):
        Gemm("fp32", 96).prepare(DEVICE)
