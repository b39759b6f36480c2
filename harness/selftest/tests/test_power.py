"""What the rule finds and what it leaves alone, on samples that an H200 gave."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest

from harness.baselines import ROOT
from harness.comparison import RULE, Rule, compare
from harness.selftest.power import (
    Ratios,
    blocks,
    flagged,
    looks,
    recorded,
    smallest_detectable,
)
from harness.timing import Budget, Pair, ranks

RECORDING = ROOT / "nvidia-h200" / "0001_2026-11-30.json"
HASTY = Rule(confidence=0.1)


@pytest.fixture(scope="module")
def v7() -> Ratios:
    """V7 with itself: four consecutive runs each, their spread about 1 %."""
    return recorded(json.loads(RECORDING.read_text()), "reduce_v7[BLOCK=256]")


def test_the_recording_has_enough_blocks(v7: Ratios) -> None:
    """20 rounds and five series of 8 blocks: 17 + 5 x 5 windows of four."""
    assert len(v7) == 42
    assert 0.005 < v7.std() < 0.02


@pytest.mark.parametrize(
    ("slowdown", "least", "most"),
    [(0.0, 0.0, 0.0), (0.005, 0.0, 0.005), (0.009, 0.97, 1.0), (0.01, 0.99, 1.0), (0.02, 0.99, 1)],
)
def test_one_per_cent_is_found_and_nothing_is_not(
    v7: Ratios, slowdown: float, least: float, most: float
) -> None:
    """400 simulated comparisons; right on the limit of 0.5 % a verdict must be rare."""
    assert least <= flagged(v7, slowdown, RULE, trials=400) <= most


def test_the_smallest_detectable_change_lies_between_the_limit_and_one_per_cent(v7: Ratios) -> None:
    """0.75 % on an H200, found in 95 % of the comparisons; a tenth less is not."""
    found = smallest_detectable(v7, RULE)
    assert RULE.limit < found < 0.009
    assert flagged(v7, 0.9 * found, RULE) < 0.95 <= flagged(v7, found, RULE)


def test_what_a_recording_is_off_by_is_no_change(v7: Ratios) -> None:
    """A kernel with itself is 1, even if one place in a block costs 10 % more."""
    assert flagged(1.1 * v7, 0.0, RULE) == 0.0


@pytest.mark.parametrize("rule", [RULE, HASTY], ids=["ours", "hasty"])
def test_the_simulation_is_what_the_rule_does(v7: Ratios, rule: Rule) -> None:
    """The same draws through buy_pairs: as many `slower`, within what 200 trials can tell.

    A hasty rule takes its first look for the verdict, and a later look would often say otherwise.
    """

    def verdict(seed: int) -> str:
        drawn = np.random.default_rng(seed).choice(v7, rule.budget.pairs) * 1.007
        remaining = iter(drawn / np.median(v7))

        def measure(count: int, _: int) -> list[Pair]:
            return [(float(next(remaining)) * 1e-4, 1e-4) for _ in range(count)]

        return compare(measure, rule, seed).verdict

    share = np.mean([verdict(seed) == "slower" for seed in range(200)])
    assert share == pytest.approx(flagged(v7, 0.007, rule, trials=400), abs=0.1)


def test_the_looks_double() -> None:
    """Six of them: 6 x 0.05 % bounds a wrong verdict on each side."""
    counts = list(looks(RULE))
    assert counts == [16, 32, 64, 128, 256, 512]
    assert all(more == 2 * less for less, more in pairwise(counts))
    assert len(counts) * (1 - RULE.confidence) / 2 <= 0.003 + 1e-12


def test_no_look_is_beyond_the_budget() -> None:
    """Ten pairs may be bought, and the first look would be at sixteen."""
    assert list(looks(Rule(budget=Budget(pairs=10, first=16)))) == [10]


def test_too_few_pairs_have_no_interval_and_no_verdict() -> None:
    """99.9 % takes eleven."""
    assert ranks(10, 0.999) == (None, None)
    assert flagged(np.array([1.0]), 0.5, Rule(budget=Budget(pairs=10, first=10))) == 0.0


def test_alternation_cancels_in_a_block() -> None:
    """Fast, slow, fast, slow: outer and inner runs have one of each."""
    assert blocks([1.0, 1.03] * 4).tolist() == [1.0] * 5


def test_a_bimodal_card_is_not_a_regression() -> None:
    """63 and 94 ms at random, as a card with two hidden states gives them."""
    series = np.random.default_rng(1).choice([63.0, 94.0], 400)
    assert flagged(blocks(list(series)), 0.0, RULE, trials=100) == 0.0
