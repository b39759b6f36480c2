"""Find the driver and the first GPU through CuPy, or say which of the three is missing."""

from __future__ import annotations

import os
from typing import Any, Final

from harness.devices import NoGPU
from kernels import import_cupy

# CUDA's numbers of the errors that mean "no GPU". Any other error is a failure, not an absence.
STUB_LIBRARY: Final = 34
INSUFFICIENT_DRIVER: Final = 35
NO_DEVICE: Final = 100


def open_cupy() -> Any:
    """Import CuPy and make the first visible GPU current.

    Raises
    ------
    NoGPU
        CuPy, the driver or the GPU is missing, or CuPy is too new for the driver.
    """
    try:
        cupy = import_cupy()
    except ImportError as error:
        raise NoGPU(
            f"CuPy cannot be imported ({_cause(error)}): install one wheel, that of the driver's "
            "CUDA version (nvidia-smi shows it), cupy-cuda13x or cupy-cuda12x"
        ) from error
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        reason = _why_none(cupy.cuda.runtime, error.status)
        if reason is None:
            raise
        raise NoGPU(reason) from error
    cupy.cuda.Device(0).use()
    cupy.cuda.Device(0).synchronize()  # opens the context: a GPU that is taken shows here
    return cupy


def _why_none(runtime: Any, status: int) -> str | None:
    """Return why there is no GPU, and what to do; None if that is not what the error says."""
    driver = runtime.driverGetVersion()
    if status not in (STUB_LIBRARY, INSUFFICIENT_DRIVER, NO_DEVICE):
        return None
    if not driver or status == STUB_LIBRARY:
        return "no NVIDIA driver is loaded: install one, until nvidia-smi lists the GPU"
    if status == INSUFFICIENT_DRIVER:
        return (
            f"the driver supports CUDA {_version(driver)}, CuPy was built for "
            f"{_version(runtime.runtimeGetVersion())}: install cupy-cuda{driver // 1000}x "
            "in place of this CuPy, or update the driver"
        )
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    if hidden is not None:
        return f"CUDA_VISIBLE_DEVICES={hidden!r} hides every GPU: unset it, or name one, as in =0"
    return "the driver sees no GPU: check nvidia-smi; a container must be given it (--gpus all)"


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def _cause(error: ImportError) -> BaseException:
    # CuPy wraps the loader's message in a page of advice.
    return error.__cause__ or error
