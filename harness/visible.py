"""Which GPUs this process may use, by the names that CUDA_VISIBLE_DEVICES takes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, Final

VARIABLE: Final = "CUDA_VISIBLE_DEVICES"


def visible_gpus(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return the caller's list as it stands, else the UUIDs of all GPUs that NVML knows.

    Names are indices, "GPU-..." or "MIG-..."; CUDA reads the list up to the first -1 or empty name.
    A UUID means the same GPU however CUDA orders them. Nothing is opened; [] if nobody knows.
    """
    listed = environment.get(VARIABLE)
    if listed is None:
        return [name for name, _ in known_gpus()]
    names: list[str] = []
    for name in listed.split(","):
        if name.strip() in ("", "-1", "NoDevFiles"):
            break
        names.append(name.strip())
    return names


def known_gpus() -> list[tuple[str, int | None]]:
    """Return (UUID, bytes of memory) of every GPU, or of its MIG slices; [] without NVML.

    The bytes are None where the driver does not tell: asking for a slice may be forbidden.
    """
    try:
        import pynvml as nvml

        nvml.nvmlInit()
        count = nvml.nvmlDeviceGetCount()
    except Exception:
        # No package, no driver, no permission: whoever asks goes on without.
        return []
    handles = [_handle(nvml, index) for index in range(count)]
    units = (unit for gpu in handles if gpu is not None for unit in _units(nvml, gpu))
    return [(uuid, _memory(nvml, unit)) for unit in units if (uuid := _uuid(nvml, unit))]


def placed(device: object) -> str:
    """Return which GPU a device has opened, as "GPU-... at 0000:19:00.0"; what is not known lacks.

    CUDA gives the address, whatever it counts that GPU as; NVML has the UUID to it.
    """
    bus_id: str | None = getattr(device, "bus_id", None)
    return " at ".join(filter(None, (bus_id and uuid_at(bus_id), bus_id)))


def uuid_at(bus_id: str) -> str | None:
    """Return which card of its model is at a PCI address, if NVML says it."""
    try:
        import pynvml as nvml

        nvml.nvmlInit()
        return _uuid(nvml, nvml.nvmlDeviceGetHandleByPciBusId(bus_id))
    except Exception:
        # As above; the address will do.
        return None


def _handle(nvml: Any, index: int) -> Any:
    try:
        return nvml.nvmlDeviceGetHandleByIndex(index)
    except nvml.NVMLError:
        return None


def _units(nvml: Any, gpu: Any) -> Iterator[Any]:
    """Return the slices of a GPU in MIG mode, else the GPU: CUDA opens no GPU that is sliced."""
    try:
        sliced = bool(nvml.nvmlDeviceGetMigMode(gpu)[0])
        most = nvml.nvmlDeviceGetMaxMigDeviceCount(gpu) if sliced else 0
    except nvml.NVMLError:
        sliced, most = False, 0
    if not sliced:
        yield gpu
    for index in range(most):
        try:
            yield nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index)
        except nvml.NVMLError:
            continue  # a place for a slice that nobody made


def _uuid(nvml: Any, unit: Any) -> str | None:
    try:
        uuid = nvml.nvmlDeviceGetUUID(unit)
    except nvml.NVMLError:
        return None
    return uuid.decode() if isinstance(uuid, bytes) else str(uuid)


def _memory(nvml: Any, unit: Any) -> int | None:
    try:
        return int(nvml.nvmlDeviceGetMemoryInfo(unit).total) or None
    except nvml.NVMLError:
        return None
