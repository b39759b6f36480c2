"""Open one of the two devices; neither is imported before it is asked for."""

from __future__ import annotations

from typing import Literal

from harness.devices import Device


def open_device(wanted: Literal["require", "emulate"]) -> Device:
    """Return the GPU, or the emulated device.

    Raises
    ------
    NoGPU
        `wanted` is "require" and there is no usable GPU.
    """
    if wanted == "emulate":
        from harness.devices.emulator import EmulatedDevice

        return EmulatedDevice()
    from harness.devices.cuda import CudaDevice

    return CudaDevice()
