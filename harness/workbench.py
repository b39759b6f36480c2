"""Prepare each workload once, prove it right, then time it: a wrong kernel is never timed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from harness.comparison import Comparison, Rule, compare
from harness.devices import Launch, TimedDevice, Workload
from harness.timing import (
    Bound,
    Budget,
    Drop,
    Ideal,
    Pair,
    Timed,
    buy_pairs,
    measure_pairs,
    possible,
    sample,
    warm_up,
)
from harness.watch import Watch

KEPT: Final = 4


class Workbench:
    """The workloads of one session on one device; the last few used stay prepared.

    `watch` has the telemetry of the last measurement, and why samples of it were dropped.
    """

    def __init__(self, device: TimedDevice, kept: int = KEPT, watch: Watch | None = None) -> None:
        self.device = device
        self.watch = watch or Watch.over(device)
        self._kept = kept
        self._prepared: OrderedDict[Workload, Launch] = OrderedDict()

    def launch(self, workload: Workload) -> Launch:
        """Return `workload` prepared and checked, from this session's cache if it is there.

        Raises
        ------
        AssertionError
            The kernel is wrong on this device, or writes outside its arrays.
        """
        if workload not in self._prepared:
            while len(self._prepared) >= self._kept:
                self._prepared.popitem(last=False)
            prepared = workload.prepare(self.device)
            self.check((prepared,))
            self._prepared[workload] = prepared
        self._prepared.move_to_end(workload)
        return self._prepared[workload]

    def pairs(
        self,
        numerator: Workload | Ideal,
        denominator: Workload | Ideal,
        bound: Bound,
        *,
        budget: Budget,
        seed: int,
    ) -> list[Pair]:
        """Return pairs of seconds, enough to clear `bound` if the budget allows.

        Raises
        ------
        harness.watch.NotComparable
            The GPU was throttled or shared all the time.
        """
        first, second = self._timed(numerator), self._timed(denominator)
        self.watch.start()
        pairs = buy_pairs(
            lambda count, seed: self._block(first, second, count, seed), bound, budget, seed
        )
        self.check((first, second))
        return pairs

    def compare(self, new: Timed, old: Timed, rule: Rule, seed: int) -> Comparison:
        """Compare two launches that are prepared; the caller checks them, before and after.

        Raises
        ------
        harness.watch.NotComparable
            The GPU was throttled or shared all the time.
        """
        self.watch.start()
        return compare(lambda count, seed: self._block(new, old, count, seed), rule, seed)

    def rounds(self, workload: Workload, count: int) -> list[float]:
        """Return the seconds of `count` cold runs after a warm-up; checked before and after.

        Raises
        ------
        harness.watch.NotComparable
            The GPU was throttled or shared all the time.
        """
        launch = self.launch(workload)
        self.watch.start()
        seconds = self.watch.undisturbed(lambda drop: self._samples(launch, count, drop))
        self.check((launch,))
        return seconds

    def check(self, launches: Iterable[Timed]) -> None:
        """Check each launch once, then the memory around all arrays.

        Raises
        ------
        AssertionError
            A result is wrong, or something wrote outside an array.
        """
        for launch in {id(each): each for each in launches if isinstance(each, Launch)}.values():
            launch.check()
        verify = getattr(self.device, "verify_canaries", None)
        if verify:
            verify()

    def _timed(self, workload: Workload | Ideal) -> Timed:
        if isinstance(workload, Ideal):
            return workload.seconds(self.device)
        return self.launch(workload)

    def _block(self, first: Timed, second: Timed, count: int, seed: int) -> list[Pair]:
        return self.watch.undisturbed(
            lambda drop: measure_pairs(self.device, first, second, count, seed, drop)
        )

    def _samples(self, launch: Launch, count: int, drop: Drop) -> list[float]:
        warm_up(self.device, launch)
        return [possible(lambda: sample(self.device, launch), drop) for _ in range(count)]
