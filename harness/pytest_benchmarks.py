"""pytest-benchmark as storage and table for device times: it never measures here, it is told.

Its timer is a clock that stands still until a measured sample moves it.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any, Final

import pytest

from harness import benchmark_files
from harness.baselines import slug
from harness.baselines.definition import SOURCE, source_digest
from harness.baselines.shape import DROPPED, NO_CLAIMS, NOT_COMPARABLE
from harness.devices import Launch
from harness.pytest_claims import COLLECTOR, RIG, opened
from harness.ratios import Measured
from harness.rig import Rig
from harness.rows import merged
from harness.watch import NotComparable

DEFAULT_STORAGE: Final = "file://./.benchmarks"
ROUNDS: Final = 40  # with 20 the interval of a short kernel is 1.6 % wide on either side


class DeviceClock:
    """A clock in seconds that only `replay` moves."""

    __name__ = "device_clock"  # pytest-benchmark stores the timer by name
    now = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


CLOCK: Final = DeviceClock()


def replay(benchmark: Any, seconds: Iterable[float]) -> None:
    """Give pytest-benchmark measured samples, bit for bit: each round starts at zero."""
    samples = list(seconds)
    remaining = iter(samples)

    def start() -> None:
        CLOCK.now = 0.0

    def run() -> None:
        CLOCK.now = next(remaining)

    benchmark.pedantic(run, setup=start, rounds=len(samples))


@pytest.hookimpl
def pytest_configure(config: pytest.Config) -> None:
    """Point the storage at this GPU's baselines, if the run compares; refuse what would fail."""
    if not config.pluginmanager.hasplugin("benchmark"):
        config.pluginmanager.register(NoBenchmark(), "claims-no-benchmark")
    elif config.getoption("benchmark_storage") == DEFAULT_STORAGE:
        config.option.benchmark_storage = f"file://{_storage(config)}"
    if config.getoption("collectonly") or hasattr(config, "workerinput"):
        return
    if config.pluginmanager.hasplugin("benchmark"):
        benchmark_files.refuse_damaged(config)
        benchmark_files.prepare_targets(config)


class NoBenchmark:
    """Stands in for pytest-benchmark under `-p no:benchmark`."""

    @pytest.fixture
    def benchmark(self) -> None:
        """Skip: nothing could be stored."""
        pytest.skip("pytest-benchmark is off")


def _storage(config: pytest.Config) -> Path:
    """Return the folder to compare with; pytest-benchmark creates what is missing, so it exists."""
    wanted = any(config.getoption(f"benchmark_{name}") for name in ("compare", "save", "autosave"))
    if wanted and not config.getoption("collectonly") and not hasattr(config, "workerinput"):
        opened(config)
        rig = config.stash[RIG]
        if rig.folder and rig.folder.is_dir() and benchmark_files.choose(config, rig):
            return rig.folder
    return config.rootpath / "build" / "benchmarks"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each benchmark the device clock; pytest-benchmark reads one mark, so they are merged."""
    for item in items:
        if "benchmark" in getattr(item, "fixturenames", ()):
            settings: dict[str, Any] = {"timer": CLOCK, "disable_gc": True}
            for mark in reversed(list(item.iter_markers("benchmark"))):
                settings.update(mark.kwargs)
            item.add_marker(pytest.mark.benchmark(**settings), append=False)


@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_generate_machine_info(config: pytest.Config) -> dict[str, str]:
    """Only what makes times incomparable; driver and clocks are facts of a recording."""
    return {"gpu": "not opened" if config.getoption("collectonly") else opened(config).name}


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_benchmark_compare_machine_info(
    config: pytest.Config, machine_info: dict[str, str], compared_benchmark: dict[str, Any]
) -> None:
    """Refuse to compare the times of two GPU models; a published table may be looked at."""
    there, here = compared_benchmark["machine_info"].get("gpu"), machine_info["gpu"]
    comparing = not config.getoption("collectonly") and config.stash[RIG].timed
    if comparing and there != here and not compared_benchmark.get("published"):
        raise pytest.UsageError(
            f"the baseline is of {there}, this is {here}: times of two models do not compare; "
            f"record one here with `tox -e record` (baselines/{slug(here)}/)"
        )
    # pytest-benchmark's own check follows; it warns, and dies if run outside the root
    compared_benchmark["machine_info"] = machine_info


@pytest.hookimpl
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say so if a comparison was asked for and nothing was timed."""
    asked = config.getoption("benchmark_compare", None)
    if not asked or config.getoption("collectonly"):
        return
    rig = config.stash[RIG]
    if not rig.times:
        why = "nothing is timed in this run" if rig.timed else "there is no GPU: nothing is timed"
        terminalreporter.write_line(f"--benchmark-compare: {why}, so nothing is compared")


@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_update_json(config: pytest.Config, output_json: dict[str, Any]) -> None:
    """Add the facts of the device, the claims' verdicts, and the pairs they were judged by."""
    rig = config.stash[RIG]
    output_json["device"] = rig.described() | rig.bandwidths() | surroundings()
    output_json["pairs"] = rig.ratios.pairs if isinstance(rig.ratios, Measured) else {}
    collector = config.pluginmanager.get_plugin(COLLECTOR)
    rows = merged(row for _, row in collector.entries) if collector else []
    output_json[NOT_COMPARABLE] = rig.not_comparable
    output_json["claims"] = {row["id"]: row["verdict"] for row in rows}
    if config.getoption("benchmark_only"):
        output_json[NO_CLAIMS] = "--benchmark-only"


def surroundings() -> dict[str, str | None]:
    """Return the compiler, the host and Python: what sets recordings apart beside the GPU.

    $CLAIMS_HOST names a host whose times stand for themselves, such as a rented slice of one.
    """
    # Whoever opened a GPU has imported CuPy; nothing here should import it for anyone else.
    cupy = sys.modules.get("cupy")
    nvrtc = cupy.cuda.nvrtc.getVersion() if cupy else None
    wsl = "microsoft" in platform.release().lower()
    return {
        "nvrtc": nvrtc and ".".join(map(str, nvrtc)),
        "host": os.environ.get("CLAIMS_HOST") or ("WSL" if wsl else platform.system()),
        "python": platform.python_version(),
    }


def facts(rig: Rig, launch: Launch, seconds: float) -> dict[str, Any]:
    """Return what is stored beside a time: the launch, its bandwidth, the state of the device."""
    assert rig.timed
    rate = launch.bytes / seconds
    stored: dict[str, Any] = {
        "kernel": str(launch.kernel),
        SOURCE: source_digest(launch.kernel),
        "grid": launch.grid,
        "block": launch.block,
        "bytes": launch.bytes,
        "GB/s": round(rate / 1e9, 1),
        "clock": rig.timed.clock,
    }
    if launch.flop:
        stored |= {"flop": launch.flop, "TFLOP/s": round(launch.flop / seconds / 1e12, 3)}
    for label, peak in (("peak", rig.peak), ("measured copy", rig.copy_rate)):
        if peak:
            stored[f"percent of {label}"] = round(100 * rate / peak, 1)
    watch = rig.workbench.watch
    stored |= rig.telemetry() | {"telemetry": watch.summary()}
    return stored | ({DROPPED: watch.dropped} if watch.dropped else {})


def elsewhere(rig: Rig) -> str:
    """Return which file holds the recorded times; one text a run, which pytest folds."""
    source = rig.recorded
    if source is None:
        return "nothing is recorded"
    return f"what was recorded stands in {source.path.relative_to(rig.stored.parent).as_posix()}"


def time_workload(rig: Rig, benchmark: Any, workload: Any) -> list[float]:
    """Measure a workload and replay the samples, or skip and say where some are recorded."""
    if not rig.times or not benchmark.enabled:
        why = "nothing is timed in this run" if rig.timed else f"{rig.device.name} has no clock"
        pytest.skip(f"{why}; {elsewhere(rig)}")
    try:
        seconds = rig.workbench.rounds(workload, ROUNDS)
    except NotComparable as why:
        rig.not_comparable[benchmark.fullname] = str(why)
        pytest.skip(f"not comparable: {why}")
    launch = rig.workbench.launch(workload)
    benchmark.extra_info.update(facts(rig, launch, median(seconds)))
    replay(benchmark, seconds)
    return seconds
