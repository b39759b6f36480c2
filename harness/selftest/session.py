"""One self-test on one GPU: what is compared with what, and the document that comes of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from itertools import count, islice
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

from harness.comparison import RULE, Rule
from harness.devices import Workload
from harness.selftest.calibration import CannotPlant, Waits
from harness.selftest.plants import WRONG, CardCopy, planted, waiting
from harness.selftest.power import smallest_detectable
from harness.selftest.trials import (
    Proving,
    Trial,
    Versus,
    by_subject,
    detection,
    false_alarms,
    wrong_flagged,
)
from harness.timing import Bound, Budget, Pair, ratio
from harness.workbench import Workbench
from harness.workloads.access import Update
from harness.workloads.reduction import Reduction

CORE_CLOCK_KHZ: Final = 13  # CUDA's number of the device attribute
ROUNDS: Final = 40
LONGEST: Final = 0.1  # of the rung's time, if nothing of a wait hid and the clock ran as said
BLOCK: Final = Budget(pairs=256, first=256)
BLOCKS: Final = 4  # 1024 pairs tell a slow-down to about 0.07 %
ANY: Final[Bound] = (None, None)
SMALL: Final = 1 << 16  # elements; a sum of whole numbers is checked exactly, at any size
SLOWDOWNS: Final = (0.02, 0.01, 0.05)
V7: Final = Reduction("reduce_v7")
SUBJECTS: Final[dict[str, Workload]] = {
    "reduce_v5": Reduction("reduce_v5"),
    "reduce_v6": Reduction("reduce_v6"),
    "reduce_v7": V7,
    "update_aos": Update("aos"),
    "update_soa": Update("soa"),
    "card_copy": CardCopy(),
}


@dataclass(frozen=True)
class Plan:
    """What a self-test compares.

    `slowed(proving, slowdown)` returns `old` as a kernel that takes 1 + slowdown times as long, and
    how much longer it was measured to take.
    """

    subjects: dict[str, Workload]
    old: Workload
    benchmark: str
    slowed: Callable[[Proving, float], tuple[Workload, float]]
    wrong: dict[str, Workload]
    trials: int = 200
    sabotage_trials: int = 50
    slowdowns: Sequence[float] = SLOWDOWNS
    rule: Rule = RULE


def plan(folder: Path, trials: int, sabotage_trials: int) -> Plan:
    """Return the plan for a GPU; `folder` takes the sources of the planted kernels."""
    wrong: dict[str, Workload] = {
        plant.name: planted(plant, folder, SMALL) for plant in WRONG if plant.safe
    }
    waits = cache(partial(_waits, folder))

    def slowed(proving: Proving, slowdown: float) -> tuple[Workload, float]:
        cycles, measured = waits(proving).costing(slowdown)
        return planted(waiting(cycles), folder), measured

    return Plan(SUBJECTS, V7, "reduce_v7", slowed, wrong, trials, sabotage_trials)


def _waits(folder: Path, proving: Proving) -> Waits:
    bench, seeds = proving.bench, count()

    def measure(cycles: int) -> float:
        slow, pairs = planted(waiting(cycles), folder), list[Pair]()
        for seed in islice(seeds, BLOCKS):
            if proving.late:
                raise CannotPlant("the time is up before its wait is found")
            pairs += bench.pairs(slow, V7, ANY, budget=BLOCK, seed=seed)
        return ratio(pairs).value - 1

    hertz = bench.device.attribute(CORE_CLOCK_KHZ) * 1000
    return Waits(measure, round(LONGEST * median(bench.rounds(V7, ROUNDS)) * hertz))


def run(bench: Workbench, plan: Plan, seconds: float, say: Callable[[str], None]) -> dict[str, Any]:
    """Return the document of a self-test that takes about `seconds` at most.

    The planted kernels come first: comparisons of a kernel with itself take what time is left.
    """
    proving = Proving(bench, plan.rule, seconds)
    wrong = wrong_flagged(bench, plan.wrong)
    rows, planted_trials = _sabotage(proving, plan, say)
    versus = [Versus(name, each, each) for name, each in plan.subjects.items()]
    trials = proving.trials(versus, plan.trials)
    say(f"A/A: {len(trials)} trials done")
    return {
        "aa": false_alarms(trials),
        "sabotage": rows,
        "repeat_runs": [],
        "device": bench.device.name,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "clock": bench.device.clock,
        "rule": _ruled(plan.rule),
        "smallest_detectable_change": _detectable(trials, plan.rule),
        "wrong_kernels": wrong,
        "details": by_subject([*trials, *planted_trials]),
    }


def _sabotage(
    proving: Proving, plan: Plan, say: Callable[[str], None]
) -> tuple[list[dict[str, Any]], list[Trial]]:
    rows, every = [], list[Trial]()
    for slowdown in plan.slowdowns:
        subject, measured = f"{plan.benchmark} planted {slowdown:.0%}", None
        trials: list[Trial] = []
        try:
            slow, measured = plan.slowed(proving, slowdown)
            trials = proving.trials([Versus(subject, slow, plan.old)], plan.sabotage_trials)
        except (AssertionError, RuntimeError) as why:
            say(f"{subject}: {why}")
        rows.append(detection(plan.benchmark, slowdown, trials) | {"measured": measured})
        every += trials
        say(f"{subject}: {rows[-1]}")
    return rows, every


def _ruled(rule: Rule) -> dict[str, Any]:
    budget = rule.budget
    return {
        "limit": rule.limit,
        "confidence": rule.confidence,
        "pairs": [budget.first, budget.pairs],
    }


def _detectable(trials: Sequence[Trial], rule: Rule) -> dict[str, float]:
    found: dict[str, float] = {}
    for subject in dict.fromkeys(trial.subject for trial in trials):
        pairs = [pair for trial in trials if trial.subject == subject for pair in trial.pairs]
        if pairs:
            ratios = np.array([new / old for new, old in pairs])
            found[subject] = smallest_detectable(ratios, rule)
    return found
