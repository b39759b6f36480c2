"""What Nsight Compute prints is read exactly, or refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness import profiler
from harness.profiler import TIME, ProfilerError, Run, compare, in_order, read_csv, write

INSTRUCTIONS = "smsp__inst_executed.sum"
ABSENT = "l1tex__of_another_gpu.sum"
PRINTED = f"""\
==PROF== Connected to process 568 (/usr/bin/python3.12)
"ID","Kernel Name","Block Size","Grid Size","{TIME}","{INSTRUCTIONS}","{ABSENT}"
"","","","","ns","inst",""
"0","reduce_v7","(256, 1, 1)","(1056, 1, 1)","62,464","5,054,400","n/a"
"1","reduce_v7","(256, 1, 1)","(1056, 1, 1)","61,728","5,054,400","n/a"
==PROF== Disconnected from process 568
"""


def test_numbers_lose_their_commas_and_absent_metrics_are_left_out() -> None:
    assert read_csv(PRINTED, [TIME, INSTRUCTIONS, ABSENT]) == [
        Run("reduce_v7", {TIME: 62464.0, INSTRUCTIONS: 5054400.0}),
        Run("reduce_v7", {TIME: 61728.0, INSTRUCTIONS: 5054400.0}),
    ]


def test_a_time_in_another_unit_is_refused() -> None:
    with pytest.raises(ProfilerError, match="in 'us': it needs --print-units base"):
        read_csv(PRINTED.replace('"ns"', '"us"'), [TIME])


def test_a_profiler_without_permission_says_what_to_do() -> None:
    printed = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n"
    with pytest.raises(ProfilerError, match=r"(?s)==ERROR== ERR_NVGPUCTRPERM.*needs permission"):
        read_csv(printed, [TIME])


def test_runs_of_one_launch_become_their_median() -> None:
    runs = [Run("reduce_v7", {TIME: t}) for t in (64.0, 62.0, 63.0)]
    assert in_order(runs, ["reduce_v7"], 3) == [{TIME: 63.0}]


def test_kernels_nobody_launched_are_refused() -> None:
    with pytest.raises(ProfilerError, match=r"was to profile \['reduce_v7'\], it profiled \['x'\]"):
        in_order([Run("x", {TIME: 1.0})], ["reduce_v7"], 1)


def test_no_ncu_is_an_instruction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ProfilerError, match="ncu is not on PATH: it comes with Nsight Compute"):
        profiler.profile(["reduce_v7"], [TIME], 1)


def timed(seconds: list[float]) -> dict[str, Any]:
    launch = {
        "workload": "reduce_v7 n=67108864",
        "kernel": "reduce_v7[BLOCK=256]",
        "function": "reduce_v7",
        "n": 1 << 26,
    }
    launch |= {"grid": 1056, "block": 256, "seconds": seconds}
    state = {"driver": "580.159.04"}
    return {"device": "NVIDIA H200", "clock": "cupti", "state": state, "launches": [launch]}


def profiled(functions: Sequence[str], metrics: Sequence[str], each: int) -> list[dict[str, float]]:
    return [{metric: 62464.0 for metric in metrics} for _ in functions]


def test_both_readings_are_kept_and_the_suites_time_is_their_common_median() -> None:
    readings = iter([[62e-6, 62e-6, 63e-6], [64e-6, 64e-6]])
    document = compare(lambda: timed(next(readings)), profiled)
    assert (document["device"], document["driver"]) == ("NVIDIA H200", "580.159.04")
    (launch,) = document["launches"]
    assert launch["suite_us"] == 63.0
    assert launch["suite_readings_us"] == [62.0, 64.0]
    assert launch["ncu_us"] == 62.464
    assert set(launch["counters"]) == set(profiler.COUNTERS)
    assert (launch["kernel"], launch["n"], launch["grid"], launch["block"]) == (
        "reduce_v7[BLOCK=256]",
        1 << 26,
        1056,
        256,
    )


def test_the_file_is_written_whole(tmp_path: Path) -> None:
    path = write({"device": "NVIDIA H200"}, tmp_path / "nvidia-h200")
    assert json.loads(path.read_text()) == {"device": "NVIDIA H200"}
    assert [file.name for file in path.parent.iterdir()] == ["profiler.json"]
