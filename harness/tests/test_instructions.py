"""Counts against the hardware's on launches drawn at random, where the code is the same."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from harness.devices.emulator.sass.tests import leaving, parting, unseen
from harness.devices.emulator.sass.tests.merging import merged
from harness.draws import DIVERGENT, Zeros, draw, launches
from harness.instructions import (
    EXECUTED,
    FILE,
    NONE_PARTED,
    Measured,
    Record,
    code,
    count,
    document,
    main,
    stored,
)
from harness.profiler import write
from harness.workloads.reduction import VARIANTS
from kernels import compile_kernel

GPU: Final = {"device": "NVIDIA H200", "driver": "580.159.04", "architecture": "sm_90"}
RECORDS: Final = (*stored(), parting.RECORD, leaving.RECORD, unseen.RECORD)
RECORDED: Final = [(record, each) for record in RECORDS for each in record.launches]
BY_GPU: Final = pytest.mark.parametrize("record", stored(), ids=lambda record: record.label)


@pytest.mark.parametrize(
    ("record", "measured"),
    RECORDED,
    ids=lambda each: getattr(each, "label", None) or each.launch.name,
)
def test_the_count_is_what_the_hardware_counted(record: Record, measured: Measured) -> None:
    """As counted where the code was made; and again here, if the compiler here makes that code."""
    if measured.counted is not None:
        assert measured.counted == measured.executed
    if code(measured.launch, record.architecture) != measured.code:
        there = "counted there, not here" if measured.counted is not None else "not compared"
        local = compile_kernel(measured.launch.kernel, record.architecture).compiler
        pytest.skip(
            f"NVRTC {local} makes other code of {measured.launch.kernel} than NVRTC "
            f"{record.compiler}, which {record.label} ran: {there}"
        )
    assert count(measured.launch, record.architecture) == measured.executed


@BY_GPU
def test_launches_whose_lanes_part_are_counted_as_the_hardware_counted(record: Record) -> None:
    """As counted where the code was made; all that the record has of them."""
    if not record.divergent:
        pytest.skip(f"{record.label}: {NONE_PARTED}")
    if uncounted := [each.launch.name for each in record.divergent if each.counted is None]:
        pytest.skip(f"{record.label} could not count {', '.join(uncounted)} where it ran")
    for each in record.divergent:
        assert each.counted == each.executed, each.launch.name


@BY_GPU
def test_the_hardware_decides_against_merging_lanes_at_one_place(record: Record) -> None:
    """Where the two rules differ on code that is made here as well, it counted by ours."""
    architecture, deciding = record.architecture, 0
    for each in record.launches:
        if code(each.launch, architecture) == each.code:
            ours, other = (count(each.launch, architecture), merged(each.launch, architecture))
            assert each.executed == ours, each.launch.name
            deciding += other.total != ours
    if not deciding:
        pytest.skip(f"no code of {record.label} that is made here tells the two rules apart")


def honest(functions: Sequence[str], metrics: Sequence[str], each: int) -> list[dict[str, float]]:
    """A GPU that counts as we do."""
    assert (list(metrics), each) == ([EXECUTED], 1)
    chosen = launches(7, len(functions) - len(DIVERGENT))
    assert [launch.kernel.name for launch in chosen] == list(functions)
    return [{EXECUTED: float(count(launch, "sm_90"))} for launch in chosen]


def test_a_record_says_all_that_it_takes_to_count_again(tmp_path: Path) -> None:
    """Written, read back, and counted from what was read."""
    found = document(7, 3, GPU, honest)
    path = write(found, tmp_path / "nvidia-h200", FILE)
    (record,) = stored(tmp_path)
    assert path.name == FILE
    assert record.architecture == "sm_90"
    assert [each.launch for each in record.launches] == [*DIVERGENT, *draw(7, 3)]
    for each in record.launches:
        test_the_count_is_what_the_hardware_counted(record, each)
    assert len(record.divergent) == len(DIVERGENT)
    test_launches_whose_lanes_part_are_counted_as_the_hardware_counted(record)
    test_the_hardware_decides_against_merging_lanes_at_one_place(record)


def merging(functions: Sequence[str], metrics: Sequence[str], each: int) -> list[dict[str, float]]:
    """A GPU that merges lanes at one place."""
    chosen = launches(7, len(functions) - len(DIVERGENT))
    return [{EXECUTED: float(merged(launch, "sm_90").total)} for launch in chosen]


def test_a_gpu_with_the_other_rule_would_be_found_out(tmp_path: Path) -> None:
    """Neither test passes its record."""
    write(document(7, 0, GPU, merging), tmp_path / "another-gpu", FILE)
    (record,) = stored(tmp_path)
    for test in (
        test_launches_whose_lanes_part_are_counted_as_the_hardware_counted,
        test_the_hardware_decides_against_merging_lanes_at_one_place,
    ):
        with pytest.raises(AssertionError, match="nested_loops"):
            test(record)


def test_a_record_without_the_five_is_read_and_said_to_lack_them(tmp_path: Path) -> None:
    """Those that were made before they were there."""
    found = document(7, 3, GPU, honest)
    found["launches"] = found["launches"][len(DIVERGENT) :]
    write(found, tmp_path / "nvidia-h200", FILE)
    (record,) = stored(tmp_path)
    assert [each.launch for each in record.launches] == draw(7, 3)
    assert record.divergent == ()
    with pytest.raises(pytest.skip.Exception, match=re.escape(NONE_PARTED)):
        test_launches_whose_lanes_part_are_counted_as_the_hardware_counted(record)


def test_another_count_fails_and_other_code_is_not_compared() -> None:
    """A wrong number is found; code that nobody here can make is said to be so."""
    (launch,) = draw(7, 1)
    right = count(launch, "sm_90")
    record = Record("a GPU", "sm_90", (13, 0), ())
    wrong = Measured(launch, right + 1, None, code(launch, "sm_90"))
    with pytest.raises(AssertionError):
        test_the_count_is_what_the_hardware_counted(record, wrong)
    with pytest.raises(pytest.skip.Exception, match=r"makes other code .* NVRTC \(13, 0\), which"):
        test_the_count_is_what_the_hardware_counted(record, Measured(launch, right, right, "0"))


@pytest.mark.parametrize("text", ["", "{}", json.dumps({**GPU, "date": 1, "launches": []})])
def test_a_damaged_record_is_named(tmp_path: Path, text: str) -> None:
    """It stays as it is."""
    path = tmp_path / "some-gpu" / FILE
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(ValueError, match=r"some-gpu/instructions\.json is damaged"):
        stored(tmp_path)


def test_draws_repeat_and_cover_every_family() -> None:
    """The ladder is half of them; every array has elements; a launch fits any GPU."""
    drawn = draw(0, 400)
    assert drawn == draw(0, 400) != draw(1, 400)
    sources = [launch.kernel.source for launch in drawn]
    assert set(sources) == {
        *("reduce_ladder", "coalescing", "axpy", "vector", "little", "unroll", "banks")
    }
    assert 150 < sources.count("reduce_ladder") < 250
    assert len({each.kernel.defines for each in drawn}) > len(VARIANTS)
    for launch in drawn:
        arrays: list[Any] = [each for each in launch.arguments if isinstance(each, Zeros)]
        assert all(array.size > 0 for array in arrays)
        assert 1 <= launch.block <= 1024
        assert 1 <= launch.grid < 1 << 31


def test_the_command_profiles_what_it_drew() -> None:
    """Three processes: one names the GPU, one runs under the profiler, this one writes."""
    asked: list[tuple[str, ...]] = []

    def child(*options: str) -> str:
        asked.append(options)
        return json.dumps(GPU)

    def profile(
        functions: Sequence[str], metrics: Sequence[str], each: int, chosen: Sequence[str]
    ) -> list[dict[str, float]]:
        asked.append(tuple(chosen))
        return honest(functions, metrics, each)

    options = argparse.Namespace(random=2, seed=7, launch=None, identify=False)
    found = main(options, profile, child)
    assert asked == [
        ("--identify", "--random", "2", "--seed", "7"),
        ("--random", "2", "--seed", "7"),
    ]
    assert found is not None
    assert [each["name"] for each in found["launches"]] == [each.name for each in launches(7, 2)]
