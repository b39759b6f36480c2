"""Counts against the hardware's on launches drawn at random, where the code is the same."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from harness.draws import VARIANTS, Zeros, draw
from harness.instructions import (
    EXECUTED,
    FILE,
    Measured,
    Record,
    code,
    count,
    document,
    main,
    stored,
)
from harness.profiler import write
from kernels import compile_kernel

GPU: Final = {"device": "NVIDIA H200", "driver": "580.159.04", "architecture": "sm_90"}
RECORDED: Final = [(record, each) for record in stored() for each in record.launches]


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


def honest(functions: Sequence[str], metrics: Sequence[str], each: int) -> list[dict[str, float]]:
    """A GPU that counts as we do."""
    assert (list(metrics), each) == ([EXECUTED], 1)
    launches = draw(7, len(functions))
    assert [launch.kernel.name for launch in launches] == list(functions)
    return [{EXECUTED: float(count(launch, "sm_90"))} for launch in launches]


def test_a_record_says_all_that_it_takes_to_count_again(tmp_path: Path) -> None:
    """Written, read back, and counted from what was read."""
    found = document(7, 3, GPU, honest)
    path = write(found, tmp_path / "nvidia-h200", FILE)
    (record,) = stored(tmp_path)
    assert path.name == FILE
    assert record.architecture == "sm_90"
    assert [each.launch for each in record.launches] == draw(7, 3)
    for each in record.launches:
        test_the_count_is_what_the_hardware_counted(record, each)


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
    launches = draw(0, 400)
    assert launches == draw(0, 400) != draw(1, 400)
    sources = [launch.kernel.source for launch in launches]
    assert set(sources) == {
        *("reduce_ladder", "coalescing", "axpy", "vector", "little", "unroll", "banks")
    }
    assert 150 < sources.count("reduce_ladder") < 250
    assert len({each.kernel.defines for each in launches}) > len(VARIANTS)
    for launch in launches:
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
    assert [each["name"] for each in found["launches"]] == [each.name for each in draw(7, 2)]
