"""Where the ratio of two times comes from: measured here and now, or recorded on a GPU earlier.

Both give pairs of seconds, and one function judges them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final
from zlib import crc32

from harness.baselines import Baseline, BaselineError, slug
from harness.baselines.shape import DROPPED
from harness.evidence import Evidence, TimeRatio
from harness.spelling import sentences
from harness.timing import Budget, Pair, dependence, ratio, told
from harness.watch import NotComparable
from harness.workbench import Workbench

NOTHING_RECORDED: Final = "no recording"


class Measured:
    """Live pairs; all of them are kept for the baseline."""

    def __init__(self, bench: Workbench, budget: Budget | None = None) -> None:
        self.gpu: str | None = slug(bench.device.name)
        self.architecture: str | None = bench.device.architecture
        self.pairs: dict[str, dict[str, Any]] = {}
        self._asked: set[tuple[str, str]] = set()
        self._bench = bench
        self._budget = budget or Budget()

    def evidence(self, asked: TimeRatio) -> Evidence:
        """Measure until the ratio clears its bound or the budget is spent.

        Where the GPU was throttled or shared there is no value, and nothing is kept.

        Raises
        ------
        ValueError
            The claim has another ratio of that name.
        """
        _refuse_twice(asked, self._asked)
        seed = crc32(f"{asked.claim} {asked.what}".encode())
        device = self._bench.device
        ends = asked.numerator, asked.denominator
        try:
            pairs = self._bench.pairs(*ends, asked.bound, budget=self._budget, seed=seed)
        except NotComparable as why:
            return _unknown(asked, f"{device.name}, not comparable: {why}", device.clock)
        dropped = self._bench.watch.dropped
        self.pairs.setdefault(asked.claim, {})[asked.what] = {
            "numerator": asked.numerator.name,
            "denominator": asked.denominator.name,
            "clock": device.clock,
            "seconds": [[round(a, 10), round(b, 10)] for a, b in pairs],
            "telemetry": self._bench.watch.summary(),
            **({DROPPED: dropped} if dropped else {}),
        }
        return _judged(asked, device.name, device.clock, pairs, dropped)


class Recorded:
    """Pairs of a stored baseline, or nothing at all, which leaves every ratio undecided."""

    def __init__(self, baseline: Baseline | None) -> None:
        device = baseline.document.get("device", {}) if baseline else {}
        self.gpu: str | None = slug(baseline.gpu) if baseline else None
        self.architecture: str | None = device.get("architecture")
        self._asked: set[tuple[str, str]] = set()
        self._baseline = baseline

    def evidence(self, asked: TimeRatio) -> Evidence:
        """Look the ratio up; a recording of other workloads, or a damaged one, is not used.

        What another claim recorded of the same two workloads is the same ratio.

        Raises
        ------
        ValueError
            The claim has another ratio of that name.
        """
        _refuse_twice(asked, self._asked)
        return replace(self._found(asked), kind="recorded", of=asked.kind)

    def _found(self, asked: TimeRatio) -> Evidence:
        if self._baseline is None:
            return _unknown(asked, NOTHING_RECORDED)
        wanted = asked.numerator.name, asked.denominator.name
        try:
            own = self._baseline.pairs(asked.claim, asked.what)
            found = own or self._baseline.pairs_of(*wanted)
        except BaselineError as error:
            return _unknown(asked, "damaged recording", note=str(error))
        if found is None:
            return _unknown(asked, NOTHING_RECORDED)
        names, label = (found["numerator"], found["denominator"]), self._baseline.label
        if names != wanted:
            return _unknown(asked, f"{label}, but of {' / '.join(names)}")
        if not found["seconds"]:
            return _unknown(asked, f"{label}, but without pairs")
        pairs = [(a, b) for a, b in found["seconds"]]
        return _judged(asked, label, found["clock"], pairs, found.get(DROPPED, ()))


def _refuse_twice(asked: TimeRatio, before: set[tuple[str, str]]) -> None:
    key = asked.claim, asked.what
    if key in before:
        raise ValueError(
            f"{asked.claim} compares {asked.what!r} twice: the second recording would replace the "
            "first; give each comparison a name of its own, a parametrized one its parameter"
        )
    before.add(key)


def _unknown(asked: TimeRatio, where: str, clock: str | None = None, note: str = "") -> Evidence:
    return Evidence(asked.kind, where, clock, asked.what, None, asked.bound, note=note)


def _judged(
    asked: TimeRatio, device: str, clock: str, pairs: list[Pair], dropped: Sequence[str]
) -> Evidence:
    found = ratio(pairs)
    notes = (f"{asked.what}: {why}" for why in (dependence(pairs), told(dropped)) if why)
    return Evidence(
        asked.kind,
        device,
        clock,
        asked.what,
        found.value,
        asked.bound,
        found.ends,
        note=sentences(notes),
    )
