"""The GPU device over a CuPy that is none."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from harness.devices import cuda
from harness.devices.cuda import CudaDevice
from harness.tests.fake_cuda import CUDADriverError, FakeArray, FakeModule, FakeRuntime


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
