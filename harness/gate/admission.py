"""What may become part of a baseline: times that can be true, and runs that nothing set apart.

The gate takes its limits from how far the runs lie apart. A time that is none, a run taken twice or
one that was disturbed is stored once, and hides slow-downs every night after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from statistics import median
from typing import Final

from harness.baselines import Baseline, BaselineError
from harness.baselines.shape import LONGEST, SHORTEST, TIME
from harness.gate.damage import damage
from harness.gate.limits import STEPS, percent, resolution
from harness.gate.samples import Timing, memory_peak, plausible, timings
from harness.timing import ImplausibleTime
from harness.watch import trouble

# Twice what the gate allows without any runs to go by. On an H200 the farthest of 376 medians lies
# 3.1 % away, of a kernel of 3 us; two placements of one are 4.9 % apart.
ALONE: Final = 0.10
# Benchmarks have little noise in common: there the median of 94 moved by 0.05 % from run to run.
ALL: Final = 0.03
SEVERAL: Final = 5  # benchmarks, fewer of which may move together by chance

Recorded = Mapping[str, Timing]


def refuse_untrue(run: Baseline) -> None:
    """Look at a recording by the rules of a night: what the gate refuses must not be its anchor.

    Raises
    ------
    BaselineError
        It is damaged, or a time cannot be true or was taken on a throttled GPU.
    """
    if wrong := damage(run.document):
        raise BaselineError(f"{run.path} is damaged ({wrong}): record that run again")
    peak = memory_peak(run.document)
    for name, timing in timings(run.document).items():
        if wrong := _wrong(timing, peak):
            raise BaselineError(
                f"{run.path}: benchmark {name} cannot be stored ({wrong}): record that run again"
            )


def _wrong(timing: Timing, peak: float | None) -> str:
    every = (timing.median, *timing.runs, *timing.samples)
    try:
        _, refused = plausible(replace(timing, samples=every), peak)
    except ImplausibleTime as error:
        return str(error)
    refused += [
        f"{seconds:g} s is no time of {SHORTEST:g} to {LONGEST:g} s"
        for seconds in every
        if not TIME(seconds)
    ]
    throttled = trouble({"throttle_reasons": sorted(timing.throttled)}, 0.0)
    return refused[0] if refused else throttled


def refuse_copies(runs: Sequence[Baseline]) -> None:
    """Tell recordings apart by their medians, of which no two have all: names and dates change.

    Raises
    ------
    BaselineError
        Two hold the same run, such as a promoted baseline and one that it was merged from.
    """
    found = [(run.path, timings(run.document)) for run in runs]
    for (one, medians), (other, others) in combinations(found, 2):
        if _same(medians, others):
            raise BaselineError(
                f"{one} and {other} hold the same run, and no run differs from itself: "
                "name each recording once, and none that is in a baseline already"
            )


def _same(one: Recorded, other: Recorded) -> bool:
    shared = one.keys() & other.keys()
    return bool(shared) and all(set(one[name].runs) & set(other[name].runs) for name in shared)


def refuse_disturbed(runs: Sequence[Baseline]) -> None:
    """Look for runs that lie far outside the others, whose limits would be as wide.

    They are held against medians, which a disturbed run among several does not move.

    Raises
    ------
    BaselineError
        A run moved as a whole, or some benchmarks of it did.
    """
    found = [timings(run.document) for run in runs]
    names = dict.fromkeys(name for recorded in found for name in recorded)
    middles = {name: median(_medians(name, found)) for name in names}
    told = [
        f"{run.path}: {moved}"
        for run, recorded in zip(runs, found, strict=True)
        if (moved := _moved(recorded, middles))
    ]
    if told:
        raise BaselineError(
            "\n".join([*told, "a run so far from the others hides slow-downs: record it again"])
        )


def _medians(name: str, found: Sequence[Recorded]) -> list[float]:
    return [seconds for recorded in found if name in recorded for seconds in recorded[name].runs]


def _moved(recorded: Recorded, middles: Mapping[str, float]) -> str:
    """Say how far a run lies from the medians of all; nothing if no farther than runs do."""
    whole = median(timing.median / middles[name] for name, timing in recorded.items())
    if len(recorded) >= SEVERAL and abs(whole - 1) > ALL:
        return f"its {len(recorded)} benchmarks moved together, by {percent(whole)}"
    far = [words for name in recorded if (words := _far(recorded[name], middles[name]))]
    more = f", and {len(far) - 1} more benchmarks so" if far[1:] else ""
    return f"{far[0]} from the median of all runs{more}" if far else ""


def _far(timing: Timing, middle: float) -> str:
    farthest = max((seconds / middle for seconds in timing.runs), key=lambda each: abs(each - 1))
    allowed = max(ALONE, STEPS * resolution(timing.clock) / middle)
    return f"{timing.name} is {percent(farthest)}" if abs(farthest - 1) > allowed else ""
