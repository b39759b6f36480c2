"""README's times of the three effects: the published kernels and their counterfactuals, by GPU."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from harness.baselines import ROOT, Baseline
from harness.report.drawing import newest_of_each
from harness.spelling import digits

TIMED: Final = re.compile(r"test_the_ladder_is_timed\[(.+)\]$")
# By step: what is told of it, and the parameters under which it is timed.
STEPS: Final = {
    "V2 to V3": (
        ("as published: V2 {}, V3 {}", "reduce_v2", "reduce_v3"),
        ("with a store: V2 {}, V3 {}", "reduce_v2-store", "reduce_v3-store"),
        ("V2 with a store and a mask: {}", "reduce_v2-mask-store"),
        ("V4 with a store: {}", "reduce_v4-store"),
    ),
    "V3 to V4": (
        ("as published: V3 {}, V4 {}", "reduce_v3", "reduce_v4"),
        ("on lines of their own: V3 {}, V4 {}", "reduce_v3-spread", "reduce_v4-spread"),
        ("with a store: V3 {}, V4 {}", "reduce_v3-store", "reduce_v4-store"),
        ("the atomics alone: {}, on lines of their own {}", "atomic_alone", "atomic_alone-spread"),
    ),
    "V6 to V7": (
        ("as published: V6 {}, V7 {}", "reduce_v6", "reduce_v7"),
        ("V6 with a signed stride: {}", "reduce_v6-int_stride"),
    ),
}


def effects(root: Path = ROOT) -> str:
    """Return a table for each GPU that has the ladder recorded.

    Raises
    ------
    BaselineError
        A baseline is damaged: what it holds would vanish from README.
    """
    return "\n".join(filter(None, map(_told, newest_of_each(root))))


def _told(baseline: Baseline) -> str:
    """Return the table of a GPU, or nothing if it lacks one of the times."""
    found = ((TIMED.search(each["name"]), each) for each in baseline.document["benchmarks"])
    times = {match[1]: digits(each["stats"]["median"] * 1e6) for match, each in found if match}
    if any(name not in times for parts in STEPS.values() for _, *names in parts for name in names):
        return ""
    rows = "".join(
        f"| {step} | {'; '.join(text.format(*map(times.get, names)) for text, *names in parts)} |\n"
        for step, parts in STEPS.items()
    )
    return f"| step | µs, recorded on {baseline.label} |\n|---|---|\n{rows}"
