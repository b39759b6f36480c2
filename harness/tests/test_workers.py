"""Each xdist worker gets a GPU of the caller's list; nobody outside of it is touched."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from harness.pytest_workers import WORKER_BYTES, assign, most_workers
from harness.tests.rehearsal import ROOT, Run
from harness.visible import VARIABLE, known_gpus, visible_gpus

UUIDS = "GPU-5a6f,GPU-77b1"
MIG = "MIG-1c2d,MIG-9e8f,MIG-3b4a"


pytest_plugins = ["pytester"]


class NVMLError(Exception):
    pass


class FakeNVML(SimpleNamespace):
    """Two GPUs of 80 GiB; the second is cut into slices if `slices` says so."""

    NVMLError = NVMLError

    def __init__(self, slices: int = 0, memory: int | None = 80 << 30, broken: str = "") -> None:
        super().__init__(slices=slices, memory=memory, broken=broken)

    def nvmlInit(self) -> None:
        if self.broken == "init":
            raise NVMLError("Driver Not Loaded")

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        if self.broken == "handle" and index == 0:
            raise NVMLError("Insufficient Permissions")
        return f"GPU-{index}"

    def nvmlDeviceGetMigMode(self, gpu: str) -> list[int]:
        if not self.slices:
            raise NVMLError("Not Supported")
        return [int(gpu == "GPU-1")] * 2

    def nvmlDeviceGetMaxMigDeviceCount(self, gpu: str) -> int:
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, gpu: str, index: int) -> str:
        if index >= self.slices:
            raise NVMLError("Not Found")
        return f"MIG-{index}"

    def nvmlDeviceGetHandleByPciBusId(self, bus_id: str) -> str:
        return {"0000:19:00.0": "GPU-0", "0000:3b:00.0": "GPU-1"}[bus_id]

    def nvmlDeviceGetUUID(self, unit: str) -> str | bytes:
        return unit.encode() if unit == "GPU-0" else unit

    def nvmlDeviceGetMemoryInfo(self, unit: str) -> Any:
        if self.memory is None:
            raise NVMLError("Insufficient Permissions")
        return SimpleNamespace(total=self.memory)


@pytest.fixture(autouse=True)
def nvml(monkeypatch: pytest.MonkeyPatch) -> Any:
    def install(module: Any) -> None:
        monkeypatch.setitem(sys.modules, "pynvml", module)

    install(FakeNVML())
    return install


@pytest.mark.parametrize(
    ("listed", "workers", "given"),
    [
        ("1", 8, ["1"] * 8),
        ("2,3", 4, ["2", "3", "2", "3"]),
        (UUIDS, 3, ["GPU-5a6f", "GPU-77b1", "GPU-5a6f"]),
        (MIG, 2, ["MIG-1c2d", "MIG-9e8f"]),
        (" 0 , 1 ", 2, ["0", "1"]),
        ("0,-1,1", 2, ["0", "0"]),
        (None, 3, ["GPU-0", "GPU-1", "GPU-0"]),
    ],
)
def test_worker_ids_map_inside_the_callers_list(
    listed: str | None, workers: int, given: list[str]
) -> None:
    """Round and round; CUDA ends a list at -1, and so do we."""
    for number, expected in zip(range(workers), given, strict=True):
        environment = {} if listed is None else {VARIABLE: listed}
        assert assign(f"gw{number}", environment) == expected
        assert environment == {VARIABLE: expected}


@pytest.mark.parametrize("listed", ["", "-1", "NoDevFiles"])
def test_a_caller_who_hides_every_gpu_keeps_them_hidden(listed: str) -> None:
    """The list stays as it is."""
    environment = {VARIABLE: listed}
    assert assign("gw0", environment) is None
    assert environment == {VARIABLE: listed}


def test_without_workers_nothing_is_set() -> None:
    """A plain run, and the process that only distributes."""
    environment = {VARIABLE: "2,3"}
    assert assign(None, environment) is None
    assert environment == {VARIABLE: "2,3"}


def test_without_nvml_cuda_is_left_to_itself(nvml: Any) -> None:
    """No package, or no driver."""
    for missing in (None, FakeNVML(broken="init")):
        nvml(missing)
        environment: dict[str, str] = {}
        assert assign("gw1", environment) is None
        assert environment == {}


def test_a_gpu_that_is_sliced_is_known_by_its_slices(nvml: Any) -> None:
    """CUDA opens a slice, never the GPU around it."""
    nvml(FakeNVML(slices=2))
    assert [name for name, _ in known_gpus()] == ["GPU-0", "MIG-0", "MIG-1"]


def test_a_gpu_that_may_not_be_asked_is_left_out(nvml: Any) -> None:
    """The other one is still there."""
    nvml(FakeNVML(broken="handle"))
    assert visible_gpus({}) == ["GPU-1"]


@pytest.mark.parametrize(
    ("listed", "memory", "most"),
    [
        (None, 24 << 30, 12),
        ("0", 24 << 30, 6),
        ("GPU-1", 24 << 30, 6),
        (UUIDS, 80 << 30, 40),
        (None, WORKER_BYTES // 2, 2),
        (None, None, None),
        (None, 0, None),
        ("", 80 << 30, None),
    ],
)
def test_memory_caps_the_workers(
    nvml: Any, listed: str | None, memory: int | None, most: int | None
) -> None:
    """4 GiB each; memory that the driver does not tell, or tells as 0, caps nothing."""
    nvml(FakeNVML(memory=memory))
    assert most_workers({} if listed is None else {VARIABLE: listed}) == most


SUITE = """
import os

def test_which_gpu(worker_id, record_property):
    assert os.environ["CUDA_VISIBLE_DEVICES"] == {"gw0": "GPU-a", "gw1": "GPU-b"}[worker_id]

test_again = test_which_gpu
"""
FULL = """
from harness.devices.errors import OutOfMemory

def test_full():
    raise OutOfMemory("allocating 8 elements")
"""


def test_two_workers_see_one_gpu_each(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In real workers, before the first test."""
    monkeypatch.setenv(VARIABLE, "GPU-a,GPU-b")
    result = apart(pytester, monkeypatch, SUITE, "-n2", "--dist=each")
    result.assert_outcomes(passed=4)


TWO = """
import os
from harness.devices import opening
from harness.tests.fakes import FakeGPU

BUSES = {"GPU-0": "0000:19:00.0", "GPU-1": "0000:3b:00.0"}

def open_device(wanted):
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    gpu = FakeGPU()
    gpu.bus_id = BUSES[first if first in BUSES else f"GPU-{first}"]
    return gpu

opening.open_device = open_device
"""
NVML = """
from harness.tests.test_workers import FakeNVML, NVMLError

globals().update({name: getattr(FakeNVML(), name) for name in dir(FakeNVML) if "nvml" in name})
"""


@pytest.mark.parametrize("listed", [None, "0,1", "GPU-0,GPU-1"])
def test_a_parallel_run_says_which_worker_had_which_gpu(
    run: Run, monkeypatch: pytest.MonkeyPatch, listed: str | None
) -> None:
    """As opened, not as asked: with the real conftest, a required GPU, and every test on both."""
    pytest.importorskip("xdist")
    run.pytester.makepyfile(two_gpus=TWO, pynvml=NVML)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{run.pytester.path}")
    monkeypatch.delenv(VARIABLE, raising=False)
    if listed:
        monkeypatch.setenv(VARIABLE, listed)
    options = ("-p", "two_gpus", "-p", "no:cacheprovider", "--gpu=require")
    result = run.pytester.runpytest_subprocess(*options, "-n2", "--dist=each")
    result.assert_outcomes(passed=2)
    asked = (listed or "GPU-0,GPU-1").split(",")
    for number, bus in enumerate(("0000:19:00.0", "0000:3b:00.0")):
        gpu = f"GPU-{number} at {bus} ({VARIABLE}={asked[number]}): gw{number}"
        assert gpu in result.outlines
    assert "device: NVIDIA H200 (sm_90, 132 SMs), GPU-0 at 0000:19:00.0" in result.stdout.str()


def test_memory_that_is_out_skips_in_a_worker_and_fails_alone(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others hold the memory only where there are others."""
    apart(pytester, monkeypatch, FULL, "-n1").assert_outcomes(skipped=1)
    apart(pytester, monkeypatch, FULL).assert_outcomes(failed=1)


def apart(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, suite: str, *options: str
) -> pytest.RunResult:
    pytest.importorskip("xdist")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    pytester.makeini("[pytest]\naddopts = -p no:cacheprovider")
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(suite)
    return pytester.runpytest_subprocess(*options)


CONFTEST = """
pytest_plugins = ("harness.pytest_workers",)

def pytest_addoption(parser):
    parser.addoption("--gpu", default="auto")
"""
