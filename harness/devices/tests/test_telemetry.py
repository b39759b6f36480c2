"""Telemetry never stops a measurement: a field that cannot be read is None."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from harness.devices import telemetry


class NVMLError(Exception):
    pass


def unsupported(*_: Any) -> Any:
    raise NVMLError("Not Supported")


def processes(*ids: int, busy: int = 0) -> list[Any]:
    return [SimpleNamespace(pid=each, smUtil=busy) for each in ids]


SUPPORTED: dict[str, Any] = {
    "nvmlInit": lambda: None,
    "nvmlDeviceGetHandleByIndex": lambda index: f"gpu {index}",
    "nvmlDeviceGetHandleByPciBusId": lambda bus: f"gpu at {bus}",
    "nvmlDeviceGetClockInfo": lambda gpu, domain: {1: 1980, 2: 3201}[domain],
    "nvmlDeviceGetMaxClockInfo": lambda gpu, domain: {1: 1980, 2: 3201}[domain],
    "nvmlDeviceGetPowerUsage": lambda gpu: 257_279,
    "nvmlDeviceGetEnforcedPowerLimit": lambda gpu: 700_000,
    "nvmlDeviceGetTemperature": lambda gpu, sensor: 37,
    "nvmlDeviceGetEccMode": lambda gpu: [1, 1],
    "nvmlDeviceGetCurrentClocksEventReasons": lambda gpu: 0x4,
    "nvmlSystemGetDriverVersion": lambda: "580.159.04",
    "nvmlDeviceGetMigMode": lambda gpu: [0, 0],
    "nvmlDeviceGetComputeRunningProcesses": lambda gpu: processes(os.getpid()),
    "nvmlDeviceGetProcessUtilization": lambda gpu, since: [],
}
CONSTANTS: dict[str, Any] = {
    "NVML_CLOCK_SM": 1,
    "NVML_CLOCK_MEM": 2,
    "NVML_TEMPERATURE_GPU": 0,
    "NVMLError": NVMLError,
}


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    def install(**functions: Any) -> None:
        module = SimpleNamespace(**{**SUPPORTED, **CONSTANTS, **functions})
        monkeypatch.setitem(sys.modules, "pynvml", module)

    telemetry._open.cache_clear()
    yield install
    telemetry._open.cache_clear()


def test_every_field_of_a_card_that_supports_all(nvml: Any) -> None:
    nvml()
    assert telemetry.state() == {
        "sm_clock_mhz": 1980,
        "memory_clock_mhz": 3201,
        "max_sm_clock_mhz": 1980,
        "max_memory_clock_mhz": 3201,
        "power_w": 257.279,
        "power_cap_w": 700.0,
        "temperature_c": 37,
        "ecc": True,
        "throttle_reasons": ["software power cap"],
        "driver": "580.159.04",
        "mig": False,
    }


def test_what_a_card_does_not_support_is_none(nvml: Any) -> None:
    nvml(nvmlDeviceGetEccMode=unsupported, nvmlDeviceGetMigMode=unsupported)
    state = telemetry.state()
    assert (state["ecc"], state["mig"], state["sm_clock_mhz"]) == (None, None, 1980)


def test_what_an_old_package_does_not_know_is_none(nvml: Any) -> None:
    nvml()
    del sys.modules["pynvml"].nvmlDeviceGetCurrentClocksEventReasons
    assert telemetry.state()["throttle_reasons"] is None


def test_the_gpu_is_found_by_its_bus(nvml: Any) -> None:
    asked: list[str] = []
    nvml(nvmlDeviceGetTemperature=lambda gpu, sensor: asked.append(gpu))
    telemetry.state("0000:00:06.0")
    assert asked == ["gpu at 0000:00:06.0"]


def test_no_driver_gives_nothing(nvml: Any) -> None:
    nvml(nvmlInit=unsupported)
    assert telemetry.state() == {}


def test_no_package_gives_nothing(nvml: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert telemetry.state() == {}


def test_reasons_that_have_no_name_yet_are_shown_as_bits() -> None:
    assert telemetry.reasons(0x20_0000_0008) == ["hardware slowdown", "0x2000000000"]
    assert telemetry.reasons(0) == []


def test_what_is_read_beside_samples(nvml: Any) -> None:
    nvml()
    assert telemetry.sampled("0000:00:06.0") == {
        "sm_clock_mhz": 1980,
        "max_sm_clock_mhz": 1980,
        "memory_clock_mhz": 3201,
        "temperature_c": 37,
        "power_w": 257.279,
        "throttle_reasons": ["software power cap"],
        "other_processes": [],
    }


def others(nvml: Any, present: list[Any], busy: Any) -> Any:
    nvml(
        nvmlDeviceGetComputeRunningProcesses=lambda gpu: present,
        nvmlDeviceGetProcessUtilization=busy,
    )
    return telemetry.sampled("0000:00:06.0")["other_processes"]


def test_only_processes_that_compute_disturb(nvml: Any) -> None:
    here = os.getpid()
    ids = processes(here, 4242, 4343)
    used = [*processes(here, 4242, busy=90), *processes(4343, busy=0)]
    assert others(nvml, ids, lambda gpu, since: used) == [4242]


@pytest.mark.parametrize(
    ("present", "busy"),
    [
        pytest.param(processes(1, 2), lambda *_: processes(2, busy=90), id="ids-of-the-host"),
        pytest.param([], lambda *_: processes(2, busy=90), id="none-shown"),
        pytest.param(processes(os.getpid(), 2), unsupported, id="utilisation-unsupported"),
    ],
)
def test_processes_that_cannot_be_told_apart_are_none(
    nvml: Any, present: list[Any], busy: Any
) -> None:
    assert others(nvml, present, busy) is None


def test_readings_without_a_driver_are_empty(nvml: Any) -> None:
    nvml(nvmlInit=unsupported)
    assert telemetry.sampled("0000:00:06.0") == {}
    assert telemetry.summary([{}, {}]) == {}
