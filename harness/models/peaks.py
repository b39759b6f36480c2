"""The two limits of a roofline and the ridge where they meet, by data sheet or by driver."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Protocol

from harness.devices import TimedDevice
from harness.models import datasheet
from harness.models.datasheet import GPU
from harness.timing import Ideal


class Work(Protocol):
    """A workload that knows its least bytes and its arithmetic."""

    @property
    def bytes(self) -> int: ...
    @property
    def flop(self) -> int: ...


def gpu(device: TimedDevice) -> GPU:
    """Return the row of the data sheets, or what the driver says of a GPU that has none."""
    return datasheet.of(device.name) or datasheet.from_driver(device)


def fp32_peak(device: TimedDevice) -> float:
    """Return FLOP per second: multiprocessors x fp32 lanes x 2 x the highest SM clock.

    Raises
    ------
    LookupError
        Nobody knows the lanes of such an SM.
    """
    return _known(gpu(device).fp32_peak, device, "fp32 peak")


def tensor_peak(device: TimedDevice) -> float:
    """Return FLOP per second of fp16 on the tensor cores, dense.

    Raises
    ------
    LookupError
        The GPU has no row in the data sheets; the driver does not know its tensor cores.
    """
    return _known(gpu(device).tensor_peak, device, "tensor peak")


def memory_peak(device: TimedDevice) -> float:
    """Return bytes per second: what the driver says of bus and clock, else the data sheet."""
    return device.peak_bandwidth or gpu(device).bandwidth


def ridge(device: TimedDevice) -> float:
    """Return the FLOP per byte from which on fp32 arithmetic is the limit, by the two peaks."""
    return fp32_peak(device) / memory_peak(device)


@lru_cache(maxsize=1)
def copy_bandwidth(device: TimedDevice) -> float:
    """Return what the card's own copy reaches, bytes per second; measured once a session."""
    return device.copy_bandwidth()


def bytes_at_peak(work: Work) -> Ideal:
    """The time the memory needs if it is never idle."""
    return Ideal("its bytes at the memory's peak", lambda device: work.bytes / memory_peak(device))


def bytes_at_copy(work: Work) -> Ideal:
    """The time that the card's own copy takes for as many bytes."""
    name = "the card's own copy of as many bytes"
    return Ideal(name, lambda device: work.bytes / copy_bandwidth(device))


def flop_at_peak(work: Work, peak: Callable[[TimedDevice], float] = fp32_peak) -> Ideal:
    """The time the arithmetic needs if its unit is never idle."""
    return Ideal("its FLOP at the unit's peak", lambda device: work.flop / peak(device))


def _known(peak: float | None, device: TimedDevice, what: str) -> float:
    if peak is None:
        raise LookupError(
            f"the {what} of {device.name} is unknown: add the GPU to harness/models/datasheet.py"
        )
    return peak
