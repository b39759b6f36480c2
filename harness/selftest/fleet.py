"""Do all GPUs of this machine agree? Each times the same kernels in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from statistics import median
from typing import Any, Final

from harness.devices import TimedDevice, Workload
from harness.selftest.session import SUBJECTS
from harness.visible import placed, visible_gpus
from harness.workbench import Workbench

LIMIT: Final = 0.03  # healthy cards of one model differ by a per cent or so
ROUNDS: Final = 40
TIMEOUT: Final = 300  # seconds
FEW: Final = 3  # GPUs from which on the median says which one is odd

Probes = Mapping[str, dict[str, Any]]  # by GPU


def probe(gpu: TimedDevice, subjects: Mapping[str, Workload] = SUBJECTS) -> dict[str, Any]:
    """Return this process's GPU, by model and place, and the median seconds of each subject."""
    bench = Workbench(gpu)
    times = {name: median(bench.rounds(each, ROUNDS)) for name, each in subjects.items()}
    return {"name": gpu.name, "place": placed(gpu), "seconds": times}


def main(limit: float = LIMIT) -> int:
    """Probe every visible GPU, all at once, and return 1 if one is odd or cannot be timed."""
    names = visible_gpus()
    if not names:
        print("no GPU is visible: check nvidia-smi and CUDA_VISIBLE_DEVICES", file=sys.stderr)
        return 2
    probes, failed = collected(names, _started)
    problems = [*failed, *odd_ones(probes, limit)]
    for line in (*_table(probes), *(problems or [_agreed(len(probes), limit)])):
        print(line)
    return 1 if problems else 0


def _agreed(number: int, limit: float) -> str:
    if number == 1:
        return "one GPU alone: there is no other to compare it with"
    return f"{number} GPUs agree within {100 * limit:g}%"


def collected(
    names: list[str], start: Callable[[str], Callable[[], str]]
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Start a probe on each GPU, then wait for all; return what they said and who failed."""
    waiting = {name: start(name) for name in names}
    probes: dict[str, dict[str, Any]] = {}
    failed: list[str] = []
    for name, output in waiting.items():
        try:
            answer = json.loads(output().splitlines()[-1])
            probes[_label(name, answer["place"])] = answer
        except (IndexError, ValueError, RuntimeError, subprocess.SubprocessError) as error:
            failed.append(f"{_label(name)} was not timed: {error}")
    return probes, failed


def _label(name: str, place: str = "") -> str:
    """Return what to call a GPU: where it is, but a slice by its UUID, of which a GPU has many."""
    if name.startswith("MIG-"):
        return name
    return place or (name if name.startswith("GPU-") else f"GPU {name}")


def _started(name: str) -> Callable[[], str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "harness.selftest", "--probe"],
        env=os.environ | {"CUDA_VISIBLE_DEVICES": name},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

    def output() -> str:
        try:
            said, errors = process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
        if process.returncode:
            raise RuntimeError((errors.strip().splitlines() or ["it said nothing"])[-1])
        return said

    return output


def odd_ones(probes: Probes, limit: float = LIMIT) -> Iterator[str]:
    """Say which GPU is how far from the median of all GPUs of its model, by kernel."""
    models = dict.fromkeys(each["name"] for each in probes.values())
    for model in models:
        alike = {name: each for name, each in probes.items() if each["name"] == model}
        for subject in next(iter(alike.values()))["seconds"]:
            seconds = {name: each["seconds"][subject] for name, each in alike.items()}
            yield from _odd(model, subject, seconds, limit)


def _odd(model: str, subject: str, seconds: Mapping[str, float], limit: float) -> Iterator[str]:
    if len(seconds) < FEW:
        spread = max(seconds.values()) / min(seconds.values()) - 1
        if spread > limit:
            slower = max(seconds, key=seconds.__getitem__)
            yield (
                f"{subject}: the two {model} differ by {spread:.1%}, {slower} is the slower; "
                "with two of them nobody can say which is odd"
            )
        return
    middle = median(seconds.values())
    for name, each in seconds.items():
        off = each / middle - 1
        if abs(off) > limit:
            word = "slower" if off > 0 else "faster"
            yield (
                f"{name}: {subject} is {abs(off):.1%} {word} than the median of "
                f"{len(seconds)} {model}"
            )


def _table(probes: Probes) -> Iterator[str]:
    for name, each in probes.items():
        times = ", ".join(f"{key} {value * 1e6:.1f} us" for key, value in each["seconds"].items())
        yield f"{name} ({each['name']}): {times}"
