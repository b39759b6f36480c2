"""A library's routine as a workload: cuBLAS through CuPy, which picks the kernels it launches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from harness.devices import Device, Launch, Routine
from kernels import import_cupy

DTYPES: Final[dict[str, np.dtype[Any]]] = {"fp16": np.dtype("f2"), "fp32": np.dtype("f4")}
RANDOM: Final = 1_000_003  # different values; a prime, so that no two rows of a matrix are alike
SAMPLES: Final = 64  # rows and columns whose crossings are checked
STEP: Final = 2.0**-23  # relative error of an fp32 addition on tensor cores, which truncate


@dataclass(frozen=True)
class Gemm:
    """The product of two n x n matrices of fp16 or fp32, summed in fp32; a Workload.

    fp16 runs on tensor cores, fp32 on the fp32 lanes unless CUPY_TF32 is set. CuPy hands contiguous
    operands and output to cuBLAS as they are and compiles no kernel of its own.
    """

    type: str
    n: int

    @property
    def name(self) -> str:
        """Library, routine, type and size."""
        return f"cublas gemm {self.type} n={self.n}"

    @property
    def dtype(self) -> np.dtype[Any]:
        """The elements as NumPy knows them."""
        return DTYPES[self.type]

    @property
    def flop(self) -> int:
        """A multiplication and an addition for each of n^3 products."""
        return 2 * self.n**3

    @property
    def elements(self) -> int:
        """Elements that must cross the memory's pins: two matrices read, one written."""
        return 3 * self.n**2

    @property
    def bytes(self) -> int:
        """Those elements in bytes."""
        return self.elements * self.dtype.itemsize

    def matrix(self, seed: int) -> NDArray[Any]:
        """Random values in [-1, 1): n products of two sum to sqrt(n) / 3, far below fp16's end."""
        values = np.random.default_rng(seed).uniform(-1, 1, RANDOM).astype(self.dtype)
        return np.resize(values, (self.n, self.n))

    def prepare(self, device: Device) -> Launch:
        """Return the routine on random matrices; it needs a GPU and cuBLAS.

        Raises
        ------
        ImportError
            cuBLAS is missing; the message names the package.
        """
        a, b = self.matrix(1), self.matrix(2)
        operands, out = (device.put(a), device.put(b)), self.output(device)
        dot = _dot()

        def call() -> None:
            dot(*operands, out=out)

        def check() -> None:
            poisoned = self.output(device)
            dot(*operands, out=poisoned)
            self.compare(a, b, device.get(poisoned).reshape(self.n, self.n))

        return Launch(Routine(self.name, call), 0, 0, (), self.bytes, check, self.flop)

    def output(self, device: Device) -> Any:
        """A poisoned n x n result, as one row: cuBLAS takes an address."""
        return device.empty(self.n**2, self.dtype)

    def compare(self, a: NDArray[Any], b: NDArray[Any], got: NDArray[Any]) -> None:
        """Assert that sampled rows cross sampled columns where float64 says they do.

        A sum of n products is off by n steps of their magnitude at most, then rounded once to the
        type of the result (Higham, Accuracy and Stability of Numerical Algorithms, section 3.5).
        """
        at = np.unique(np.linspace(0, self.n - 1, SAMPLES).astype(int))
        rows, columns = a[at].astype(np.float64), b[:, at].astype(np.float64)
        exact = rows @ columns
        allowed = self.n * STEP * (np.abs(rows) @ np.abs(columns))
        allowed += np.finfo(self.dtype).eps * np.abs(exact)
        error = np.abs(got[np.ix_(at, at)] - exact)
        assert (error <= allowed).all(), f"{self.name} is off by {np.max(error)}"


def _dot() -> Any:
    """Return CuPy's product, once the library behind it is loaded."""
    cupy = import_cupy()
    try:
        cupy.cuda.device.get_cublas_handle()
    except ImportError as error:
        raise ImportError(
            f"cuBLAS cannot be loaded ({error}): install nvidia-cublas of the driver's CUDA "
            "version, or put a toolkit's library folder on LD_LIBRARY_PATH"
        ) from error
    return cupy.dot
