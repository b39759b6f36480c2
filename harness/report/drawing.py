"""What is recorded, as pictures: beside each GPU's baselines, and in the page of a run."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from harness.baselines import PUBLISHED, Baseline, BaselineError, newest, write_whole
from harness.spelling import gigabytes

Document = dict[str, Any]

# Styles of a picture begin with its class: inside a page they would reach everything else.
TEMPLATES: Final = Environment(
    loader=PackageLoader("harness.report", "templates"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=StrictUndefined,
)
TEMPLATES.filters["gigabytes"] = gigabytes


@dataclass(frozen=True)
class Picture:
    """A picture of a recording.

    Attributes
    ----------
    section
        Whose claims it is about.
    shows
        Returns what of a recording it shows, if there is any.
    """

    section: str
    file: str
    shows: Callable[[Document], object]
    svg: Callable[[Document], str]


def bandwidth(benchmark: Mapping[str, Any]) -> float:
    """Return GB/s: the bytes over the median that is shown, not what was stored of one run."""
    return float(benchmark["extra_info"]["bytes"] / benchmark["stats"]["median"] / 1e9)


def logarithmic(value: float, low: float, high: float, start: float, end: float) -> float:
    """Return the pixel of a value on a logarithmic axis that has `low` at start, `high` at end."""
    return round(start + (end - start) * math.log(value / low) / math.log(high / low), 1)


def clamped(value: float, low: float, high: float, start: float, end: float) -> float:
    """Return the same, and the nearer end of the axis for a value that lies beyond it."""
    return logarithmic(min(max(value, low), high), low, high, start, end)


def draw(root: Path, picture: Picture) -> int:
    """Write the picture of each GPU whose baseline shows it; return 1 if a baseline is damaged."""
    problems: list[str] = []
    for folder in recorded_gpus(root):
        baseline = newest(folder, problems)
        if baseline and picture.shows(baseline.document):
            write_whole(folder / picture.file, picture.svg(baseline.document))
            print(folder / picture.file)
    print(*problems, sep="\n", end="\n" if problems else "", file=sys.stderr)
    return 1 if problems else 0


def recorded_gpus(root: Path) -> list[Path]:
    """Return the folder of each GPU."""
    folders = (each for each in root.iterdir() if each.is_dir())
    return sorted(each for each in folders if each.name != PUBLISHED.parent.name)


def newest_of_each(root: Path) -> list[Baseline]:
    """Return the newest baseline of each GPU.

    Raises
    ------
    BaselineError
        One is damaged.
    """
    problems: list[str] = []
    found = [newest(folder, problems) for folder in recorded_gpus(root)]
    if problems:
        raise BaselineError("\n".join(problems))
    return [baseline for baseline in found if baseline]
