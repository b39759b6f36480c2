"""Each way to have no GPU is told apart, and a failure is none of them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from harness.devices import NoGPU, driver
from harness.devices.driver import Unusable, open_cupy, probe_compiler
from kernels import CompilerMissing


class CUDARuntimeError(RuntimeError):
    def __init__(self, status: int) -> None:
        super().__init__(f"cudaError {status}")
        self.status = status


class FakeRuntime:
    """Counts no devices and fails with `status`; versions as CUDA gives them, 13020 for 13.2."""

    CUDARuntimeError = CUDARuntimeError

    def __init__(self, status: int, driver: int = 13000) -> None:
        self.status, self.driver = status, driver

    def getDeviceCount(self) -> int:
        if not self.status:
            return 0
        raise CUDARuntimeError(self.status)

    def driverGetVersion(self) -> int:
        return self.driver

    def runtimeGetVersion(self) -> int:
        return 13020


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Any:
    def install(status: int, **versions: int) -> None:
        cuda = SimpleNamespace(runtime=FakeRuntime(status, **versions))
        monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda))

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return install


def test_no_driver(runtime: Any) -> None:
    runtime(35, driver=0)
    with pytest.raises(NoGPU, match=r"no NVIDIA driver is loaded: install one, until nvidia-smi"):
        open_cupy()


def test_the_toolkits_stub_library_is_no_driver(runtime: Any) -> None:
    runtime(34)
    with pytest.raises(NoGPU, match="no NVIDIA driver is loaded"):
        open_cupy()


def test_a_driver_too_old_for_cupy_names_both_versions_and_the_wheel(runtime: Any) -> None:
    runtime(35, driver=12020)
    message = (
        r"the driver supports CUDA 12\.2, CuPy was built for 13\.2: "
        r"install cupy-cuda12x in place of this CuPy, or update the driver"
    )
    with pytest.raises(NoGPU, match=message):
        open_cupy()


def test_an_environment_variable_that_hides_every_gpu_is_named(
    runtime: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime(100)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(NoGPU, match="CUDA_VISIBLE_DEVICES='' hides every GPU: unset it"):
        open_cupy()


def test_a_driver_without_a_gpu(runtime: Any) -> None:
    runtime(100)
    with pytest.raises(NoGPU, match=r"the driver sees no GPU: check nvidia-smi; a container"):
        open_cupy()


@pytest.mark.parametrize("status", [2, 46, 700, 802])
def test_any_other_error_is_a_failure_not_an_absence(runtime: Any, status: int) -> None:
    """Out of memory, in use by another process, illegal address, fabric not ready."""
    runtime(status)
    with pytest.raises(Unusable, match=f"CUDA error {status} .*--gpu=emulate") as failed:
        open_cupy()
    assert isinstance(failed.value.__cause__, CUDARuntimeError)


@pytest.mark.parametrize(
    ("status", "remedy"),
    [(46, "exclusive mode"), (802, "fabricmanager"), (803, "two versions: reboot"), (999, "dmesg")],
)
def test_a_broken_driver_is_named_with_its_remedy(runtime: Any, status: int, remedy: str) -> None:
    runtime(status)
    with pytest.raises(Unusable, match=remedy):
        open_cupy()


def test_no_device_counted_is_no_gpu(runtime: Any) -> None:
    """Success, and a count of zero."""
    runtime(0)
    with pytest.raises(NoGPU, match="the driver sees no GPU"):
        open_cupy()


@pytest.mark.parametrize("use", [open_cupy, lambda: probe_compiler("sm_80")], ids=["gpu", "probe"])
def test_a_cache_that_cannot_be_written_is_named(
    monkeypatch: pytest.MonkeyPatch, use: Callable[[], object]
) -> None:
    """Not a missing compiler."""
    denied = PermissionError(13, "Permission denied", "/opt/cache")
    missing = CompilerMissing("install it")
    missing.__cause__ = denied
    monkeypatch.setattr(driver, "import_cupy", Mock(side_effect=denied))
    monkeypatch.setattr(driver, "compile_source", Mock(side_effect=missing))
    monkeypatch.setenv("CUPY_CACHE_DIR", "/opt/cache")
    with pytest.raises(Unusable, match="CUPY_CACHE_DIR='/opt/cache' cannot be written"):
        use()


def test_a_missing_compiler_stays_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text of what to install is the compiler's own."""
    monkeypatch.setattr(driver, "compile_source", Mock(side_effect=CompilerMissing("install it")))
    with pytest.raises(CompilerMissing, match="install it"):
        probe_compiler("sm_80")


def test_no_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(NoGPU, match=r"CuPy cannot be imported .*cupy-cuda13x or cupy-cuda12x"):
        open_cupy()


OPEN = """
from harness.devices import NoGPU
from harness.devices.driver import open_cupy
try:
    open_cupy()
except NoGPU:
    pass
"""


def test_a_home_that_cannot_be_written_is_no_obstacle() -> None:
    environment = {k: v for k, v in os.environ.items() if k != "CUPY_CACHE_DIR"}
    root = Path(__file__).parents[3]
    environment |= {"HOME": "/proc/none"}
    subprocess.run([sys.executable, "-c", OPEN], cwd=root, env=environment, check=True, timeout=60)
