"""What the card was doing beside a measurement: clocks, power, temperature, through NVML."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

THROTTLE_REASONS: Final = {
    0x1: "idle",
    0x2: "application clocks",
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
    0x100: "display clocks",
}

# Each takes the NVML module and the handle of the GPU.
FIELDS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "sm_clock_mhz": lambda n, gpu: n.nvmlDeviceGetClockInfo(gpu, n.NVML_CLOCK_SM),
    "memory_clock_mhz": lambda n, gpu: n.nvmlDeviceGetClockInfo(gpu, n.NVML_CLOCK_MEM),
    "max_sm_clock_mhz": lambda n, gpu: n.nvmlDeviceGetMaxClockInfo(gpu, n.NVML_CLOCK_SM),
    "max_memory_clock_mhz": lambda n, gpu: n.nvmlDeviceGetMaxClockInfo(gpu, n.NVML_CLOCK_MEM),
    "power_w": lambda n, gpu: n.nvmlDeviceGetPowerUsage(gpu) / 1000,
    "power_cap_w": lambda n, gpu: n.nvmlDeviceGetEnforcedPowerLimit(gpu) / 1000,
    "temperature_c": lambda n, gpu: n.nvmlDeviceGetTemperature(gpu, n.NVML_TEMPERATURE_GPU),
    "ecc": lambda n, gpu: bool(n.nvmlDeviceGetEccMode(gpu)[0]),
    "throttle_reasons": lambda n, gpu: reasons(n.nvmlDeviceGetCurrentClocksEventReasons(gpu)),
    "driver": lambda n, gpu: n.nvmlSystemGetDriverVersion(),
    "mig": lambda n, gpu: bool(n.nvmlDeviceGetMigMode(gpu)[0]),
}


# What moves while a measurement runs: read after each block of samples.
SAMPLED: Final = (
    "sm_clock_mhz",
    "max_sm_clock_mhz",
    "memory_clock_mhz",
    "temperature_c",
    "power_w",
    "throttle_reasons",
)


def state(bus_id: str | None = None) -> dict[str, Any]:
    """Return the FIELDS of a GPU now; None where the driver does not say, {} without nvidia-ml-py.

    MHz, W, degrees Celsius; `throttle_reasons` is a list of words. `bus_id` is the PCI address that
    the CUDA device gives; without it, the first GPU of the machine.
    """
    try:
        nvml, gpu = _open(bus_id)
    except Exception:
        # No package, no driver, no permission: telemetry is never what stops a measurement.
        return {}
    return {name: _read(field, nvml, gpu) for name, field in FIELDS.items()}


def sampled(bus_id: str) -> dict[str, Any]:
    """Return the SAMPLED fields now, and `other_processes` that compute on this GPU.

    Units as in `state`; the processes are a list of ids, None if the driver does not tell them
    apart from this one, as in a container with process ids of its own.
    """
    try:
        nvml, gpu = _open(bus_id)
    except Exception:
        return {}
    fields: dict[str, Callable[[Any, Any], Any]] = {name: FIELDS[name] for name in SAMPLED}
    fields["other_processes"] = others
    return {name: _read(field, nvml, gpu) for name, field in fields.items()}


def others(nvml: Any, gpu: Any) -> list[int] | None:
    """Return the ids of other processes that kept multiprocessors busy in the last second or so."""
    present = {process.pid for process in nvml.nvmlDeviceGetComputeRunningProcesses(gpu)}
    if os.getpid() not in present:
        return None
    present.discard(os.getpid())
    if not present:
        return []
    samples = nvml.nvmlDeviceGetProcessUtilization(gpu, 0)
    return sorted({each.pid for each in samples if each.smUtil > 0} & present)


def summary(readings: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the least and the most of every number in `readings`, and every word that occurs.

    >>> summary([{"power_w": 140.5, "ecc": None}, {"power_w": 161.0}])
    {'power_w': [140.5, 161.0]}
    """
    found: dict[str, Any] = {}
    for name in dict.fromkeys(name for reading in readings for name in reading):
        values = [reading[name] for reading in readings if reading.get(name) is not None]
        if values and isinstance(values[0], list):
            found[name] = sorted({word for words in values for word in words})
        elif values:
            found[name] = [min(values), max(values)]
    return found


@cache
def _open(bus_id: str | None) -> tuple[Any, Any]:
    import pynvml

    pynvml.nvmlInit()
    if bus_id is None:
        return pynvml, pynvml.nvmlDeviceGetHandleByIndex(0)
    return pynvml, pynvml.nvmlDeviceGetHandleByPciBusId(bus_id)


def _read(field: Callable[[Any, Any], Any], nvml: Any, gpu: Any) -> Any:
    try:
        return field(nvml, gpu)
    except (nvml.NVMLError, AttributeError):
        # A field this card does not have, or a function this nvidia-ml-py is too old for.
        return None


def reasons(bits: int) -> list[str]:
    """Return the reasons set in NVML's mask, unknown bits as hexadecimal.

    >>> reasons(0x44)
    ['software power cap', 'hardware thermal slowdown']
    """
    unknown = bits & ~sum(THROTTLE_REASONS)
    named = [reason for bit, reason in THROTTLE_REASONS.items() if bits & bit]
    return [*named, hex(unknown)] if unknown else named
