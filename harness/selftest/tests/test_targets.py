"""What is a miss, at the very figure to reach, and which trials count at all."""

from __future__ import annotations

from typing import Any

import pytest

from harness.selftest.targets import lines, missed
from harness.selftest.trials import Trial, detection, false_alarms


def trials(**verdicts: int) -> list[Trial]:
    """Return so many trials of each verdict; `lost` are those of a hot card, which take long."""
    named = {"lost": "not comparable"}
    return [
        Trial("x", named.get(verdict, verdict), 3.1 if verdict == "lost" else 0.9)
        for verdict, count in verdicts.items()
        for _ in range(count)
    ]


def document(*rows: dict[str, Any], aa: list[Trial] | None = None) -> dict[str, Any]:
    """Return one that misses nothing but what it is given."""
    return {
        "aa": false_alarms(aa or trials(same=196, slower=1, faster=3)),
        "sabotage": rows,
        "repeat_runs": [],
    }


@pytest.mark.parametrize(("slowdown", "enough"), [(0.01, 45), (0.02, 49), (0.05, 49)])
def test_each_slowdown_has_a_share_of_fifty_to_reach(slowdown: float, enough: int) -> None:
    """That many are enough, one fewer is not: 90, 98 and 98 %."""

    def problems(flagged: int) -> list[str]:
        found = trials(slower=flagged, undecided=50 - flagged)
        return missed(document(detection("v7", slowdown, found)))

    assert problems(enough) == []
    assert problems(enough - 1) == [
        f"v7, {slowdown:.0%} slower: flagged in {enough - 1} of 50 trials"
    ]


@pytest.mark.parametrize(
    ("aa", "problems"),
    [
        (trials(same=199, slower=1), []),
        (trials(same=198, slower=2), ["A/A: 2 of 200 were called slower, with nothing changed"]),
        (trials(same=199, broken=1), ["A/A: 1 of 200 comparisons broke"]),
        (trials(same=100, lost=100), []),
        (trials(same=99, lost=101), ["A/A: 101 of 200 trials were not comparable"]),
        (trials(same=110, lost=89, slower=1), []),
        (
            trials(same=109, lost=89, slower=2),
            ["A/A: 2 of 111 were called slower, with nothing changed"],
        ),
    ],
)
def test_a_kernel_is_called_slower_than_itself_once_in_two_hundred(
    aa: list[Trial], problems: list[str]
) -> None:
    """Of the comparisons that were made; a night with too few of them has shown nothing."""
    assert missed(document(aa=aa)) == problems


@pytest.mark.parametrize(
    ("found", "problems"),
    [
        ([], ["there was no trial"]),
        (trials(slower=19, lost=1), []),
        (trials(slower=10, lost=10), []),
        (trials(slower=9, lost=11), ["11 of 20 trials were not comparable"]),
        (trials(lost=20), ["20 of 20 trials were not comparable"]),
        (trials(slower=19, broken=1), ["flagged in 19 of 20 trials"]),
    ],
)
def test_a_throttled_trial_is_none_of_the_verdict(found: list[Trial], problems: list[str]) -> None:
    """Neither unseen nor too long: the card was hot, not the rule wanting."""
    row = detection("v7", 0.02, found)
    assert missed(document(row)) == [f"v7, 2% slower: {problem}" for problem in problems]


@pytest.mark.parametrize(("lost", "said"), [(0, ""), (1, ", 1 not comparable")])
def test_throttled_trials_are_printed_apart(lost: int, said: str) -> None:
    """Who reads `19 of 19` learns where the twentieth is."""
    row = detection("v7", 0.02, trials(slower=19, lost=lost))
    assert list(lines(document(row, aa=trials(same=9, faster=1, lost=lost)))) == [
        f"A/A on no GPU: 10 comparisons, 0 slower, 1 faster, 0 broken{said}",
        f"v7 2% slower: 19 of 19 flagged, 0.9 s a trial at most{said}",
    ]


def test_a_trial_that_takes_too_long_misses_the_target() -> None:
    """Two seconds are allowed; and every repeated run must end well."""
    row = detection("v7", 0.02, [Trial("x", "slower", 2.5)] * 50)
    assert missed(document(row) | {"repeat_runs": [0, 1]}) == [
        "v7, 2% slower: a trial took 2.5 s, 2.0 s are allowed",
        "repeated run 2 ended with exit code 1",
    ]
