"""Trials: each is one comparison, judged by the rule that judges everything."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final, NamedTuple

from harness.comparison import Rule
from harness.devices import Launch, Workload
from harness.timing import Pair
from harness.watch import NotComparable
from harness.workbench import Workbench

BROKEN: Final = "broken"
NOT_COMPARABLE: Final = "not comparable"


@dataclass(frozen=True)
class Trial:
    """One comparison: its verdict, how long it took on the wall, and what was measured."""

    subject: str
    verdict: str
    seconds: float
    pairs: list[Pair] = field(default_factory=list)
    why: str = ""


class Versus(NamedTuple):
    """What is compared: new / old."""

    subject: str
    new: Workload
    old: Workload


class Proving:
    """Runs trials on one workbench until the time is up; `rule` judges them."""

    def __init__(self, bench: Workbench, rule: Rule, seconds: float) -> None:
        self.bench, self.rule = bench, rule
        self._deadline = time.monotonic() + seconds

    @property
    def late(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() > self._deadline

    def trials(self, versus: Sequence[Versus], count: int) -> list[Trial]:
        """Compare each in turn, `count` comparisons in all, or as many as there is time for.

        What cannot be prepared, or is wrong before or after, is `broken`.
        """
        found: list[Trial] = []
        ready = [launches for each in versus if (launches := self._prepared(each, found))]
        for seed in range(count if ready else 0):
            if self.late:
                break
            found.append(self._trial(*ready[seed % len(ready)], seed))
        for subject, new, old in ready:
            self._checked(subject, (new, old), found)
        return found

    def _prepared(self, versus: Versus, found: list[Trial]) -> tuple[str, Launch, Launch] | None:
        try:
            new, old = self.bench.launch(versus.new), self.bench.launch(versus.old)
        except (AssertionError, RuntimeError, ImportError) as error:
            found.append(Trial(versus.subject, BROKEN, 0.0, why=str(error)))
            return None
        return versus.subject, new, old

    def _trial(self, subject: str, new: Launch, old: Launch, seed: int) -> Trial:
        start = time.perf_counter()
        try:
            done = self.bench.compare(new, old, self.rule, seed)
        except NotComparable as why:
            return Trial(subject, NOT_COMPARABLE, time.perf_counter() - start, why=str(why))
        except RuntimeError as error:  # a refused sample, or CUDA's
            return Trial(subject, BROKEN, time.perf_counter() - start, why=str(error))
        return Trial(subject, done.verdict, time.perf_counter() - start, done.pairs)

    def _checked(self, subject: str, launches: tuple[Launch, ...], found: list[Trial]) -> None:
        try:
            self.bench.check(launches)
        except (AssertionError, RuntimeError) as error:
            found.append(Trial(subject, BROKEN, 0.0, why=str(error)))


def false_alarms(trials: Sequence[Trial]) -> dict[str, int]:
    """Count the verdicts on comparisons of a kernel with itself."""
    verdicts = Counter(trial.verdict for trial in trials)
    return _counted(trials) | {name: verdicts[name] for name in ("slower", "faster", BROKEN)}


def _counted(trials: Sequence[Trial]) -> dict[str, int]:
    """Count the trials, and apart from them those of a GPU that was throttled or shared.

    Nothing was measured in these: they say nothing about the verdicts.
    """
    lost = sum(trial.verdict == NOT_COMPARABLE for trial in trials)
    return {"trials": len(trials) - lost, NOT_COMPARABLE: lost}


def by_subject(trials: Sequence[Trial]) -> dict[str, dict[str, Any]]:
    """Return, for each subject, its verdicts, the pairs a verdict took and the ratio found."""
    return {
        subject: _described([trial for trial in trials if trial.subject == subject])
        for subject in dict.fromkeys(trial.subject for trial in trials)
    }


def _described(trials: Sequence[Trial]) -> dict[str, Any]:
    ratios = [new / old for trial in trials for new, old in trial.pairs]
    return {
        "verdicts": dict(Counter(trial.verdict for trial in trials)),
        "median pairs": median(len(trial.pairs) for trial in trials),
        "longest trial s": round(max(trial.seconds for trial in trials), 3),
        "ratio": round(median(ratios), 5) if ratios else None,
        "why": sorted({trial.why for trial in trials if trial.why}),
    }


def detection(benchmark: str, slowdown: float, trials: Sequence[Trial]) -> dict[str, Any]:
    """Return how many trials flagged a planted slow-down.

    `gpu_seconds_per_trial` is that of the longest trial, and on the wall: the GPU ran no longer.
    """
    took = [trial.seconds for trial in trials if trial.verdict != NOT_COMPARABLE]
    return {
        "benchmark": benchmark,
        "slowdown": slowdown,
        **_counted(trials),
        "flagged": sum(trial.verdict == "slower" for trial in trials),
        "gpu_seconds_per_trial": round(max(took, default=0.0), 3),
    }


def wrong_flagged(bench: Workbench, wrong: Mapping[str, Workload]) -> dict[str, bool]:
    """Return which wrong kernels the workbench refuses to time."""
    return {name: _refused(bench, each) for name, each in wrong.items()}


def _refused(bench: Workbench, workload: Workload) -> bool:
    try:
        bench.launch(workload)
    except AssertionError:
        return True
    except RuntimeError:  # it could not be tried: that proves nothing
        return False
    return False
