"""Sums of every size as a picture: `python -m harness.report.sizes` draws every recorded GPU's.

Both axes are logarithmic. What takes far longer than `reduce_sum` is cut off and marked, so that
what comes close to it can be told apart; what is faster is never cut off.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.baselines import ROOT, slug
from harness.report.drawing import TEMPLATES, Picture, draw, logarithmic
from harness.report.sums import Library, Size, power, recorded
from harness.spelling import digits

FILE: Final = "sums.svg"
OURS: Final = "reduce_sum"

EDGE, LEFT, RIGHT, END = 54.0, 190.0, 820.0, 840.0  # the grid, and in it the points
TOP, BOTTOM = 92.0, 430.0
LEAST, MOST = 0.95, 2.2  # times as long, at BOTTOM (or less) and TOP
ROWS: Final = (1, 1.1, 1.25, 1.5, 1.75, 2)
LINE, MARK = 16.0, 30.0  # pixels from name to name, from mark to mark of what is cut off
COLUMN: Final = 38.0  # pixels that a column of numbers needs


@dataclass(frozen=True)
class Point:
    """One sum by a library.

    Attributes
    ----------
    x, y
        Where the line goes through; above TOP if it takes too long for the axis.
    mark
        Where that is marked: y, or a place below TOP.
    says
        What it tells a pointer.
    cut
        Times as long, where the axis does not show it.
    """

    x: float
    y: float
    mark: float
    says: str
    cut: str = ""


@dataclass(frozen=True)
class Series:
    """The sums by a library, and where its name stands."""

    name: str
    style: str
    points: list[Point]
    name_y: float


@dataclass(frozen=True)
class Column:
    """What stands below the axis at a size."""

    x: float
    n: str
    microseconds: str
    share: str


@dataclass(frozen=True)
class Axes:
    """Where n floats and a ratio of times are drawn, in pixels."""

    fewest: int
    most: int
    least: float

    def x(self, n: int) -> float:
        """Return the pixel of n floats."""
        return logarithmic(n, self.fewest, max(self.most, 2 * self.fewest), LEFT, RIGHT)

    def y(self, longer: float) -> float:
        """Return the pixel of a ratio, on the axis or above it."""
        return logarithmic(longer, self.least, MOST, BOTTOM, TOP)


def sums_svg(baseline: dict[str, Any]) -> str:
    """Return the sums recorded in `baseline`: each library's time over that of `reduce_sum`.

    Raises
    ------
    ValueError
        The baseline holds no sum by a library.
    """
    sizes = recorded(baseline)
    if not sizes:
        raise ValueError("no pairs LIBRARY / reduce_sum, n = N are recorded")
    device, axes = baseline.get("device", {}), fitting(sizes)
    return TEMPLATES.get_template("sums.svg").render(
        gpu=baseline["machine_info"]["gpu"],
        date=str(baseline.get("datetime", ""))[:10],
        clock=device.get("clock"),
        rows=[(axes.y(longer), f"{longer:g}") for longer in ROWS],
        level=axes.y(1),
        curves=curves(sizes, axes),
        columns=columns(sizes, axes, device.get("peak GB/s")),
        edge=EDGE,
        left=LEFT,
        end=END,
        top=TOP,
        bottom=BOTTOM,
    )


def fitting(sizes: Sequence[Size]) -> Axes:
    """Return axes for these sizes, and down to the library that is faster than all others."""
    fastest = min(size.fastest.longer.value for size in sizes)
    return Axes(sizes[0].n, sizes[-1].n, min(LEAST, 0.97 * fastest))


def curves(sizes: Sequence[Size], axes: Axes) -> list[Series]:
    """Return the line of each library."""
    points: dict[str, list[Point]] = {}
    for size in sizes:
        for library, point in _points(size, axes):
            points.setdefault(library, []).append(point)
    names = _apart({OURS: axes.y(1)} | {name: found[0].mark for name, found in points.items()})
    return [Series(name, slug(name), found, names[name]) for name, found in points.items()]


def _points(size: Size, axes: Axes) -> Iterator[tuple[str, Point]]:
    """Yield each library's point; the marks of what is cut off stand one below the other."""
    x, free = axes.x(size.n), TOP
    for library in size.libraries:
        longer, y = library.longer.value, axes.y(library.longer.value)
        if longer <= MOST:
            yield library.name, Point(x, y, y, _says(size, library))
        else:
            yield library.name, Point(x, y, free, _says(size, library), f"{longer:.3g}")
            free += MARK


def _says(size: Size, library: Library) -> str:
    took = f"{library.name}, n = {size.n:,}: {digits(library.seconds * 1e6)} µs"
    return f"{took}, {library.times} times as long as {OURS}"


def _apart(places: Mapping[str, float]) -> dict[str, float]:
    """Return the places from the lowest up, each at least a line above the one before."""
    found: dict[str, float] = {}
    free = math.inf
    for name, y in sorted(places.items(), key=lambda place: -place[1]):
        found[name] = min(y, free)
        free = found[name] - LINE
    return found


def columns(sizes: Sequence[Size], axes: Axes, peak: float | None) -> list[Column]:
    """Return the numbers below the axis, from the largest size on where there is room for them."""
    found: list[Column] = []
    for size in reversed(sizes):
        x = axes.x(size.n)
        if not found or found[-1].x - x >= COLUMN:
            found.append(Column(x, power(size.n), digits(size.seconds * 1e6), size.share(peak)))
    return found


SUMS: Final = Picture("beyond", FILE, recorded, sums_svg)


def main(root: Path = ROOT) -> int:
    """Draw the sums of each GPU that has them recorded, into its folder."""
    return draw(root, SUMS)


if __name__ == "__main__":
    sys.exit(main())
