"""Prepare each workload once, prove it right, then time it: a wrong kernel is never timed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from harness.devices import Launch, TimedDevice, Workload
from harness.timing import (
    WARM_UP,
    Bound,
    Budget,
    Ideal,
    Pair,
    Timed,
    buy_pairs,
    measure_pairs,
    sample,
)

KEPT: Final = 4


class Workbench:
    """The workloads of one session on one device; the last few used stay prepared."""

    def __init__(self, device: TimedDevice, kept: int = KEPT) -> None:
        self.device = device
        self._kept = kept
        self._prepared: OrderedDict[Workload, Launch] = OrderedDict()

    def launch(self, workload: Workload) -> Launch:
        """Return `workload` prepared and checked, from this session's cache if it is there.

        Raises
        ------
        AssertionError
            The kernel is wrong on this device.
        """
        if workload not in self._prepared:
            while len(self._prepared) >= self._kept:
                self._prepared.popitem(last=False)
            prepared = workload.prepare(self.device)
            prepared.check()
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
        """Return pairs of seconds, enough to clear `bound` if the budget allows."""
        first, second = self._timed(numerator), self._timed(denominator)
        pairs = buy_pairs(
            lambda count, seed: measure_pairs(self.device, first, second, count, seed),
            bound,
            budget,
            seed,
        )
        _check((first, second))
        return pairs

    def _timed(self, workload: Workload | Ideal) -> Timed:
        if isinstance(workload, Ideal):
            return workload.seconds(self.device)
        return self.launch(workload)

    def rounds(self, workload: Workload, count: int) -> list[float]:
        """Return the seconds of `count` cold runs after a warm-up; checked before and after."""
        launch = self.launch(workload)
        for _ in range(WARM_UP):
            self.device.seconds(launch)
        seconds = [sample(self.device, launch) for _ in range(count)]
        _check((launch,))
        return seconds


def _check(launches: Iterable[Timed]) -> None:
    for launch in launches:
        if isinstance(launch, Launch):
            launch.check()
