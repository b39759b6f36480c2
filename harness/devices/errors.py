"""CUDA's errors as three of ours: an operation was refused, memory is out, or the context is dead.

An error of one call is gone by the next one; an error of the context is given for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Refused(RuntimeError):
    """CUDA refused an operation; the context lives on."""


class OutOfMemory(Refused):
    """The GPU has not enough memory left; no kernel is to blame."""


class DeadContext(RuntimeError):
    """A kernel broke the context: every later CUDA call of this process fails; end the session."""


class Guard:
    """Runs CUDA calls and translates what they raise; `last_launch` is what to blame."""

    def __init__(self, cuda: Any) -> None:
        self.last_launch = "none"
        self._runtime = cuda.runtime
        self._errors = (cuda.runtime.CUDARuntimeError, cuda.driver.CUDADriverError)
        self._death = ""

    @contextmanager
    def __call__(self, what: str, hint: str = "") -> Iterator[None]:
        """Turn CUDA's errors into Refused, or into DeadContext if they stay."""
        if self._death:
            raise DeadContext(self._death)
        try:
            yield
        except MemoryError as error:  # CuPy's, of the GPU's memory
            raise OutOfMemory(
                f"{what}: {error}; run fewer processes on this GPU, or smaller arrays"
            ) from error
        except self._errors as error:
            self._raise_if_dead(error)
            raise Refused(f"{what}: {error}" + (f"; {hint}" if hint else "")) from error

    def _raise_if_dead(self, error: Exception) -> None:
        try:
            self._runtime.deviceSynchronize()
        except self._errors:
            self._death = (
                f"the GPU's context is dead ({error}); the last launch was {self.last_launch}. "
                "Every later CUDA call of this process fails too: end this session, then run that "
                "launch alone, on the emulated device or under compute-sanitizer"
            )
            raise DeadContext(self._death) from error
