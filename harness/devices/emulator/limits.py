"""What a launch may ask for: the sizes that hardware takes, and those a kernel declares."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

import numpy as np

from harness.devices.emulator.machine import Fault
from harness.devices.emulator.ptx import Entry

MAX_BLOCK: Final = 1024
MAX_GRID: Final = 2**31 - 1
MAX_GRIDS: Final = (MAX_GRID, 65535, 65535)
MAX_BLOCKS: Final = (MAX_BLOCK, MAX_BLOCK, 64)
MAX_SHARED: Final = 227 * 1024  # bytes a block may have on sm_90

Size = int | Sequence[int]
Limit = tuple[str, int, int, int, str]  # what, its value, least, most, and who says so


def check_launch(entry: Entry, grid: int, block: int, shared: int) -> tuple[int, int, int]:
    """Return the sizes of a one-dimensional launch as Python's integers; NumPy's would overflow.

    Raises
    ------
    Fault
        A size is no integer, or hardware or the kernel's own bounds refuse it.
    """
    for what, value in {"grid": grid, "block": block, "shared memory of a block": shared}.items():
        if not isinstance(value, (int, np.integer)):
            raise Fault(
                f"{entry.name}: {what} is {value!r}, launches are one-dimensional: pass an int"
            )
    grid, block, shared = int(grid), int(block), int(shared)
    _check(entry.name, ("grid", grid, 1, MAX_GRID, ""))
    _check(entry.name, ("block", block, 1, MAX_BLOCK, ""), ("block", block, *_declared(entry)))
    size = entry.shared + shared
    _check(entry.name, ("shared memory of a block", size, entry.shared, MAX_SHARED, ""))
    return grid, block, shared


def check_shape(kernel: str, grid: Size, block: Size, shared: int) -> None:
    """Check a launch of one to three dimensions.

    Raises
    ------
    Fault
        No hardware takes such a grid, block or amount of shared memory.
    """
    for what, size, most in (("grid", grid, MAX_GRIDS), ("block", block, MAX_BLOCKS)):
        sizes = _dimensions(size)
        if not 1 <= len(sizes) <= len(most):
            raise Fault(f"{kernel}: {what} is {size!r}: pass an int or one to three of them")
        if any(not 1 <= length <= limit for length, limit in zip(sizes, most, strict=False)):
            allowed = f"allowed are 1 to {most[0]} x {most[1]} x {most[2]}"
            raise Fault(f"{kernel}: {what} is {size}, {allowed}")
    _check(kernel, ("block", prod(_dimensions(block)), 1, MAX_BLOCK, ""))
    _check(kernel, ("shared memory of a block", shared, 0, MAX_SHARED, ""))


def _dimensions(size: Size) -> tuple[int, ...]:
    return tuple(size) if isinstance(size, Sequence) else (size,)


def _check(kernel: str, *limits: Limit) -> None:
    for what, value, low, high, source in limits:
        if not low <= value <= high:
            raise Fault(f"{kernel}: {what} is {value}, allowed are {low} to {high}{source}")


def _declared(entry: Entry) -> tuple[int, int, str]:
    """Return the least and the most threads a block may have by what its kernel declares."""
    if required := entry.limits.get("reqntid"):
        return required[0], required[0], " by .reqntid, the __block_size__ of the kernel"
    most = prod(entry.limits.get("maxntid", (MAX_BLOCK,)))
    return 1, most, " by .maxntid, the __launch_bounds__ of the kernel"
