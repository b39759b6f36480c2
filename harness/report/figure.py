"""The reduce ladder as a picture: `python -m harness.report.figure` draws every recorded GPU's."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.baselines import PUBLISHED, ROOT, read
from harness.report.drawing import TEMPLATES, Picture, bandwidth, clamped, draw
from harness.spelling import duration, gigabytes

RUNG: Final = re.compile(r"\[reduce_(v[1-7])\]$")

LEFT, RIGHT, TOP, ROW = 226.0, 676.0, 92.0, 50.0
SLOWEST, FASTEST = 1.0, 10_000.0  # GB/s at LEFT and RIGHT


@dataclass(frozen=True)
class Bar:
    """One time of one rung: where its bar ends, and what stands beside it."""

    end: float
    time: str
    rate: str


@dataclass(frozen=True)
class Rung:
    """A row of the picture."""

    name: str
    idea: str
    y: float
    recorded: Bar | None
    published: Bar


def ladder_svg(baseline: dict[str, Any], published: dict[str, Any] | None = None) -> str:
    """Return the ladder recorded in `baseline` beside the published one, bandwidth on a log axis.

    Raises
    ------
    ValueError
        The baseline holds no rung.
    """
    table = published or read(PUBLISHED).document
    ours, theirs = _rungs(baseline), _rungs(table)
    if not ours:
        raise ValueError("no rung test_the_ladder_is_timed[reduce_v1..7] is recorded")
    rungs = [
        Rung(
            name.upper(),
            _idea(theirs[name]),
            TOP + ROW * row,
            _bar(ours[name], bandwidth(ours[name])) if name in ours else None,
            _bar(theirs[name], theirs[name]["extra_info"]["GB/s"]),  # as it is printed
        )
        for row, name in enumerate(sorted(theirs))
    ]
    return TEMPLATES.get_template("ladder.svg").render(
        gpu=baseline["machine_info"]["gpu"],
        date=str(baseline.get("datetime", ""))[:10],
        clock=baseline.get("device", {}).get("clock"),
        published=table["machine_info"]["gpu"].partition(" ")[0],
        rungs=rungs,
        lines=_lines(baseline.get("device", {})),
        ticks=[(place(10.0**power), f"{10**power:,}") for power in range(5)],
        left=LEFT,
        right=RIGHT,
        top=TOP,
        bottom=TOP + ROW * len(rungs),
        row=ROW,
    )


def place(rate: float) -> float:
    """Return where a bandwidth in GB/s lies on the axis, in pixels."""
    return clamped(rate, SLOWEST, FASTEST, LEFT, RIGHT)


def _rungs(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found = ((RUNG.search(bench["name"]), bench) for bench in document["benchmarks"])
    return {match[1]: bench for match, bench in found if match}


def _idea(bench: dict[str, Any]) -> str:
    return str(bench["extra_info"]["idea"])


def _bar(bench: dict[str, Any], rate: float) -> Bar:
    return Bar(place(rate), duration(bench["stats"]["median"]), f"{gigabytes(rate)} GB/s")


def _lines(device: dict[str, Any]) -> list[tuple[float, str]]:
    """Return the vertical lines: the memory's peak, and what a copy reaches."""
    named = {"peak": device.get("peak GB/s"), "copy": device.get("copy GB/s")}
    return [(place(rate), f"{name} {gigabytes(rate)}") for name, rate in named.items() if rate]


LADDER: Final = Picture("reduce", "ladder.svg", _rungs, ladder_svg)


def main(root: Path = ROOT) -> int:
    """Draw the ladder of each GPU that has a recorded one, into its folder."""
    return draw(root, LADDER)


if __name__ == "__main__":
    sys.exit(main())
