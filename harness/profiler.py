"""Hold the suite's clock against Nsight Compute: the same launches, timed and counted by both.

    python -m harness.profiler
    python -m harness.profiler --random 40 --seed 0

The first writes baselines/<gpu>/profiler.json: ours, the profiler's, then ours again, each in a
process of its own on the same GPU, since CUPTI serves one subscriber at a time. The second counts
the instructions of launches drawn at random, and of five whose lanes part, into
baselines/<gpu>/instructions.json. Exit 2: no GPU, no ncu, or no permission to read its counters.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, Final

from harness.baselines import ROOT, slug, write_whole
from harness.devices import NoGPU, Workload
from harness.devices.driver import Unusable
from harness.workloads.access import Copy, Update
from harness.workloads.reduction import RUNGS, Reduction
from kernels import CompilerMissing, compile_kernel

SAMPLES: Final = 30
PROFILED_RUNS: Final = 7
TIME: Final = "gpu__time_duration.sum"
UNUSABLE: Final = 2  # the exit code of a process that has said what it lacks
NANOSECONDS: Final = {"ns", "nsecond"}  # ncu of 2025 and before

COUNTERS: Final = (
    "smsp__inst_executed.sum",
    "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "lts__t_requests_srcunit_tex_op_red.sum",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
)


class ProfilerError(RuntimeError):
    """Nsight Compute cannot be used; the message is what it says, and what to do."""


@dataclass(frozen=True)
class Profiled:
    """A workload to profile, and its number of elements."""

    workload: Workload
    n: int


@dataclass(frozen=True)
class Run:
    """One launch as the profiler saw it: metrics in the profiler's base units."""

    kernel: str
    metrics: dict[str, float]


def launches() -> list[Profiled]:
    """Return what is profiled: rungs on 2^26 floats, layouts of 2^22 records, wide strides."""
    rungs = [Profiled(Reduction(rung, n := 1 << 26), n) for rung in RUNGS]
    updates = [Profiled(Update(layout, n := 1 << 22), n) for layout in ("aos", "soa")]
    copies = [Profiled(Copy("strided", stride, n := 1 << 23), n) for stride in (8, 16, 32)]
    return rungs + updates + copies


def time_launches() -> dict[str, Any]:
    """Time every launch with the suite's clock: seconds of 30 cold runs each, checked first."""
    from harness.devices import telemetry
    from harness.devices.cuda import CudaDevice

    device = CudaDevice()
    timed = []
    for profiled in launches():
        launch = profiled.workload.prepare(device)
        launch.check()
        entry: dict[str, Any] = {
            "workload": profiled.workload.name,
            "function": launch.kernel.name,
            "kernel": str(launch.kernel),
            "n": profiled.n,
        }
        seconds = [device.seconds(launch) for _ in range(SAMPLES)]
        timed.append({**entry, "grid": launch.grid, "block": launch.block, "seconds": seconds})
    state = telemetry.state(device.bus_id)
    compiler = compile_kernel(Reduction("reduce_v1").kernel, device.architecture).compiler
    head = {"device": device.name, "clock": device.clock, "nvrtc": list(compiler)}
    return {**head, "state": state, "launches": timed}


def run_launches(runs: int) -> None:
    """Run every launch `runs` times, for a profiler to watch."""
    from harness.devices.cuda import CudaDevice

    device = CudaDevice()
    for profiled in launches():
        launch = profiled.workload.prepare(device)
        for _ in range(runs):
            launch.on(device)


def read_csv(text: str, metrics: Sequence[str]) -> list[Run]:
    """Read what `ncu --csv --page raw --print-units base` prints: names, units, a row per launch.

    Raises
    ------
    ProfilerError
        It profiled nothing, or gives its time in another unit.
    """
    rows = list(csv.DictReader(line for line in text.splitlines() if line.startswith('"')))
    if len(rows) < 2:
        raise ProfilerError(_complaint(text))
    units, *runs = rows
    if TIME in metrics and units[TIME] not in NANOSECONDS:
        raise ProfilerError(f"ncu gives {TIME} in {units[TIME]!r}: it needs --print-units base")
    return [Run(row["Kernel Name"], _numbers(row, metrics)) for row in runs]


def _numbers(row: dict[str, str], metrics: Sequence[str]) -> dict[str, float]:
    # A metric that this GPU does not have is empty or "n/a"; thousands are separated by commas.
    found = {metric: row.get(metric, "").replace(",", "") for metric in metrics}
    return {m: float(text) for m, text in found.items() if text and text[0].isdigit()}


def _complaint(text: str) -> str:
    errors = [line for line in text.splitlines() if line.startswith("==ERROR==")]
    advice = "it needs permission to read the counters: NVIDIA's page ERR_NVGPUCTRPERM says how"
    return "\n".join(["ncu profiled nothing", *errors, *([advice] if "PERM" in text else [])])


def in_order(runs: Sequence[Run], functions: Sequence[str], each: int) -> list[dict[str, float]]:
    """Return one dict of metrics per launch: the medians of its `each` consecutive runs.

    Raises
    ------
    ProfilerError
        The profiler saw other kernels than were launched, or another number of them.
    """
    expected = [function for function in functions for _ in range(each)]
    seen = [run.kernel for run in runs]
    if seen != expected:
        raise ProfilerError(f"ncu was to profile {expected}, it profiled {seen}")
    groups = [runs[start : start + each] for start in range(0, len(runs), each)]
    return [_medians([run.metrics for run in group]) for group in groups]


def _medians(metrics: Sequence[dict[str, float]]) -> dict[str, float]:
    return {name: median(m[name] for m in metrics if name in m) for name in metrics[0]}


def profile(
    functions: Sequence[str], metrics: Sequence[str], each: int, chosen: Sequence[str] = ()
) -> list[dict[str, float]]:
    """Run the launches under ncu, its clocks left alone, and return the metrics of each.

    `chosen` are the options that say which launches, if not those of `launches`.

    Raises
    ------
    ProfilerError
        There is no ncu, or it cannot read the counters.
    """
    only = "regex:^(" + "|".join(sorted(set(functions))) + ")$"
    options = ["--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base"]
    command = ["ncu", *options, "--kernel-name", only, "--metrics", ",".join(metrics)]
    try:
        text = _child([*command, *_self("--launch", str(each), *chosen)])
    except FileNotFoundError as error:
        raise ProfilerError("ncu is not on PATH: it comes with Nsight Compute or CUDA") from error
    return in_order(read_csv(text, metrics), functions, each)


def _self(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "harness.profiler", *arguments]


def _child(command: list[str]) -> str:
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT.parent, check=False)
    if done.returncode == UNUSABLE and command[0] != "ncu":
        sys.exit(UNUSABLE)
    if done.returncode and command[0] != "ncu":  # ncu's own errors are in what it prints
        raise ProfilerError(f"`{' '.join(command)}` ended with {done.returncode}")
    return done.stdout


def compare(
    time: Callable[[], dict[str, Any]],
    profile: Callable[[Sequence[str], Sequence[str], int], list[dict[str, float]]],
) -> dict[str, Any]:
    """Time, profile, time again; return the document. Its times are microseconds, medians."""
    first = time()
    functions = [launch["function"] for launch in first["launches"]]
    # Apart from the counters: a launch that is replayed for many counters runs 3 % longer.
    times = profile(functions, [TIME], PROFILED_RUNS)
    counters = profile(functions, COUNTERS, 1)
    second = time()
    head = {"device": first["device"], "driver": first["state"].get("driver")}
    head["nvrtc"] = first.get("nvrtc")
    merged = map(_merge, first["launches"], second["launches"], times, counters)
    today = datetime.now(UTC).date().isoformat()
    return {**head, "clock": first["clock"], "date": today, "launches": list(merged)}


def _merge(
    first: dict[str, Any],
    second: dict[str, Any],
    time: dict[str, float],
    counters: dict[str, float],
) -> dict[str, Any]:
    readings = [first["seconds"], second["seconds"]]
    return {
        **{key: first[key] for key in ("workload", "kernel", "n", "grid", "block")},
        "suite_us": round(median([*first["seconds"], *second["seconds"]]) * 1e6, 3),
        "suite_readings_us": [round(median(seconds) * 1e6, 3) for seconds in readings],
        "ncu_us": round(time[TIME] / 1e3, 3),
        "counters": counters,
    }


def write(document: dict[str, Any], folder: Path, name: str = "profiler.json") -> Path:
    """Write a document into `folder`, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    write_whole(path, json.dumps(document, indent=1) + "\n")
    return path


def main(arguments: list[str] | None = None) -> int:
    """Run what was asked for; return 2 if something that it takes is not there."""
    try:
        _run(_parser().parse_args(arguments))
    except (NoGPU, Unusable, CompilerMissing, ProfilerError) as why:
        print(why, file=sys.stderr)
        return UNUSABLE
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m harness.profiler", description=__doc__)
    parser.add_argument("--time", action="store_true", help="print our times as JSON")
    parser.add_argument("--launch", type=int, metavar="RUNS", help="run every launch RUNS times")
    parser.add_argument("--random", type=int, metavar="N", help="count N launches at random")
    parser.add_argument("--seed", type=int, default=0, help="of --random")
    parser.add_argument("--identify", action="store_true", help="name the GPU of --random as JSON")
    return parser


def _run(chosen: argparse.Namespace) -> None:
    """Dispatch: the comparison, or one of the two processes it starts."""
    if chosen.random:
        from harness import instructions  # counts need a disassembler, times do not

        found = instructions.main(chosen, profile, lambda *more: _child(_self(*more)))
        if found:
            print(write(found, ROOT / slug(found["device"]), instructions.FILE))
    elif chosen.launch:
        run_launches(chosen.launch)
    elif chosen.time:
        print(json.dumps(time_launches()))
    else:
        document = compare(lambda: json.loads(_child(_self("--time"))), profile)
        print(write(document, ROOT / slug(document["device"])))


if __name__ == "__main__":
    sys.exit(main())
