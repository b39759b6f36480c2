"""Bandwidth against bytes in flight as a picture: `python -m harness.report.curve` draws them all.

Both axes are logarithmic, so that what is proportional is a straight line of slope one.
"""

from __future__ import annotations

import math
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.baselines import ROOT
from harness.models.datasheet import KIB, of
from harness.report.drawing import TEMPLATES, Picture, bandwidth, draw, logarithmic
from harness.spelling import gigabytes

POINT: Final = re.compile(r"\[read-(\d+)-(\d+)\]$")
CHASE: Final = re.compile(r"\[chase-(\d+)\]$")

LEFT, RIGHT, TOP, BOTTOM = 66.0, 840.0, 88.0, 470.0
LEGEND: Final = 590.0
LEAST_KIB, MOST_KIB = 0.84, 152.0  # at LEFT and RIGHT
WORD: Final = 4  # bytes of a load
RADII: Final = {1: 3.5, 2: 4.5, 4: 5.5, 8: 6.5}  # by blocks of an SM


@dataclass(frozen=True)
class Point:
    """One read: where it is drawn, and what it says to a pointer."""

    x: float
    y: float
    radius: float
    says: str


@dataclass(frozen=True)
class Series:
    """The reads of so many loads a thread, by threads."""

    loads: int
    points: list[Point]


@dataclass(frozen=True)
class Place:
    """A place in pixels."""

    x: float
    y: float


@dataclass(frozen=True)
class Column:
    """What stands below the reads of so many bytes in flight: the slowest and the fastest."""

    x: float
    y: float
    rates: str


@dataclass(frozen=True)
class Law:
    """What Little's law allows: up to the knee it rises, then the memory is full."""

    start: Place
    knee: Place
    middle: Place
    angle: float
    needed: str
    peak: str
    latency: str
    whose: str
    multiprocessors: int


@dataclass(frozen=True)
class Read:
    """One recorded read."""

    loads: int
    blocks: int
    threads: int  # of an SM
    multiprocessors: int
    rate: float  # GB/s

    @property
    def kib(self) -> float:
        """KiB in flight on an SM."""
        return self.loads * WORD * self.threads / KIB


@dataclass(frozen=True)
class Axes:
    """Where KiB and GB/s are drawn."""

    slowest: float
    fastest: float

    def x(self, kib: float) -> float:
        """Return the pixel of a number of KiB."""
        return logarithmic(kib, LEAST_KIB, MOST_KIB, LEFT, RIGHT)

    def y(self, rate: float) -> float:
        """Return the pixel of a bandwidth in GB/s."""
        return logarithmic(rate, self.slowest, self.fastest, BOTTOM, TOP)

    def rows(self) -> list[tuple[float, str]]:
        """Return the lines of the grid: one an octave."""
        octaves = math.floor(math.log2(self.fastest / self.slowest))
        rates = [self.slowest * 2**octave for octave in range(octaves + 1)]
        return [(self.y(rate), gigabytes(rate)) for rate in rates]


def curve_svg(baseline: dict[str, Any]) -> str:
    """Return the reads recorded in `baseline`, with Little's law if a latency is recorded too.

    Raises
    ------
    ValueError
        The baseline holds no read.
    """
    reads = recorded(baseline)
    if not reads:
        raise ValueError("no read test_bytes_in_flight_are_timed[read-*] is recorded")
    device = baseline.get("device", {})
    peak = device.get("peak GB/s")
    axes = fitting([read.rate for read in reads], peak or 0.0)
    curves = [
        Series(loads, [point(read, axes) for read in reads if read.loads == loads])
        for loads in sorted({read.loads for read in reads})
    ]
    return TEMPLATES.get_template("curve.svg").render(
        gpu=baseline["machine_info"]["gpu"],
        date=str(baseline.get("datetime", ""))[:10],
        clock=device.get("clock"),
        ticks=[(axes.x(2**power), str(2**power)) for power in range(8)],
        rows=axes.rows(),
        law=law(axes, *latency(baseline), peak, reads[0].multiprocessors),
        curves=curves,
        columns=[column(kib, reads, axes) for kib in sorted({read.kib for read in reads})],
        sizes=[(256 * blocks, radius) for blocks, radius in RADII.items()],
        legend=LEGEND,
        left=LEFT,
        right=RIGHT,
        top=TOP,
        bottom=BOTTOM,
    )


def recorded(baseline: dict[str, Any]) -> list[Read]:
    """Return the reads of a baseline, by loads and blocks."""
    found = ((POINT.search(bench["name"]), bench) for bench in baseline["benchmarks"])
    reads = [_read(int(match[1]), int(match[2]), bench) for match, bench in found if match]
    return sorted(reads, key=lambda read: (read.loads, read.blocks))


def _read(loads: int, blocks: int, bench: dict[str, Any]) -> Read:
    grid, block = bench["extra_info"]["grid"], bench["extra_info"]["block"]
    return Read(loads, blocks, blocks * block, grid // blocks, bandwidth(bench))


def latency(baseline: dict[str, Any]) -> tuple[float | None, str]:
    """Return the seconds of one load that DRAM answers, and whose they are.

    Claims hold a bandwidth against the published latency, and so does the picture. Of a GPU that
    has none it is the recorded one.
    """
    gpu = of(baseline["machine_info"]["gpu"])
    if gpu and gpu.dram_latency:
        return gpu.dram_latency, "published"
    found = ((CHASE.search(bench["name"]), bench) for bench in baseline["benchmarks"])
    chases = [float(bench["stats"]["median"]) / int(match[1]) for match, bench in found if match]
    return next(iter(chases), None), "recorded"


def fitting(rates: list[float], peak: float) -> Axes:
    """Return axes from an octave of 250 GB/s up to a third above the fastest."""
    low = 250.0 * 2 ** math.floor(math.log2(min(rates) / 250))
    return Axes(low, 1.35 * max(*rates, peak))


def point(read: Read, axes: Axes) -> Point:
    """Return where a read is drawn."""
    kib = f"{read.kib:g} KiB: {read.loads} loads × {read.threads} threads"
    says = f"{kib}, {gigabytes(read.rate)} GB/s"
    return Point(axes.x(read.kib), axes.y(read.rate), RADII[read.blocks], says)


def column(kib: float, reads: list[Read], axes: Axes) -> Column:
    """Return what is written below the reads of so many KiB."""
    rates = sorted(read.rate for read in reads if read.kib == kib)
    written = list(map(gigabytes, rates))
    ends = written[:1] if len(rates) == 1 else [written[0], written[-1]]
    return Column(axes.x(kib), axes.y(rates[0]), " – ".join(ends))


def law(
    axes: Axes, seconds: float | None, whose: str, peak: float | None, multiprocessors: int
) -> Law | None:
    """Return the limit: GB/s = bytes in flight on all SMs / latency, at most the peak."""
    if not (seconds and peak):
        return None
    per_kib = KIB * multiprocessors / seconds / 1e9
    first = max(LEAST_KIB, axes.slowest / per_kib)
    start = Place(axes.x(first), axes.y(first * per_kib))
    knee = Place(axes.x(peak / per_kib), axes.y(peak))
    angle = math.degrees(math.atan2(knee.y - start.y, knee.x - start.x))
    middle = Place(round((start.x + knee.x) / 2, 1), round((start.y + knee.y) / 2, 1))
    written = f"{peak / per_kib:.1f}", gigabytes(peak), f"{seconds * 1e9:.0f}"
    return Law(start, knee, middle, round(angle, 1), *written, whose, multiprocessors)


CURVE: Final = Picture("little", "bytes-in-flight.svg", recorded, curve_svg)


def main(root: Path = ROOT) -> int:
    """Draw the curve of each GPU that has one recorded, into its folder."""
    return draw(root, CURVE)


if __name__ == "__main__":
    sys.exit(main())
