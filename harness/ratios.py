"""Where the ratio of two times comes from: measured here and now, or recorded on a GPU earlier.

Both give pairs of seconds, and one function judges them.
"""

from __future__ import annotations

import math
from typing import Any, Literal
from zlib import crc32

from harness.baselines import Baseline, slug
from harness.devices import Workload
from harness.evidence import Evidence, Kind
from harness.timing import Bound, Budget, Ideal, Pair, ratio
from harness.watch import NotComparable
from harness.workbench import Workbench

NOTHING_RECORDED = "no recording"


class Measured:
    """Live pairs; all of them are kept for the baseline."""

    def __init__(self, bench: Workbench, budget: Budget | None = None) -> None:
        self.gpu: str | None = slug(bench.device.name)
        self.pairs: dict[str, dict[str, Any]] = {}
        self._bench = bench
        self._budget = budget or Budget()

    def evidence(
        self,
        claim: str,
        kind: Literal["timed", "cause"],
        what: str,
        numerator: Workload | Ideal,
        denominator: Workload | Ideal,
        bound: Bound,
    ) -> Evidence:
        """Measure numerator / denominator until it clears `bound` or the budget is spent.

        Where the GPU was throttled or shared there is no value, and nothing is kept.
        """
        seed = crc32(f"{claim} {what}".encode())
        device = self._bench.device
        try:
            pairs = self._bench.pairs(numerator, denominator, bound, budget=self._budget, seed=seed)
        except NotComparable as why:
            where = f"{device.name}, not comparable: {why}"
            return Evidence(kind, where, device.clock, what, None, bound)
        self.pairs.setdefault(claim, {})[what] = {
            "numerator": numerator.name,
            "denominator": denominator.name,
            "clock": device.clock,
            "seconds": [[round(a, 10), round(b, 10)] for a, b in pairs],
            "telemetry": self._bench.watch.summary(),
        }
        return _judged(kind, device.name, device.clock, what, pairs, bound)


class Recorded:
    """Pairs of a stored baseline, or nothing at all, which leaves every ratio undecided."""

    def __init__(self, baseline: Baseline | None) -> None:
        self.gpu: str | None = slug(baseline.gpu) if baseline else None
        self._baseline = baseline

    def evidence(
        self,
        claim: str,
        kind: Literal["timed", "cause"],
        what: str,
        numerator: Workload | Ideal,
        denominator: Workload | Ideal,
        bound: Bound,
    ) -> Evidence:
        """Look numerator / denominator up; a recording of other workloads is not used."""
        recorded = self._baseline.pairs(claim, what) if self._baseline else None
        if self._baseline is None or recorded is None:
            return Evidence("recorded", NOTHING_RECORDED, None, what, None, bound, of=kind)
        if (recorded["numerator"], recorded["denominator"]) != (numerator.name, denominator.name):
            others = f"{recorded['numerator']} / {recorded['denominator']}"
            where = f"{self._baseline.label}, but of {others}"
            return Evidence("recorded", where, None, what, None, bound, of=kind)
        pairs = [(a, b) for a, b in recorded["seconds"]]
        return _judged(
            "recorded", self._baseline.label, recorded["clock"], what, pairs, bound, kind
        )


def _judged(
    kind: Kind,
    device: str,
    clock: str,
    what: str,
    pairs: list[Pair],
    bound: Bound,
    of: Literal["timed", "cause"] | None = None,
) -> Evidence:
    found = ratio(pairs)
    known = math.isfinite(found.low) and math.isfinite(found.high)
    interval = (found.low, found.high) if known else None
    return Evidence(kind, device, clock, what, found.value, bound, interval, of)
