"""Name a kernel of kernels/*.cu, compile it, read its parameters; needs no GPU and no driver."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parent
# __launch_bounds__(256, 2) and its kin, wherever the language lets them stand
BOUNDS: Final = r"(?:__\w+__\s*\((?:[^()]|\([^()]*\))*\)\s*)*"
SIGNATURE: Final = re.compile(
    rf'extern\s+"C"\s+{BOUNDS}__global__\s+{BOUNDS}void\s+{BOUNDS}(\w+)\s*\(([^)]*)\)'
)
QUALIFIER: Final = re.compile(r"\b(?:const|volatile|__restrict__|__restrict|__grid_constant__)\b")
PARAMETER: Final = re.compile(r"(\w+(?: \w+)*?) ?(\*?) ?(\w+)$")


class CompilerMissing(RuntimeError):
    """NVRTC cannot be loaded."""


class CompilationError(RuntimeError):
    """NVRTC refused the source; the message is its log."""


@dataclass(frozen=True)
class Kernel:
    """One entry point of one source, compiled with these defines.

    >>> str(Kernel("reduce_ladder", "reduce_v2", (("BLOCK", 256), ("MASK", 1))))
    'reduce_v2[BLOCK=256,MASK]'
    """

    source: str
    name: str
    defines: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        flags = ",".join(name if value == 1 else f"{name}={value}" for name, value in self.defines)
        return f"{self.name}[{flags}]" if flags else self.name

    @property
    def path(self) -> Path:
        """The CUDA C++ source."""
        return FOLDER / f"{self.source}.cu"


@dataclass(frozen=True)
class Parameter:
    """A kernel parameter less its qualifiers: `const float4* x4` is ("x4", "float4*")."""

    name: str
    type: str


@dataclass(frozen=True)
class Binary:
    """What one compilation gives: text for the emulated device, machine code for the card."""

    ptx: str
    cubin: bytes
    compiler: tuple[int, int]


def kernel(source: str, name: str, **defines: int) -> Kernel:
    """Return the kernel `name` of kernels/`source`.cu with the given -D defines, sorted by name."""
    return Kernel(source, name, tuple(sorted(defines.items())))


@cache
def parameters(kernel: Kernel) -> tuple[Parameter, ...]:
    """Read the parameters of `kernel` from its source.

    Raises
    ------
    LookupError
        The source has no such kernel.
    """
    for name, listed in SIGNATURE.findall(kernel.path.read_text()):
        if name == kernel.name:
            return tuple(_parameter(text.strip()) for text in listed.split(",") if text.strip())
    raise LookupError(f'{kernel.path.name} has no extern "C" __global__ void {kernel.name}(...)')


def _parameter(text: str) -> Parameter:
    match = PARAMETER.match(" ".join(QUALIFIER.sub(" ", text).split()))
    if not match:
        raise LookupError(f"cannot read the parameter {text!r}")
    return Parameter(match[3], match[1] + match[2])


def compile_kernel(kernel: Kernel, architecture: str) -> Binary:
    """Compile the source of `kernel` for a real architecture such as "sm_90"."""
    return compile_source(kernel.path, kernel.defines, architecture)


@cache
def compile_source(path: Path, defines: tuple[tuple[str, int], ...], architecture: str) -> Binary:
    """Compile one CUDA C++ file with NVRTC: one compilation gives both PTX and cubin.

    Raises
    ------
    CompilerMissing
        CuPy or NVRTC cannot be loaded.
    CompilationError
        The source does not compile; the message is NVRTC's log.
    """
    nvrtc = _nvrtc()
    options = [f"--gpu-architecture={architecture}", *(f"-D{k}={v}" for k, v in defines)]
    program = nvrtc.createProgram(path.read_text(), path.name, (), ())
    try:
        nvrtc.compileProgram(program, tuple(options))
        # CuPy's binding drops the last byte of the cubin, a zero of the section table's padding.
        return Binary(
            nvrtc.getPTX(program).decode().rstrip("\0"),
            nvrtc.getCUBIN(program) + b"\0",
            nvrtc.getVersion(),
        )
    except nvrtc.NVRTCError as error:
        log = nvrtc.getProgramLog(program).strip() or str(error)
        raise CompilationError(f"{path.name} for {architecture}: {log}") from None
    finally:
        nvrtc.destroyProgram(program)


def import_cupy() -> Any:
    """Import CuPy, which makes a folder for kernels of its own: not at home, it may be read-only.

    Raises
    ------
    ImportError
        CuPy, or a library it needs, is missing.
    """
    if "CUPY_CACHE_DIR" not in os.environ:
        os.environ["CUPY_CACHE_DIR"] = str(_private_folder())
    import cupy

    return cupy


def _private_folder() -> Path:
    """Return a temporary folder that nobody else can write: CuPy runs the code it finds there.

    Somebody else may have taken its name before; then it is a new one.
    """
    if not hasattr(os, "getuid"):  # Windows gives each user a temporary folder
        return Path(tempfile.gettempdir(), "cupy-kernels")
    user = os.getuid()
    folder = Path(tempfile.gettempdir(), f"cupy-kernels-{user}")
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()  # of a link itself, whatever it leads to
    ours = stat.S_ISDIR(found.st_mode) and found.st_uid == user and not found.st_mode & 0o077
    return folder if ours else Path(tempfile.mkdtemp(prefix="cupy-kernels-"))


@cache
def _nvrtc() -> Any:
    """Load NVRTC through CuPy, or say what to install."""
    try:
        nvrtc = import_cupy().cuda.nvrtc
        nvrtc.getVersion()
    except Exception as error:
        raise CompilerMissing(
            f"NVRTC cannot be loaded ({error}).\n"
            "Install CuPy and the compiler of your driver's CUDA version, only one of the two:\n"
            "  pip install cupy-cuda13x 'nvidia-cuda-nvrtc<14'\n"
            "  pip install cupy-cuda12x nvidia-cuda-nvrtc-cu12"
        ) from error
    return nvrtc
