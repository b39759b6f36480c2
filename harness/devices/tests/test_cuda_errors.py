"""A CUDA error of one call names the launch; one that stays ends the session."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness.devices import cuda
from harness.devices.cuda import CudaDevice, DeadContext, OutOfMemory, Refused
from harness.devices.guarded import OutOfBounds
from kernels import kernel

COPY = kernel("coalescing", "copy_offset")


class CUDARuntimeError(RuntimeError):
    pass


class CUDADriverError(RuntimeError):
    pass


class FakePointer:
    def __init__(self, ptr: int, memory: Any) -> None:
        self.ptr, self.memory = ptr, memory

    def __add__(self, offset: int) -> FakePointer:
        return FakePointer(self.ptr + offset, self.memory)


class FakeArray:
    def __init__(self, shape: Any, dtype: Any, memptr: FakePointer) -> None:
        self.dtype = np.dtype(dtype)
        self.shape = shape if isinstance(shape, tuple) else (shape,)
        self.nbytes = int(np.prod(self.shape)) * self.dtype.itemsize
        self.__cuda_array_interface__ = {
            "data": (memptr.ptr, False),
            "shape": self.shape,
            "typestr": self.dtype.str,
        }
        self.memptr = memptr


class FakeRuntime:
    """An H200's numbers, its memory the host's; `broken` is the error that stays."""

    CUDARuntimeError = CUDARuntimeError
    memcpyHostToDevice, memcpyDeviceToHost, memcpyDeviceToDevice = 1, 2, 3

    def __init__(self) -> None:
        self.broken = ""
        self.fills: list[int] = []
        self.limits: dict[int, int] = {}
        self.free = 1 << 40

    def alloc(self, size: int) -> FakePointer:
        if size > self.free:
            raise MemoryError("Out of memory allocating 4,096 bytes")
        memory = np.zeros(size, np.uint8)
        return FakePointer(memory.ctypes.data, memory)

    def memcpy(self, target: int, source: int, size: int, kind: int) -> None:
        self.deviceSynchronize()
        ctypes.memmove(target, source, size)

    def deviceSetLimit(self, limit: int, value: int) -> None:
        self.limits[limit] = value

    def getDeviceProperties(self, index: int) -> dict[str, Any]:
        numbers = {"major": 9, "minor": 0, "multiProcessorCount": 132, "l2CacheSize": 16 << 10}
        limits = {"maxThreadsPerBlock": 1024, "sharedMemPerBlockOptin": 232_448}
        return {"name": b"NVIDIA H200", **numbers, **limits}

    def deviceGetPCIBusId(self, index: int) -> str:
        return "0000:00:06.0"

    def deviceGetAttribute(self, attribute: int, index: int) -> int:
        return {36: 3_201_000, 37: 6016}[attribute]

    def driverGetVersion(self) -> int:
        return 13000

    def memsetAsync(self, pointer: int, byte: int, size: int, stream: int) -> None:
        self.deviceSynchronize()
        self.fills.append(byte)
        ctypes.memset(pointer, byte, size)

    def deviceSynchronize(self) -> None:
        if self.broken:
            raise CUDARuntimeError(self.broken)


class FakeModule:
    """Launches nothing; refuses what the driver refuses."""

    def __init__(self, runtime: FakeRuntime) -> None:
        self.runtime = runtime

    def get_function(self, name: str) -> Any:
        return self

    def __call__(self, grid: Any, block: Any, arguments: Any, shared: int = 0) -> None:
        if self.runtime.broken:
            raise CUDADriverError(self.runtime.broken)
        if block[0] > 1024:
            raise CUDADriverError("CUDA_ERROR_INVALID_VALUE: invalid argument")


@pytest.fixture
def runtime() -> FakeRuntime:
    return FakeRuntime()


@pytest.fixture
def device(runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch) -> CudaDevice:
    driver = SimpleNamespace(
        CUDADriverError=CUDADriverError, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=8
    )
    events = SimpleNamespace(Event=lambda: None, get_elapsed_time=None)
    fake = SimpleNamespace(
        cuda=SimpleNamespace(runtime=runtime, driver=driver, alloc=runtime.alloc, **vars(events)),
        ndarray=FakeArray,
        asnumpy=lambda array: runtime.deviceSynchronize(),
    )
    monkeypatch.setattr(cuda, "open_cupy", lambda: fake)
    monkeypatch.setattr(cuda, "_load", lambda binary: FakeModule(runtime))
    return CudaDevice()


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


def test_a_write_inside_an_array_is_none_outside(device: CudaDevice) -> None:
    x, nothing = device.put(np.ones((4, 16), "f4")), device.empty(0, "f4")
    written(x, 0)
    written(x, 255)
    device.verify_canaries()
    written(nothing, 0)
    with pytest.raises(OutOfBounds, match=r"byte \+1 after float32\[0\] at 0x[0-9a-f]+ was"):
        device.verify_canaries()


def test_what_is_gone_is_not_looked_at(device: CudaDevice) -> None:
    x = device.empty(64, "f4")
    memory = x.memptr.memory  # type: ignore[attr-defined]
    written(x, -1)
    del x
    device.verify_canaries()
    assert memory is not None
