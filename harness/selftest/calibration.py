"""How long a planted wait must be to cost a chosen share of time: found by measuring the cost.

Part of a wait hides behind the start of other blocks, and a clock may run slower than it is sold.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

STEPS: Final = 8
FINE: Final = 200  # steps of the longest wait in which the right one is sought
TOLERANCE: Final = 0.25  # of the slow-down asked for
TRIES: Final = 2


class CannotPlant(RuntimeError):
    """No wait costs what it is to cost; the message says what was measured."""


class Waits:
    """Waits of up to `longest` cycles; `measure(cycles)` returns the share of time one costs."""

    def __init__(self, measure: Callable[[int], float], longest: int) -> None:
        self.longest = longest
        self._measure, self._cost = measure, cache(measure)

    def costing(self, slowdown: float) -> tuple[int, float]:
        """Return the cycles that cost `slowdown` (0.01 is 1 %), and their cost measured again.

        Raises
        ------
        CannotPlant
            The plant costs more without a wait, or less with the longest, or what was found does
            not cost that when it is measured again.
        """
        for _ in range(TRIES):
            cycles = self._sought(slowdown)
            reached = self._measure(cycles)
            if abs(reached - slowdown) <= TOLERANCE * slowdown:
                return cycles, reached
            self._cost.cache_clear()  # noise misled it
        raise CannotPlant(f"a wait of {cycles} cycles costs {reached:.2%}, not {slowdown:.0%}")

    def _sought(self, slowdown: float) -> int:
        from scipy.optimize import brentq

        least, most = self._cost(0), self._cost(self.longest)
        if not least < slowdown < most:
            raise CannotPlant(
                f"waits of 0 to {self.longest} cycles cost {least:.2%} to {most:.2%} of the time: "
                f"none costs {slowdown:.0%}"
            )

        def beyond(cycles: float) -> float:
            return self._cost(round(cycles)) - slowdown

        fine = self.longest / FINE
        found: float = brentq(beyond, 0, self.longest, xtol=fine, maxiter=STEPS, disp=False)
        return round(found)
