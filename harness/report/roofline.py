"""The roofline as a picture: `python -m harness.report.roofline` draws every recorded GPU's."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.baselines import ROOT
from harness.models import datasheet
from harness.report.drawing import TEMPLATES, Picture, clamped, draw
from harness.spelling import gigabytes

POINT: Final = re.compile(r"test_the_roofline_is_timed\[(.+)\]$")
CHAIN: Final = "chain-"
GEMM: Final = "gemm-"
TENSOR: Final = "gemm-fp16"

LEFT, RIGHT, TOP, BOTTOM = 66.0, 836.0, 110.0, 530.0
SLIGHTEST, HIGHEST = 0.1, 6000.0  # FLOP/B at LEFT and RIGHT
LABELS: Final = 2.4  # FLOP/B where the names of the common kernels stand
LINE: Final = 17.0  # pixels from name to name


@dataclass(frozen=True)
class Point:
    """One kernel: FLOP per byte and FLOP per second, as measured."""

    name: str
    intensity: float
    rate: float

    @property
    def bandwidth(self) -> float:
        """Bytes per second of its least traffic."""
        return self.rate / self.intensity


@dataclass(frozen=True)
class Roof:
    """Bytes per second under the slope, FLOP per second under the flat part."""

    bandwidth: float
    peak: float

    @property
    def ridge(self) -> float:
        """FLOP per byte where the two meet."""
        return self.peak / self.bandwidth

    def at(self, intensity: float) -> float:
        """Return the FLOP per second that the roof allows."""
        return min(intensity * self.bandwidth, self.peak)


@dataclass(frozen=True)
class Mark:
    """A point of the picture; its text, if any, stands at (text_x, text_y)."""

    x: float
    y: float
    kind: str
    text: str = ""
    detail: str = ""
    text_x: float = 0.0
    text_y: float = 0.0


class Axes:
    """Both logarithmic: FLOP per byte to the right, FLOP per second upwards, in pixels."""

    def __init__(self, rates: Iterable[float]) -> None:
        rates = list(rates)
        self.lowest, self.highest = min(rates) / 2, max(rates) * 1.7

    def x(self, intensity: float) -> float:
        """Return the pixel of FLOP per byte."""
        return clamped(intensity, SLIGHTEST, HIGHEST, LEFT, RIGHT)

    def y(self, rate: float) -> float:
        """Return the pixel of FLOP per second."""
        return clamped(rate, self.lowest, self.highest, BOTTOM, TOP)

    def path(self, roof: Roof) -> str:
        """Return the roof as an SVG path, cut where the picture ends."""
        start = max(SLIGHTEST, self.lowest / roof.bandwidth)
        corners = [(start, roof.at(start)), (roof.ridge, roof.peak), (HIGHEST, roof.peak)]
        return "M" + " L".join(f"{self.x(i)},{self.y(rate)}" for i, rate in corners)

    def slope(self) -> float:
        """Return the degrees by which the roof rises."""
        across = (RIGHT - LEFT) / math.log(HIGHEST / SLIGHTEST)
        up = (BOTTOM - TOP) / math.log(self.highest / self.lowest)
        return round(-math.degrees(math.atan2(up, across)), 1)


def roofline_svg(baseline: dict[str, Any]) -> str:
    """Return the recorded points under the measured roof and the one of the data sheet.

    Raises
    ------
    ValueError
        The baseline holds no chain, so there is no roof.
    """
    points, chains = _points(baseline), _chains(baseline)
    if not chains:
        raise ValueError("no chain test_the_roofline_is_timed[chain-...] is recorded")
    device, name = baseline.get("device", {}), baseline["machine_info"]["gpu"]
    measured = _measured(chains, device)
    limits = _limits(name, device)
    axes = Axes([*(p.rate for p in points), *(roof.peak for roof in limits.values())])
    return TEMPLATES.get_template("roofline.svg").render(
        gpu=name,
        date=str(baseline.get("datetime", ""))[:10],
        clock=device.get("clock"),
        axes=axes,
        measured=measured,
        copied="copy GB/s" in device,
        limits=limits,
        marks=[*_chain_marks(axes, chains), *_named_marks(axes, points, limits, measured)],
        x_ticks=[(axes.x(10.0**power), f"{10.0**power:,g}") for power in range(-1, 4)],
        y_ticks=[(axes.y(rate), f"{rate / 1e12:,g}") for rate in _decades(axes)],
        left=LEFT,
        right=RIGHT,
        top=TOP,
        bottom=BOTTOM,
    )


def _points(baseline: dict[str, Any]) -> list[Point]:
    found = ((POINT.search(bench["name"]), bench) for bench in baseline["benchmarks"])
    return [_point(match[1], bench) for match, bench in found if match]


def _chains(baseline: dict[str, Any]) -> list[Point]:
    return [point for point in _points(baseline) if point.name.startswith(CHAIN)]


def _point(name: str, bench: dict[str, Any]) -> Point:
    flop, size = bench["extra_info"]["flop"], bench["extra_info"]["bytes"]
    return Point(name, flop / size, flop / bench["stats"]["median"])


def _measured(chains: list[Point], device: dict[str, Any]) -> Roof:
    """Return the roof of this card: what a copy reaches, as the claims have it, and a chain."""
    copy = device.get("copy GB/s", 0) * 1e9
    return Roof(copy or max(p.bandwidth for p in chains), max(p.rate for p in chains))


def _limits(name: str, device: dict[str, Any]) -> dict[str, Roof]:
    """Return the roofs by peak, "fp32" and "fp16 tensor", as far as the data sheet knows them."""
    gpu = datasheet.of(name)
    if gpu is None:
        return {}
    bandwidth = device.get("peak GB/s", 0) * 1e9 or gpu.bandwidth
    found = {"fp32": gpu.fp32_peak, "fp16 tensor": gpu.tensor_peak}
    return {unit: Roof(bandwidth, peak) for unit, peak in found.items() if peak}


def _chain_marks(axes: Axes, chains: list[Point]) -> list[Mark]:
    return [Mark(axes.x(p.intensity), axes.y(p.rate), "chain") for p in chains]


def _named_marks(
    axes: Axes, points: list[Point], limits: dict[str, Roof], measured: Roof
) -> list[Mark]:
    """Return the kernels that have a name, each with its rate and its share of the roof."""
    common, gemms = [], []
    for point in points:
        roof = limits.get("fp16 tensor" if point.name == TENSOR else "fp32", measured)
        share = f"{100 * point.rate / roof.at(point.intensity):.0f} %"
        x, y = axes.x(point.intensity), axes.y(point.rate)
        if point.name.startswith(GEMM):
            text = f"GEMM {point.name.removeprefix(GEMM)}"
            detail = f"{point.rate / 1e12:,.0f} TFLOP/s, {share}"
            gemms.append(Mark(x, y, "gemm", text, detail, RIGHT, y + 22))
        elif not point.name.startswith(CHAIN):
            detail = f"{gigabytes(point.bandwidth / 1e9)} GB/s, {share}"
            text = point.name.replace("_", " ")
            common.append(Mark(x, y, "common", text, detail, axes.x(LABELS), y + 4))
    return gemms + _apart(common)


def _apart(marks: list[Mark]) -> list[Mark]:
    """Return the marks with their texts at least a line apart, around where they would stand."""
    rising = sorted(marks, key=lambda mark: mark.y)
    if not rising:
        return []
    middle = sum(mark.text_y for mark in rising) / len(rising)
    first = middle - LINE * (len(rising) - 1) / 2
    return [
        Mark(m.x, m.y, m.kind, m.text, m.detail, m.text_x, round(first + LINE * row, 1))
        for row, m in enumerate(rising)
    ]


def _decades(axes: Axes) -> list[float]:
    powers = range(math.ceil(math.log10(axes.lowest)), math.floor(math.log10(axes.highest)) + 1)
    return [10.0**power for power in powers]


ROOFLINE: Final = Picture("roofline", "roofline.svg", _chains, roofline_svg)


def main(root: Path = ROOT) -> int:
    """Draw the roof of each GPU that has one recorded, into its folder."""
    return draw(root, ROOFLINE)


if __name__ == "__main__":
    sys.exit(main())
