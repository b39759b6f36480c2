"""A write outside an array is reported: which array, which side, the kernel that had it last."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from harness.devices.cuda import CudaDevice
from harness.devices.guarded import OutOfBounds
from harness.tests.fake_cuda import FakeRuntime
from kernels import kernel

COPY = kernel("coalescing", "copy_offset")


def written(array: Any, offset: int) -> None:
    ctypes.memset(array.__cuda_array_interface__["data"][0] + offset, 0, 1)


@pytest.mark.parametrize(
    ("offset", "message"),
    [
        (-1, r"byte -1 before float32\[64\] at 0x"),
        (-512, r"byte -512 before float32"),
        (256, r"byte \+1 after float32\[64\] at 0x.*argument 'x' of copy_offset\) was written"),
        (767, r"byte \+512 after float32"),
    ],
)
def test_a_write_outside_an_array_names_it_and_the_side(
    device: CudaDevice, offset: int, message: str
) -> None:
    """256 bytes between two guards of 512."""
    x, y = device.empty(64, "f4"), device.empty(32, "f4")
    device.launch(COPY, 1, 32, x, y, 0)
    device.verify_canaries()
    written(x, offset)
    with pytest.raises(OutOfBounds, match=message):
        device.verify_canaries()


@pytest.mark.parametrize(("values", "size"), [(1, 1), (3, 3), (3, 4), (5, 32), (8, 3), (2, 0)])
def test_values_repeat_up_to_the_size(device: CudaDevice, values: int, size: int) -> None:
    """Doubled on the device; the last copy is as long as what is left."""
    array = device.repeat(np.arange(values, dtype="i4"), size)
    address = array.__cuda_array_interface__["data"][0]
    found = np.frombuffer(ctypes.string_at(address, 4 * size), "i4")
    np.testing.assert_array_equal(found, np.resize(np.arange(values), size))
    device.verify_canaries()


def test_nothing_cannot_be_repeated(device: CudaDevice) -> None:
    with pytest.raises(ValueError, match="nothing to repeat: 5 elements of an empty array"):
        device.repeat(np.zeros(0, "f4"), 5)


def test_a_write_inside_an_array_is_none_outside(device: CudaDevice) -> None:
    x, nothing = device.put(np.ones((4, 16), "f4")), device.empty(0, "f4")
    written(x, 0)
    written(x, 255)
    device.verify_canaries()
    written(nothing, 0)
    with pytest.raises(OutOfBounds, match=r"byte \+1 after float32\[0\] at 0x[0-9a-f]+ was"):
        device.verify_canaries()


def test_a_write_beside_an_array_that_is_gone_is_reported_once(device: CudaDevice) -> None:
    """A check allocates its outputs, and gives them up before anybody looks."""
    x = device.empty(64, "f4")
    written(x, 256)
    del x
    with pytest.raises(OutOfBounds, match=r"byte \+1 after float32\[64\]"):
        device.verify_canaries()
    device.verify_canaries()


def test_memory_given_up_after_the_context_died_is_no_second_error(
    device: CudaDevice, runtime: FakeRuntime
) -> None:
    x = device.empty(64, "f4")
    runtime.broken = "cudaErrorIllegalAddress"
    del x  # an error in a finalizer would be printed, and is an error of this run
