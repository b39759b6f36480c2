"""Several recordings of the same code on the same card become one, with the medians of all runs.

For each benchmark the run in the middle stands for all. The samples of one run share a placement
of its buffers, a temperature and its neighbours; only other runs tell how far a median may move
with no change at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median_low
from typing import Any

from harness.baselines import Baseline, BaselineError
from harness.baselines.definition import changes, source_changed
from harness.baselines.settings import incomparable
from harness.baselines.shape import COPY, COPY_RUNS, RUNS


def merged(runs: Sequence[Baseline]) -> dict[str, Any]:
    """Return one document of all runs; that of a single run as it is.

    A benchmark that a run lacks has the medians of the others. Pairs are those of the first run
    that has them.

    Raises
    ------
    BaselineError
        Two runs are not of the same card and settings, or a benchmark is not of the same work.
    """
    first = runs[0]
    if len(runs) == 1:
        return first.document
    for other in runs[1:]:
        _refuse_another_card(first, other)
    names = dict.fromkeys(b["fullname"] for run in runs for b in run.document["benchmarks"])
    pairs: dict[str, Any] = {}
    for run in runs:
        pairs = {**run.document.get("pairs", {}), **pairs}
    together = {"benchmarks": [_benchmark(name, runs) for name in names], "pairs": pairs}
    return {**first.document, "device": _device(runs), **together}


def _refuse_another_card(first: Baseline, other: Baseline) -> None:
    if differ := incomparable(first.document, other.document):
        raise BaselineError(
            f"{first.path} and {other.path} differ in {'; '.join(differ)}: "
            "merge only runs of one card and one setting"
        )


def _benchmark(name: str, runs: Sequence[Baseline]) -> dict[str, Any]:
    found = {run.path: each for run in runs if (each := run.benchmark(name))}
    (path, first), *others = found.items()
    for other_path, other in others:
        facts = first["extra_info"], other["extra_info"]
        if differ := [*changes(*facts), *source_changed(*facts)]:
            raise BaselineError(
                f"{name} differs between {path} and {other_path} in {'; '.join(differ)}: "
                "merge only runs of the same code"
            )
    middle = median_low(each["stats"]["median"] for each in found.values())
    chosen = next(each for each in found.values() if each["stats"]["median"] == middle)
    taken = [seconds for each in found.values() for seconds in medians(each)]
    return {**chosen, "extra_info": {**chosen["extra_info"], RUNS: taken}}


def medians(benchmark: Mapping[str, Any]) -> list[float]:
    """Return the medians of all runs behind a stored benchmark, in seconds."""
    stored = benchmark.get("extra_info", {}).get(RUNS)
    return [float(seconds) for seconds in stored or [benchmark["stats"]["median"]]]


def _device(runs: Sequence[Baseline]) -> dict[str, Any]:
    devices: list[dict[str, Any]] = [run.document.get("device", {}) for run in runs]
    known = [each for each in devices if each.get(COPY)]
    copies = [rate for each in known for rate in each.get(COPY_RUNS) or [each[COPY]]]
    middle = {COPY: median_low(copies), COPY_RUNS: copies} if copies else {}
    return {**devices[0], **middle}
