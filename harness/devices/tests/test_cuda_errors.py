"""A CUDA error of one call names the launch; one that stays ends the session."""

from __future__ import annotations

import numpy as np
import pytest

from harness.devices.cuda import CudaDevice, DeadContext, OutOfMemory, Refused
from harness.tests.fake_cuda import FakeRuntime
from kernels import kernel

COPY = kernel("coalescing", "copy_offset")


def test_the_device_says_what_it_is(device: CudaDevice) -> None:
    assert (device.name, device.architecture, device.multiprocessors) == (
        "NVIDIA H200",
        "sm_90",
        132,
    )
    assert device.peak_bandwidth == 3_201_000_000 * 2 * 6016 / 8
    assert device.clock == "events"
    assert "CUPTI" in device.clock_reason


@pytest.mark.parametrize(
    ("dtype", "byte"), [("f2", 0xFF), ("f4", 0xFF), ("f8", 0xFF), ("i4", 0xA5)]
)
def test_new_memory_is_poisoned(
    device: CudaDevice, runtime: FakeRuntime, dtype: str, byte: int
) -> None:
    device.empty(8, dtype)
    assert runtime.fills[-1] == byte
    assert np.isnan(np.frombuffer(b"\xff" * 8, "f4")).all()


def launch(device: CudaDevice, grid: int = 1, block: int = 32) -> None:
    x, y = device.empty(64, "f4"), device.empty(32, "f4")
    device.launch(COPY, grid, block, x, y, 0)


def test_a_block_too_large_names_the_launch_and_the_limit(device: CudaDevice) -> None:
    message = (
        r"copy_offset on 1 x 2048 threads, 0 bytes of dynamic shared memory: "
        r"CUDA_ERROR_INVALID_VALUE: .*; a block of this GPU has at most 1024 threads"
    )
    with pytest.raises(Refused, match=message):
        launch(device, block=2048)
    launch(device)  # the context lives on


@pytest.mark.parametrize(("grid", "block"), [(0, 32), (1, 0)])
def test_an_empty_launch_is_refused(device: CudaDevice, grid: int, block: int) -> None:
    with pytest.raises(Refused, match="at least one block of one thread"):
        launch(device, grid, block)


def test_an_error_that_stays_names_the_last_launch_and_ends_the_session(
    device: CudaDevice, runtime: FakeRuntime
) -> None:
    out = device.empty(4, "f4")
    launch(device)
    runtime.broken = "cudaErrorIllegalAddress: an illegal memory access was encountered"
    message = (
        r"context is dead \(cudaErrorIllegalAddress.*the last launch was copy_offset on 1 x 32"
    )
    with pytest.raises(DeadContext, match=message):
        device.get(out)


def test_after_that_everything_fails_at_once(device: CudaDevice, runtime: FakeRuntime) -> None:
    x, y = device.empty(64, "f4"), device.empty(32, "f4")
    runtime.broken = "cudaErrorIllegalAddress"
    with pytest.raises(DeadContext):
        device.launch(COPY, 1, 32, x, y, 0)
    runtime.broken = ""  # what CUDA answers now no longer counts
    with pytest.raises(DeadContext, match="end this session"):
        device.launch(COPY, 1, 32, x, y, 0)
    with pytest.raises(DeadContext):
        device.empty(1, "f4")


def test_memory_that_is_out_is_no_wrong_kernel(device: CudaDevice, runtime: FakeRuntime) -> None:
    runtime.free = 0
    with pytest.raises(OutOfMemory, match=r"allocating 8 elements of float32: .*fewer processes"):
        device.empty(8, "f4")


def test_nothing_of_l2_is_set_aside(device: CudaDevice, runtime: FakeRuntime) -> None:
    assert device.multiprocessors == 132
    assert runtime.limits == {6: 0}
