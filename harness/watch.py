"""Watch the GPU beside a measurement, and throw samples away that were throttled or contended.

A reading takes some milliseconds, a sample less than one: readings are taken after each block of
samples, never around one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from harness.devices import TimedDevice, telemetry

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
ATTEMPTS: Final = 3
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
    """The readings of one measurement after the other; `read` is what gives one."""

    def __init__(
        self,
        read: Callable[[], Reading],
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.readings: list[Reading] = []
        self._read, self._pause, self._clock = read, pause, clock
        self._taken, self._last = -FRESH, Reading()

    @classmethod
    def over(cls, device: TimedDevice) -> Watch:
        """Watch a device that has a PCI address; of any other there is nothing to read."""
        bus_id: str | None = getattr(device, "bus_id", None)
        return cls(lambda: telemetry.sampled(bus_id) if bus_id else {})

    def start(self) -> None:
        """Forget the readings of the measurement before."""
        self.readings = []

    def summary(self) -> Reading:
        """Return the range of each quantity since `start`, of the samples that were kept."""
        return telemetry.summary(self.readings)

    def undisturbed(self, measure: Callable[[], Samples]) -> Samples:
        """Return what `measure` gives once nothing disturbs it, after three attempts at most.

        Raises
        ------
        NotComparable
            It was disturbed each time.
        """
        why = ""
        for attempt in range(ATTEMPTS):
            if attempt:
                self._pause(PAUSE)
            samples = measure()
            reading = self._reading()
            clocks = [each.get("sm_clock_mhz") or 0 for each in (*self.readings, reading)]
            why = trouble(reading, max(clocks))
            if not why:
                self.readings.append(reading)
                return samples
        raise NotComparable(
            f"{why}, {ATTEMPTS} times in a row: free and cool the GPU, then measure again"
        )

    def _reading(self) -> Reading:
        if self._clock() - self._taken >= FRESH:
            self._last = self._read()
            self._taken = self._clock()
        return self._last
