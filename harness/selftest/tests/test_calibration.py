"""A wait is found by what it costs, whatever hides of it and however fast the clock runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from harness.selftest.calibration import CannotPlant, Waits

LONGEST = 12_672  # cycles: a tenth of 64 us at 1.98 GHz


def costs(
    hidden: int = 0, rate: float = 1.0, barrier: float = 0.0, noise: float = 0.0
) -> Callable[[int], float]:
    """Return what measures a wait of which `hidden` cycles are free, at `rate` of that clock."""
    random = np.random.default_rng(0)
    free = 0.1 / LONGEST / rate
    return lambda cycles: (
        barrier + free * max(0, cycles - hidden) + (random.normal(0, noise) if noise else 0)
    )


@pytest.mark.parametrize("slowdown", [0.01, 0.02, 0.05])
@pytest.mark.parametrize("hidden", [0, 400, 5000])
@pytest.mark.parametrize("rate", [0.3, 0.6, 1.0])
def test_a_wait_costs_what_was_asked_for(slowdown: float, hidden: int, rate: float) -> None:
    """To a tenth, and what is returned is what it costs."""
    measure = costs(hidden, rate)
    cycles, cost = Waits(measure, LONGEST).costing(slowdown)
    assert cost == measure(cycles)
    assert cost == pytest.approx(slowdown, rel=0.1)


@pytest.mark.parametrize("slowdown", [0.01, 0.02, 0.05])
def test_noise_moves_it_by_no_more_than_itself(slowdown: float) -> None:
    """0.05 % is what 2048 pairs leave of it."""
    measure = costs(hidden=400, noise=0.0005)
    cycles, _ = Waits(measure, LONGEST).costing(slowdown)
    assert costs(hidden=400)(cycles) == pytest.approx(slowdown, abs=0.002)


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        (costs(barrier=0.06), "waits of 0 to 12672 cycles cost 6.00% to 16.00% of the time"),
        (costs(hidden=20_000), "cost 0.00% to 0.00% of the time: none costs 1%"),
    ],
)
def test_what_no_wait_costs_is_not_planted(measure: Callable[[int], float], message: str) -> None:
    """A plant of 6 % that is called one of 1 % would prove nothing of 1 %."""
    with pytest.raises(CannotPlant, match=message):
        Waits(measure, LONGEST).costing(0.01)


@pytest.mark.parametrize(("lies", "planted"), [(1, True), (99, False)])
def test_what_does_not_cost_it_again_is_sought_once_more(lies: int, planted: bool) -> None:
    """Noise may mislead it once; of a GPU that goes on changing its mind nothing is planted."""
    known: set[int] = set()
    left = iter(range(lies))

    def measure(cycles: int) -> float:
        again = cycles in known and 0 < cycles < LONGEST
        known.add(cycles)
        return 0.03 if again and next(left, None) is not None else costs()(cycles)

    if planted:
        assert Waits(measure, LONGEST).costing(0.01)[1] == pytest.approx(0.01, rel=0.1)
        return
    with pytest.raises(CannotPlant, match=r"cycles costs 3.00%, not 1%"):
        Waits(measure, LONGEST).costing(0.01)
