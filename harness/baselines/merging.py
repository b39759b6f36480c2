"""Several recordings of the same code and model become one, with the medians of all runs.

For each benchmark the run in the middle stands for all. The samples of one run share a placement
of its buffers, a temperature and its neighbours; only other runs tell how far a median may move
with no change at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median_low
from typing import Any, Final

from harness.baselines import Baseline, BaselineError
from harness.baselines.definition import changes, source_changed
from harness.baselines.settings import cards, incomparable
from harness.baselines.shape import CARDS, COPY, COPY_RUNS, NO_CLAIMS, NOT_COMPARABLE, RUNS

SECTIONS: Final = ("pairs", "claims", NOT_COMPARABLE)  # some runs time benchmarks alone


def merged(runs: Sequence[Baseline]) -> dict[str, Any]:
    """Return one document of all runs, in whichever order; that of a single run as it is.

    A benchmark that a run lacks has the medians of the others. A claim is that of the newest run
    that has it, and so are its pairs: it was judged by the code that will be held against it, and
    two sessions are not mixed.

    Raises
    ------
    BaselineError
        Two runs are not of the same model and settings, or a benchmark is not of the same work.
    """
    newest, *older = ordered = sorted(runs, key=_recorded, reverse=True)
    if not older:
        return newest.document
    for other in older:
        _refuse_another_card(newest, other)
    names = dict.fromkeys(b["fullname"] for run in ordered for b in run.document["benchmarks"])
    together = {
        "benchmarks": [_benchmark(name, ordered) for name in names],
        "device": _device(ordered),
        **{section: _newest(section, ordered) for section in SECTIONS},
    }
    facts = {key: value for key, value in newest.document.items() if key != NO_CLAIMS}
    return {**facts, **together}


def _recorded(run: Baseline) -> str:
    return str(run.document.get("datetime", ""))


def _newest(section: str, ordered: Sequence[Baseline]) -> dict[str, Any]:
    """Return all entries of a section, each of the first run that has it."""
    found: dict[str, Any] = {}
    for run in reversed(ordered):
        found |= run.document.get(section, {})
    return found


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
    known_cards = sorted({card for run in runs for card in cards(run.document)})
    return {**devices[0], **middle} | ({CARDS: known_cards} if known_cards else {})
