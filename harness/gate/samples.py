"""One benchmark of a recording as the gate sees it: its samples, its runs, the facts beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from harness.baselines import BaselineError
from harness.baselines.merging import medians
from harness.baselines.shape import DROPPED
from harness.timing import ImplausibleTime, refuse_implausible

HARMLESS: Final = {"idle", "application clocks", "display clocks"}
# The stored peak has one digit after the point.
ROUNDING: Final = 1 + 1e-4
CLOCKS: Final = ("sm_clock_mhz", "memory_clock_mhz")


@dataclass(frozen=True)
class Timing:
    """The times of one benchmark in seconds, in the order taken.

    `runs` are the medians of all runs that a promoted baseline was merged from.
    """

    name: str
    median: float
    samples: tuple[float, ...]
    runs: tuple[float, ...]
    facts: Mapping[str, Any]

    @property
    def clock(self) -> str | None:
        """Which clock took the times, if that is stored."""
        found: str | None = self.facts.get("clock")
        return found

    @property
    def dropped(self) -> list[str]:
        """Why samples were dropped while they were taken."""
        return list(map(str, self.facts.get(DROPPED) or ()))

    @property
    def throttled(self) -> frozenset[str]:
        """Why the card lowered its clocks during the run, apart from what is always so."""
        after = self.facts.get("throttle_reasons") or ()
        during = (self.facts.get("telemetry") or {}).get("throttle_reasons") or ()
        return frozenset((*after, *during)) - HARMLESS

    def mhz(self, clock: str) -> tuple[float, float] | None:
        """Return the least and the most of one of CLOCKS: during the run, else after it."""
        during = (self.facts.get("telemetry") or {}).get(clock)
        read = during or [self.facts.get(clock)]
        return None if None in read else (min(read), max(read))


def memory_peak(document: Mapping[str, Any]) -> float | None:
    """Return the peak of the memory that a recording knows, in bytes/s."""
    return document.get("device", {}).get("peak GB/s", 0) * 1e9 or None


def timings(document: Mapping[str, Any]) -> dict[str, Timing]:
    """Return the benchmarks of a document by test id.

    Raises
    ------
    BaselineError
        A benchmark lacks its id or its median, or holds something else than numbers.
    """
    return {each.name: each for each in map(_timing, document["benchmarks"])}


def _timing(benchmark: Any) -> Timing:
    try:
        median = float(benchmark["stats"]["median"])
        return Timing(
            str(benchmark["fullname"]),
            median,
            tuple(map(float, benchmark["stats"].get("data") or [median])),
            tuple(medians(benchmark)),
            benchmark.get("extra_info", {}),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        name = benchmark.get("fullname", "?") if isinstance(benchmark, dict) else "?"
        raise BaselineError(
            f"benchmark {name} cannot be read ({error!r}): it was not written by pytest-benchmark; "
            "record again"
        ) from error


def plausible(timing: Timing, peak: float | None) -> tuple[list[float], list[str]]:
    """Return the samples that can be true, and why the others cannot.

    A sample above the memory's `peak` (bytes/s) is dropped: it found its input in L2. One that is
    zero or negative says that the clock itself is wrong, and nothing is left of the benchmark.

    Raises
    ------
    ImplausibleTime
        A sample is zero, negative or infinite, or all of them are above the peak.
    """
    size = int(timing.facts.get("bytes") or 0)
    kept, refused = [], []
    for seconds in timing.samples:
        refuse_implausible(seconds, what="a sample")
        try:
            refuse_implausible(seconds, size, peak and peak * ROUNDING, "a sample")
            kept.append(seconds)
        except ImplausibleTime as error:
            refused.append(str(error))
    if not kept:
        raise ImplausibleTime(refused[0])
    return kept, refused


def first_of(reasons: Iterable[str], total: int) -> str:
    """Return refused samples in words: how many, and the first reason; nothing if none was."""
    found = list(reasons)
    return f"{len(found)} of {total} samples refused: {found[0]}" if found else ""
