"""README's part on sums of every size: each recorded GPU's picture and table, or how to record."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from harness.baselines import ROOT, Baseline
from harness.report.drawing import newest_of_each
from harness.report.markdown import cell
from harness.report.sizes import FILE
from harness.report.sums import Size, power, recorded
from harness.spelling import digits

MISSING: Final = """\
No GPU has these sums recorded yet. On one, with PyTorch, Triton and cuda-cccl beside CuPy:
`tox -e record`, `python -m harness.baselines promote build/baseline.json`,
`python -m harness.report.sizes`, `tox -e claims`, `python -m harness.report.readme`.
"""
HEAD: Final = (
    "| n floats | kernel of `reduce_sum`, µs | GB/s | of the peak | fastest library | its µs "
    "| times as long as `reduce_sum` |\n|--:|--:|--:|--:|---|--:|---|\n"
)


def every_size(root: Path = ROOT) -> str:
    """Return the picture, if it is drawn, and the table of each GPU that has sums recorded.

    Raises
    ------
    BaselineError
        A baseline is damaged: what it holds would vanish from README.
    """
    found = newest_of_each(root)
    told = [_told(each, sizes) for each in found if (sizes := recorded(each.document))]
    return "\n".join(told) or MISSING


def _told(baseline: Baseline, sizes: list[Size]) -> str:
    peak = baseline.document.get("device", {}).get("peak GB/s")
    rows = "".join(_row(size, peak) for size in sizes)
    names = dict.fromkeys(library.name for size in sizes for library in size.libraries)
    return (
        f"{_picture(baseline)}{HEAD}{rows}\nRecorded on {baseline.label}, against "
        f"{cell(', '.join(names))}: medians, and the ratio of times with its 99 % interval.\n"
    )


def _picture(baseline: Baseline) -> str:
    folder = baseline.path.parent
    if not (folder / FILE).is_file():
        return ""
    says = f"A sum of n floats on {baseline.gpu}: times as long as reduce_sum, by library and size"
    return f"![{says}](baselines/{folder.name}/{FILE})\n\n"


def _row(size: Size, peak: float | None) -> str:
    fastest = size.fastest
    cells = (
        *(power(size.n), digits(size.seconds * 1e6), digits(size.rate), cell(size.share(peak))),
        *(cell(fastest.name), digits(fastest.seconds * 1e6), fastest.times),
    )
    return f"| {' | '.join(cells)} |\n"
