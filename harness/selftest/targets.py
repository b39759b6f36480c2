"""What a self-test must reach, and what it prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from harness.selftest.trials import NOT_COMPARABLE

# `slower` among comparisons of a kernel with itself, and one where there are fewer.
FALSE_ALARMS: Final = 1 / 200
LEAST_FLAGGED: Final = {0.01: 0.90, 0.02: 0.98, 0.05: 0.98}  # share of the trials, by slow-down
GPU_SECONDS: Final = 2.0  # a trial


def missed(document: dict[str, Any]) -> list[str]:
    """Return what the self-test found wanting, in words; nothing if all is well."""
    return [
        *_alarms(document["aa"]),
        *(problem for row in document["sabotage"] for problem in _unseen(row)),
        *(
            f"{name}: a wrong kernel was not noticed"
            for name, seen in document.get("wrong_kernels", {}).items()
            if not seen
        ),
        *(
            f"repeated run {number} ended with exit code {code}"
            for number, code in enumerate(document["repeat_runs"], 1)
            if code
        ),
    ]


def _alarms(counts: dict[str, int]) -> Iterator[str]:
    trials = counts["trials"]
    yield from _too_few("A/A", counts)
    if counts["broken"]:
        yield f"A/A: {counts['broken']} of {trials} comparisons broke"
    if counts["slower"] > max(1, trials * FALSE_ALARMS):
        yield f"A/A: {counts['slower']} of {trials} were called slower, with nothing changed"


def _unseen(row: dict[str, Any]) -> Iterator[str]:
    where = f"{row['benchmark']}, {row['slowdown']:.0%} slower"
    yield from _too_few(where, row)
    if row["flagged"] < row["trials"] * LEAST_FLAGGED.get(row["slowdown"], 0.0):
        yield f"{where}: flagged in {row['flagged']} of {row['trials']} trials"
    if row["gpu_seconds_per_trial"] > GPU_SECONDS:
        yield f"{where}: a trial took {row['gpu_seconds_per_trial']} s, {GPU_SECONDS} s are allowed"


def _too_few(where: str, counts: dict[str, Any]) -> Iterator[str]:
    judged, lost = counts["trials"], counts.get(NOT_COMPARABLE, 0)
    if not judged + lost:
        yield f"{where}: there was no trial"
    elif judged < lost:
        yield f"{where}: {lost} of {judged + lost} trials were not comparable"


def lines(document: dict[str, Any]) -> Iterator[str]:
    """Say what was found, in a few lines."""
    aa = document["aa"]
    yield (
        f"A/A on {document.get('device', 'no GPU')}: {aa['trials']} comparisons, "
        f"{aa['slower']} slower, {aa['faster']} faster, {aa['broken']} broken{_lost(aa)}"
    )
    for row in document["sabotage"]:
        yield (
            f"{row['benchmark']} {row['slowdown']:.0%} slower: {row['flagged']} of "
            f"{row['trials']} flagged, {row['gpu_seconds_per_trial']} s a trial at most{_lost(row)}"
        )
    for subject, change in document.get("smallest_detectable_change", {}).items():
        yield f"{subject}: a change of {change:.2%} is found in 95 % of the comparisons"
    for name, seen in document.get("wrong_kernels", {}).items():
        yield f"wrong kernel {name}: {'refused' if seen else 'NOT NOTICED'}"
    if document["repeat_runs"]:
        yield f"repeated runs ended with {document['repeat_runs']}"


def _lost(counts: dict[str, Any]) -> str:
    return f", {lost} not comparable" if (lost := counts.get(NOT_COMPARABLE)) else ""
