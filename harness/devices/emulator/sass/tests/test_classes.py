"""Blocks that provably do the same: the count of a few is the count of all."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.devices.emulator import EmulatedDevice
from harness.devices.emulator.sass.boxes import Box
from harness.devices.emulator.sass.tests.assembly import assemble, run
from harness.devices.emulator.sass.tests.launches import (
    ARCHITECTURES,
    CASES,
    COUNTED,
    arguments,
    block_of,
    branching,
    ladder,
)
from harness.strategies import sizes
from harness.workloads.ladder import ladder as rung
from kernels import Kernel

DEVICE: Final = EmulatedDevice()
LARGEST: Final = 1 << 16
HARD: Final = tuple(map(branching, ("divide", "oblique")))


def kernels() -> st.SearchStrategy[Kernel]:
    """Draw any kernel that can be counted."""
    return ladder() | st.sampled_from(COUNTED + HARD)


@settings(max_examples=CASES)
@given(kernels(), st.sampled_from(ARCHITECTURES), st.data())
def test_classes_count_what_running_every_block_counts(
    entry: Kernel, architecture: str, data: st.DataObject
) -> None:
    """Over kernel, architecture, block, grid and n, often at an edge."""
    block = block_of(entry, data.draw(st.integers(1, 256), "block"))
    grid = data.draw(st.integers(1, 400), "grid")
    few = entry.source in ("little", "banks") or entry in HARD  # here n is a number of trips
    n = data.draw(st.integers(1, 100) if few else sizes(block, LARGEST), "n")
    launch = (entry, grid, block, *arguments(entry, n))
    proven = DEVICE.count_sass(*launch, architecture=architecture)
    every = DEVICE.count_sass(*launch, architecture=architecture, every_block=True)
    assert every.blocks_run == grid
    assert (proven.total, proven.by_opcode) == (every.total, every.by_opcode)


@settings(max_examples=CASES)
@given(
    st.sampled_from(ARCHITECTURES),
    st.tuples(st.integers(1, 40), st.integers(1, 12), st.integers(1, 6)),
    st.tuples(st.integers(1, 16), st.integers(1, 8), st.integers(1, 4)),
    st.integers(0, 40_000),
)
def test_grids_of_three_dimensions_too(
    architecture: str, grid: tuple[int, ...], block: tuple[int, ...], n: int
) -> None:
    """A linear index over a grid and a block of three dimensions, and a comparison of two axes."""
    launch = (branching("cube"), grid, block, 0, n)
    proven = DEVICE.count_sass(*launch, architecture=architecture)
    every = DEVICE.count_sass(*launch, architecture=architecture, every_block=True)
    assert proven.by_opcode == every.by_opcode


COMPARE: Final = """S2R R0,SR_CTAID.X
    IMAD R1,R0,{slope},{start}
    ISETP.{operator} P0,PT,R1,{bound},PT
    @P0 EXIT
    EXIT"""
NUMBERS: Final = st.integers(-(1 << 31), (1 << 31) - 1) | st.integers(-3000, 3000)


WIDE: Final = """S2R R0,SR_CTAID.X
    IMAD R2,R0,{slope},{start}
    MOV R3,RZ
    MOV R4,{bound}
    MOV R5,RZ
    ISETP.{operator} P0,PT,R2,R4,PT
    @P0 EXIT
    EXIT"""


def hexadecimal(number: int) -> str:
    """As nvdisasm prints it."""
    return f"-{-number:#x}" if number < 0 else f"{number:#x}"


@settings(max_examples=CASES)
@given(
    st.sampled_from([f"{name}{type_}.AND" for name in ("LT", "LE", "GT", "GE", "EQ", "NE")
                     for type_ in ("", ".U32")]),
    NUMBERS, NUMBERS, NUMBERS, st.integers(1, 700),
)  # fmt: skip
def test_a_comparison_that_wraps_or_turns_is_cut_where_it_does(
    operator: str, slope: int, start: int, bound: int, blocks: int
) -> None:
    """Slopes that wrap around many times within the grid included."""
    numbers = {"slope": slope, "start": start, "bound": bound}
    text = COMPARE.format(operator=operator, **{k: hexadecimal(v) for k, v in numbers.items()})
    program, grid = assemble(text), (blocks, 1, 1)
    assert (
        run(program, grid=grid).executions == run(program, grid=grid, every_block=True).executions
    )


@settings(max_examples=CASES)
@given(
    st.sampled_from([f"{name}.{type_}.AND" for name in ("LT", "GE", "NE")
                     for type_ in ("S64", "U64")]),
    NUMBERS, NUMBERS, NUMBERS, st.integers(1, 100),
)  # fmt: skip
def test_a_comparison_of_64_bits_is_not_proven_by_its_low_word(
    operator: str, slope: int, start: int, bound: int, blocks: int
) -> None:
    """The low word wraps; the pair does not follow it."""
    numbers = {"slope": slope, "start": start, "bound": bound}
    text = WIDE.format(operator=operator, **{k: hexadecimal(v) for k, v in numbers.items()})
    program, grid = assemble(text), (blocks, 1, 1)
    assert (
        run(program, grid=grid).executions == run(program, grid=grid, every_block=True).executions
    )


def test_few_blocks_stand_for_a_quarter_of_a_million() -> None:
    """Three when all do the same; a few more where n cuts through a block."""
    assert rung("reduce_v2", 1 << 26, 0, "sm_90").blocks_run == 3
    assert rung("reduce_v2", (1 << 26) - 77, 0, "sm_90").blocks_run <= 16


def test_what_no_proof_covers_runs_every_block() -> None:
    """A trip count that is a square of the block's index."""
    count = DEVICE.count_sass(branching("oblique"), 30, 64, 0, 500)
    assert count.blocks_run >= 30


@given(st.tuples(*[st.integers(1, 9)] * 3), st.data())
def test_a_box_is_cut_into_all_of_its_blocks(
    extent: tuple[int, int, int], data: st.DataObject
) -> None:
    """None is lost, none comes twice."""
    box = Box((5, 6, 7), extent)
    whole = {tuple(block) for block in box.range(0, box.blocks).tolist()}
    assert len(whole) == box.blocks
    axis, _ = box.halve()
    if extent[axis] > 1:
        parts = box.cut(axis, data.draw(st.integers(1, extent[axis] - 1)))
        found = [tuple(b) for part in parts for b in part.range(0, part.blocks).tolist()]
        assert sorted(found) == sorted(whole)
    assert {tuple(probe) for probe in box.probes.tolist()} <= whole
    assert np.array_equal(box.probes[0], box.first)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_count_names_its_code(architecture: str) -> None:
    """It is a property of source, architecture and compiler."""
    count = DEVICE.count_sass(branching("oblique"), 1, 32, 0, 0, architecture=architecture)
    assert count.architecture == architecture
    assert count.compiler >= (12, 0)
