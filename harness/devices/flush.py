"""Make L2 cold and clean by reading twice its size, with nothing in it set aside to persist."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from harness.devices import Array, address_of

FLUSH: Final = "read_all"
BLOCK: Final = 256
THREADS: Final = 2048  # per multiprocessor
LOAD: Final = 16  # bytes
PERSISTING_L2: Final = 6  # CUDA's number of the limit


def make_flush(
    function: Any, memory: tuple[Array, Array], size: int, multiprocessors: int
) -> Callable[[], None]:
    """Return a launch of `read_all` over `size` bytes, so that nothing else is left in L2.

    `memory` is what it reads and where it would store; the launch keeps both alive. It must not
    write: dirty lines would be written back inside the next kernel (+14 % on one of 62 us on an
    H200).
    """
    addresses = [np.uint64(address_of(array)) for array in memory]
    shape = (multiprocessors * THREADS // BLOCK,), (BLOCK,)

    def flush(_kept: tuple[Array, Array] = memory) -> None:
        function(*shape, (*addresses, np.int32(size // LOAD)))

    return flush


def forget_persisting(runtime: Any) -> None:
    """Set nothing of L2 aside, and turn lines that persist into ordinary ones.

    Reading does not evict a line that persists. CuPy does not wrap the second call; a GPU or a
    driver that knows neither has no such lines.
    """
    try:
        runtime.deviceSetLimit(PERSISTING_L2, 0)
        ctypes.CDLL("libcuda.so.1").cuCtxResetPersistingL2Cache()
    except (runtime.CUDARuntimeError, OSError, AttributeError):
        return
