"""Ratios of times: exact intervals, verdicts of synthetic samples, and samples that are refused."""

from __future__ import annotations

import math

import pytest
from scipy.stats import binom

from harness.devices import Launch
from harness.tests.fakes import FakeGPU, FakeWorkload, around, script
from harness.timing import (
    Bound,
    Budget,
    ImplausibleTime,
    Interval,
    Pair,
    buy_pairs,
    dependence,
    measure_pairs,
    ratio,
    sample,
)

BIMODAL = [(1.0, 1.0), (1.5, 1.0)] * 128  # a card that flips between two hidden states
WAVE = [0, 7, 10, 7, 0, -7, -10, -7]


@pytest.mark.parametrize(
    ("pairs", "bound", "outcome", "bought"),
    [
        pytest.param(around(1.5), (1.3, None), "inside", 8, id="clear-hold"),
        pytest.param(around(1.5), (1.3, 1.6), "inside", 8, id="clear-hold-of-two-ends"),
        pytest.param(around(1.1), (1.3, None), "outside", 8, id="clearly-too-small"),
        pytest.param(around(1.1), (None, 1.05), "outside", 8, id="clearly-too-large"),
        pytest.param(around(1.305), (1.3, None), "inside", 64, id="buys-more-then-holds"),
        pytest.param(around(1.3), (1.3, None), "straddles", 256, id="budget-spent"),
        pytest.param(BIMODAL, (1.2, None), "straddles", 256, id="bimodal-across-the-bound"),
        pytest.param(BIMODAL, (0.9, None), "inside", 8, id="bimodal-above-the-bound"),
        pytest.param([(1.0, 1.0)] * 256, (1.0, 1.0), "inside", 8, id="the-bound-holds-its-ends"),
    ],
)
def test_pairs_are_bought_until_the_interval_clears_the_bound(
    pairs: list[Pair], bound: Bound, outcome: str, bought: int
) -> None:
    """Eight pairs first, then twice as many at each look."""
    found = buy_pairs(script(pairs), bound, Budget(pairs=256, seconds=math.inf), seed=0)
    assert (ratio(found).against(bound), len(found)) == (outcome, bought)


def test_device_time_ends_the_buying_too() -> None:
    """Eight pairs of two times two seconds are 32 s; doubling would exceed 40."""
    found = buy_pairs(
        script([(1.0, 1.0), (1.5, 1.0)] * 128), (1.2, None), Budget(256, 40.0), seed=0
    )
    assert len(found) == 8


@pytest.mark.parametrize(("confidence", "bought"), [(0.99, 8), (0.999, 16), (0.99999, 32)])
def test_every_look_is_as_confident_as_asked(confidence: float, bought: int) -> None:
    """All pairs are alike: what counts is that n of them hold no more than 1 - 2 / 2^n."""
    alike = script([(1.5e-4, 1e-4)] * 128)
    assert len(buy_pairs(alike, (1.3, None), Budget(), 0, confidence)) == bought


def test_every_block_draws_an_order_of_its_own() -> None:
    """Else the pairs of one look would be in the order of those before."""
    seeds: list[int] = []

    def measure(count: int, seed: int) -> list[Pair]:
        seeds.append(seed)
        return BIMODAL[:count]

    buy_pairs(measure, (1.2, None), Budget(pairs=128, seconds=math.inf), seed=7)
    assert len(set(seeds)) == len(seeds) == 5


def test_the_first_look_is_within_the_budget() -> None:
    """Four pairs may be bought, though they cannot give 99 %."""
    assert len(buy_pairs(script(BIMODAL), (1.2, None), Budget(pairs=4, first=8), seed=0)) == 4


@pytest.mark.parametrize("count", [1, 2, 7])
def test_few_pairs_have_no_interval(count: int) -> None:
    """No spread is no proof: with n pairs the widest interval holds 1 - 2 / 2^n."""
    found = ratio([(1.5, 1.0)] * count)
    assert found == Interval(1.5, -math.inf, math.inf)
    assert found.against((1.3, None)) == "straddles"


@pytest.mark.parametrize("count", [8, 16, 20, 33, 256])
def test_the_interval_is_between_order_statistics(count: int) -> None:
    """The largest k with P(Binomial(n, 1/2) < k) <= 0.5 % gives the k-th from either end."""
    ratios = [1.0 + index / 1000 for index in range(count)]
    found = ratio([(each, 1.0) for each in ratios])
    rank = max(k for k in range(1, count) if binom.cdf(k - 1, count, 0.5) <= 0.005)
    assert (found.low, found.high) == (ratios[rank - 1], ratios[count - rank])


@pytest.mark.parametrize(
    ("seconds", "cause"),
    [
        (math.nan, "the clock returned no time"),
        (math.inf, "the clock returned no time"),
        (0.0, "the clock was read before the kernel ended"),
        (-1.78e-3, "the clock was read before the kernel ended"),
        (0.1e-6, "10000 GB/s, above the 4800 GB/s of the memory: the input was still in L2"),
    ],
)
def test_impossible_samples_are_refused_by_name(seconds: float, cause: str) -> None:
    """A megabyte at 4.8 TB/s takes 0.21 us."""
    launch = FakeWorkload("copy", seconds).prepare(FakeGPU())
    with pytest.raises(ImplausibleTime, match=cause) as refused:
        sample(FakeGPU(noise=0), launch)
    assert "copy" in str(refused.value)


def test_recorded_pairs_are_refused_too() -> None:
    """One bad sample spoils a recording."""
    with pytest.raises(ImplausibleTime, match="a sample took -1e-06 s"):
        ratio([(1e-4, 1e-4)] * 20 + [(1e-4, -1e-6)])


@pytest.mark.parametrize("pair", [(1e-200, 1e200), (1e200, 1e-200)])
def test_times_too_far_apart_for_a_ratio_are_refused(pair: Pair) -> None:
    """It would be 0, or infinite: each is a finite number of seconds, but neither is a time."""
    with pytest.raises(ImplausibleTime, match="the samples are no times"):
        ratio([pair] * 20)


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        pytest.param(WAVE * 4, "rank correlation 0.70", id="four-waves"),
        pytest.param(WAVE, "rank correlation 0.72", id="one-wave"),
        pytest.param(WAVE[:-1], "", id="as-much-may-be-chance-in-seven"),
        pytest.param([0, 1] * 16, "", id="alternation-is-no-likeness"),
    ],
)
def test_a_ratio_like_the_one_before_it_is_noted(steps: list[int], said: str) -> None:
    """If it is no accident: under 5 % of independent pairs are as alike, in one direction."""
    found = dependence([(1.5 + step / 1000, 1.0) for step in steps])
    assert said in found if said else not found


def test_nothing_measured_is_an_error() -> None:
    """Not a ratio of zero."""
    with pytest.raises(ValueError, match="nothing was measured"):
        ratio([])


def test_pairs_are_balanced_blocks_in_random_order_after_a_counted_warm_up() -> None:
    """Three warm-up launches of each; then A B B A or B A A B, in either order."""
    gpu = FakeGPU(noise=0)
    slow, fast = FakeWorkload("slow", 2e-4).prepare(gpu), FakeWorkload("fast", 1e-4).prepare(gpu)
    assert measure_pairs(gpu, slow, fast, count=20, seed=7) == [(2e-4, 1e-4)] * 20
    warm_up, timed = gpu.log[:6], gpu.log[6:]
    assert warm_up == ["time slow"] * 3 + ["time fast"] * 3
    orders = {"".join(line[5] for line in timed[at : at + 4]) for at in range(0, 80, 4)}
    assert orders == {"sffs", "fssf"}
    assert len(timed) == 80


class Drifting(FakeGPU):
    """Takes `step` longer with every sample, on top of a place effect of 3 % every other time."""

    samples = 0

    def seconds(self, launch: Launch) -> float:
        """Return the time with the drift."""
        self.samples += 1
        return super().seconds(launch) * (1 + 1e-4 * self.samples + 0.03 * (self.samples % 2))


def test_drift_and_alternation_cancel_in_every_pair() -> None:
    """Outer and inner runs of a block have the same mean place; 1.5 is left as it is."""
    gpu = Drifting(noise=0)
    slow, fast = FakeWorkload("slow", 1.5e-4).prepare(gpu), FakeWorkload("fast", 1e-4).prepare(gpu)
    pairs = measure_pairs(gpu, slow, fast, count=40, seed=3)
    assert [slow / fast for slow, fast in pairs] == pytest.approx([1.5] * 40, abs=1e-4)


def test_less_than_an_empty_kernel_takes_is_refused() -> None:
    """Half a microsecond; an ideal time may be as short as it likes."""
    gpu = FakeGPU(noise=0)
    gpu.peak_bandwidth = 0.0
    with pytest.raises(
        ImplausibleTime, match=r"copy took 0\.400 us, an empty kernel takes 0\.5 us"
    ):
        sample(gpu, FakeWorkload("copy", 0.4e-6).prepare(gpu))
    assert sample(gpu, 1e-9) == 1e-9


def test_the_order_is_reproducible() -> None:
    """The seed decides it."""

    def order(seed: int) -> list[str]:
        gpu = FakeGPU()
        launches: list[Launch] = [FakeWorkload(name).prepare(gpu) for name in "ab"]
        measure_pairs(gpu, launches[0], launches[1], count=20, seed=seed)
        return gpu.log

    assert order(1) == order(1) != order(2)
