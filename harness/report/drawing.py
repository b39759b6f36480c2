"""Draw a picture of each GPU's newest baseline into its folder."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from harness.baselines import newest, write_whole

PUBLISHED: Final = "seminar-a100-80gb"  # a table to hold against, no recording of ours
Document = dict[str, Any]


def draw(
    root: Path, file: str, drawable: Callable[[Document], object], svg: Callable[[Document], str]
) -> int:
    """Write `file` for each GPU whose baseline is drawable; return 1 if a baseline is damaged."""
    problems: list[str] = []
    for folder in sorted(
        each for each in root.iterdir() if each.is_dir() and each.name != PUBLISHED
    ):
        baseline = newest(folder, problems)
        if baseline and drawable(baseline.document):
            write_whole(folder / file, svg(baseline.document))
            print(folder / file)
    print(*problems, sep="\n", end="\n" if problems else "", file=sys.stderr)
    return 1 if problems else 0
