"""What the GPU device asks of CuPy, on the host's memory: it copies and fills, and runs nothing."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np


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
        self._memory = memptr


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

    def memcpyAsync(self, target: int, source: int, size: int, kind: int, stream: int) -> None:
        self.memcpy(target, source, size, kind)

    def deviceSetLimit(self, limit: int, value: int) -> None:
        self.limits[limit] = value

    def getDeviceProperties(self, index: int) -> dict[str, Any]:
        numbers = {"major": 9, "minor": 0, "multiProcessorCount": 132, "l2CacheSize": 16 << 10}
        limits = {"maxThreadsPerBlock": 1024, "sharedMemPerBlockOptin": 232_448}
        return {"name": b"NVIDIA H200", "totalGlobalMem": 150 << 30, **numbers, **limits}

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
