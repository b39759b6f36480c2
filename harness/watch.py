"""Watch the GPU beside a measurement; throw away what was throttled, contended or impossible.

A reading takes some milliseconds, a sample less than one: readings are taken after each block of
samples, never around one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from harness.devices import TimedDevice, telemetry
from harness.timing import Drop, ImplausibleTime

Samples = TypeVar("Samples")
Reading = dict[str, Any]

THROTTLED: Final = frozenset(
    {
        "hardware slowdown",
        "software thermal slowdown",
        "hardware thermal slowdown",
        "hardware power brake",
    }
)
# Software caps the power in small steps, and often: by 15 of 1980 MHz in a matrix product.
CLOCK_MAY_FALL: Final = 0.05
ATTEMPTS: Final = 3  # at a block of samples; each thing that is thrown away ends one
PAUSE: Final = 1.0  # seconds, for a hot card to recover
FRESH: Final = 0.1  # seconds a reading stands for


class NotComparable(RuntimeError):
    """The GPU was throttled or shared all the time; the message says how. Nothing was stored."""


def trouble(reading: Reading, fastest_mhz: float) -> str:
    """Return why samples taken at this `reading` compare with no others, or an empty string.

    `fastest_mhz` is the highest SM clock seen in the measurement.

    >>> trouble({"sm_clock_mhz": 1580, "throttle_reasons": ["software power cap"]}, 1980)
    'the SM clock fell from 1980 to 1580 MHz (software power cap)'
    """
    reasons = reading.get("throttle_reasons") or []
    if throttled := THROTTLED.intersection(reasons):
        return f"the GPU throttles ({', '.join(sorted(throttled))})"
    clock = reading.get("sm_clock_mhz")
    if clock is not None and clock < fastest_mhz * (1 - CLOCK_MAY_FALL):
        why = f" ({', '.join(reasons)})" if reasons else ""
        return f"the SM clock fell from {fastest_mhz} to {clock} MHz{why}"
    if processes := reading.get("other_processes"):
        return f"process {', '.join(map(str, processes))} computes on the same GPU"
    return ""


class Watch:
    """The readings of one measurement after the other; `read` is what gives one.

    Attributes
    ----------
    readings
        What was read since `start`, of the samples that were kept.
    dropped
        Why single samples were dropped since then.
    """

    def __init__(
        self,
        read: Callable[[], Reading],
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.readings: list[Reading] = []
        self.dropped: list[str] = []
        self._read, self._pause, self._clock = read, pause, clock
        self._taken, self._last = -FRESH, Reading()

    @classmethod
    def over(cls, device: TimedDevice) -> Watch:
        """Watch a device that has a PCI address; of any other there is nothing to read."""
        bus_id: str | None = getattr(device, "bus_id", None)
        return cls(lambda: telemetry.sampled(bus_id) if bus_id else {})

    def start(self) -> None:
        """Forget the measurement before."""
        self.readings, self.dropped = [], []

    def summary(self) -> Reading:
        """Return the range of each quantity since `start`, of the samples that were kept."""
        return telemetry.summary(self.readings)

    def undisturbed(self, measure: Callable[[Drop], Samples]) -> Samples:
        """Return what `measure` gives once nothing disturbs it.

        It is told how to drop an impossible sample. Such a sample and a disturbed block count
        alike: the third is one too many.

        Raises
        ------
        NotComparable
            That was a block, and the GPU is throttled or shared.
        ImplausibleTime
            That was a sample: such times are no accident.
        """
        lost: list[Exception] = []

        def drop(why: Exception) -> None:
            lost.append(why)
            if len(lost) == ATTEMPTS:
                raise why

        while True:
            samples = measure(drop)
            if not (why := self._trouble()):
                self.dropped += [str(each) for each in lost if isinstance(each, ImplausibleTime)]
                return samples
            drop(NotComparable(f"{why}: free and cool the GPU, then measure again"))
            self._pause(PAUSE)

    def _trouble(self) -> str:
        """Read once; say what disturbed the samples before, or keep the reading."""
        reading = self._reading()
        clocks = [each.get("sm_clock_mhz") or 0 for each in (*self.readings, reading)]
        why = trouble(reading, max(clocks))
        if not why:
            self.readings.append(reading)
        return why

    def _reading(self) -> Reading:
        if self._clock() - self._taken >= FRESH:
            self._last = self._read()
            self._taken = self._clock()
        return self._last
