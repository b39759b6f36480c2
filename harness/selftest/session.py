"""One self-test on one GPU: what is compared with what, and the document that comes of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

from harness.comparison import RULE, Rule
from harness.devices import Workload
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
from harness.timing import Bound, Budget, ratio
from harness.watch import NotComparable
from harness.workbench import Workbench
from harness.workloads.access import Update
from harness.workloads.reduction import Reduction

CORE_CLOCK_KHZ: Final = 13  # CUDA's number of the device attribute
CALIBRATION: Final = Budget(pairs=2048, first=2048)  # finds a median ratio to about 0.05 %
CORRECTIONS: Final = 2  # the first finds the wait, the second what of it hides
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

    `slowed(bench, slowdown)` returns `old` as a kernel that takes 1 + slowdown times as long.
    """

    subjects: dict[str, Workload]
    old: Workload
    benchmark: str
    slowed: Callable[[Workbench, float], Workload]
    wrong: dict[str, Workload]
    trials: int = 200
    sabotage_trials: int = 50
    slowdowns: Sequence[float] = SLOWDOWNS
    rule: Rule = RULE


def plan(folder: Path, trials: int, sabotage_trials: int) -> Plan:
    """Return the plan for a GPU; `folder` takes the sources of the planted kernels.

    A planted slow-down is one of measured time, whatever of a wait hides behind other blocks.
    """
    wrong: dict[str, Workload] = {
        plant.name: planted(plant, folder, SMALL) for plant in WRONG if plant.safe
    }

    def slowed(bench: Workbench, slowdown: float) -> Workload:
        hertz, cycles = bench.device.attribute(CORE_CLOCK_KHZ) * 1000, 0
        for seed in range(CORRECTIONS):
            slow = planted(waiting(cycles), folder)
            pairs = bench.pairs(slow, V7, ANY, budget=CALIBRATION, seed=seed)
            missing = 1 + slowdown - ratio(pairs).value
            cycles += round(missing * median(old for _, old in pairs) * hertz)
        return planted(waiting(cycles), folder)

    return Plan(SUBJECTS, V7, "reduce_v7", slowed, wrong, trials, sabotage_trials)


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
        subject = f"{plan.benchmark} planted {slowdown:.0%}"
        trials: list[Trial] = []
        try:
            slow = plan.slowed(proving.bench, slowdown)
            trials = proving.trials([Versus(subject, slow, plan.old)], plan.sabotage_trials)
        except NotComparable as why:
            say(f"{subject}: {why}")
        rows.append(detection(plan.benchmark, slowdown, trials))
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
