"""Find the driver and the first GPU through CuPy, or say which is missing, or which is broken."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from harness.devices import NoGPU
from kernels import CompilerMissing, compile_source, import_cupy

SOURCE: Final = Path(__file__).with_name("cuda.cu")  # what every GPU needs first

# CUDA's numbers of the errors that mean "no GPU". Any other error is a failure, not an absence.
STUB_LIBRARY: Final = 34
INSUFFICIENT_DRIVER: Final = 35
NO_DEVICE: Final = 100
ABSENT: Final = (STUB_LIBRARY, INSUFFICIENT_DRIVER, NO_DEVICE)

# What to do about the failures that an administrator meets.
REMEDIES: Final = {
    2: "free its memory: nvidia-smi lists the processes that hold it",
    46: "it is taken, or in exclusive mode: end the other process, or name another GPU in "
    "CUDA_VISIBLE_DEVICES",
    802: "start nvidia-fabricmanager, which a GPU with NVSwitch waits for",
    803: "the driver's kernel module and its libraries are of two versions: reboot, or reload the "
    "module",
    999: "reload the driver: nvidia-smi and dmesg say what it met",
}


class Unusable(RuntimeError):
    """A GPU, a driver or a folder is there and cannot be used; the message says what to do."""


def open_cupy() -> Any:
    """Import CuPy and make the first visible GPU current.

    Raises
    ------
    NoGPU
        CuPy, the driver or the GPU is missing, or CuPy is too new for the driver.
    Unusable
        CUDA fails with any other error, or CuPy cannot write where it keeps kernels.
    """
    try:
        cupy = import_cupy()
    except ImportError as error:
        raise NoGPU(
            f"CuPy cannot be imported ({_cause(error)}): install one wheel, that of the driver's "
            "CUDA version (nvidia-smi shows it), cupy-cuda13x or cupy-cuda12x"
        ) from error
    except OSError as error:
        raise Unusable(_unwritable(error)) from error
    runtime = cupy.cuda.runtime
    try:
        if not runtime.getDeviceCount():
            raise NoGPU(_why_none(runtime, NO_DEVICE))
        cupy.cuda.Device(0).use()
        cupy.cuda.Device(0).synchronize()  # opens the context: a GPU that is taken shows here
    except runtime.CUDARuntimeError as error:
        if error.status in ABSENT:
            raise NoGPU(_why_none(runtime, error.status)) from error
        raise Unusable(_why_broken(error)) from error
    return cupy


def probe_compiler(architecture: str) -> None:
    """Compile something small, so that a missing compiler shows before the first test.

    Raises
    ------
    CompilerMissing
        CuPy or NVRTC is missing; the message says what to install.
    Unusable
        CuPy cannot write where it keeps kernels.
    """
    try:
        compile_source(SOURCE, (), architecture)
    except CompilerMissing as error:
        cause = error.__cause__
        if isinstance(cause, OSError) and cause.filename is not None:
            raise Unusable(_unwritable(cause)) from error
        raise


def _unwritable(error: OSError) -> str:
    where = os.environ.get("CUPY_CACHE_DIR")
    return (
        f"CUPY_CACHE_DIR={where!r} cannot be written ({error}): name a folder that can, or unset it"
    )


def _why_none(runtime: Any, status: int) -> str:
    """Return why there is no GPU, and what to do."""
    driver = runtime.driverGetVersion()
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


def _why_broken(error: Any) -> str:
    remedy = REMEDIES.get(error.status, "nvidia-smi and dmesg say more")
    return (
        f"the GPU cannot be opened, CUDA error {error.status} ({error}): {remedy}; "
        "--gpu=emulate runs without it"
    )


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def _cause(error: ImportError) -> BaseException:
    # CuPy wraps the loader's message in a page of advice.
    return error.__cause__ or error
