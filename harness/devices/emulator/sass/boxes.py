"""Blocks that provably do the same: a box of them, run at its corners.

If a branch compares numbers that are affine in the block's coordinates and do not wrap within the
box, their difference is affine too; the same outcome at all corners then is the outcome inside.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from harness.devices.emulator.sass.comparisons import OPERATORS, operator, typed
from harness.devices.emulator.sass.instructions import Decoded
from harness.devices.emulator.threads import Lanes

Values = NDArray[np.int64]


@dataclass(frozen=True)
class Box:
    """Blocks from `first` on, `extent` of them along x, y, z."""

    first: tuple[int, int, int]
    extent: tuple[int, int, int]

    @property
    def blocks(self) -> int:
        """How many there are."""
        x, y, z = self.extent
        return x * y * z

    @cached_property
    def corners(self) -> list[tuple[int, ...]]:
        """Offsets of the corners from the first block, which is the first of them."""
        return list(itertools.product(*(sorted({0, length - 1}) for length in self.extent)))

    @cached_property
    def steps(self) -> dict[int, int]:
        """Where among the probes the neighbour along each axis stands that has one."""
        longer = [axis for axis in range(3) if self.extent[axis] > 1]
        return {axis: len(self.corners) + i for i, axis in enumerate(longer)}

    @property
    def probes(self) -> NDArray[np.int64]:
        """The blocks that stand for all: (rows, 3), the corners and a neighbour along each axis."""
        neighbours = [tuple(int(axis == other) for other in range(3)) for axis in self.steps]
        offsets: NDArray[np.int64] = np.array([self.first]) + np.array([*self.corners, *neighbours])
        return offsets

    def range(self, start: int, stop: int) -> NDArray[np.int64]:
        """Return the blocks from the start-th to the stop-th: (rows, 3), x counts fastest."""
        x, y, _ = self.extent
        number = np.arange(start, stop)
        inside = np.stack([number % x, number // x % y, number // (x * y)], axis=1)
        return np.array(self.first) + inside

    def cut(self, axis: int, at: int) -> tuple[Box, Box]:
        """Return the part before the at-th block along an axis, and the rest."""
        parts = []
        for start, length in ((0, at), (at, self.extent[axis] - at)):
            first, extent = list(self.first), list(self.extent)
            first[axis] += start
            extent[axis] = length
            parts.append(Box((first[0], first[1], first[2]), (extent[0], extent[1], extent[2])))
        return parts[0], parts[1]

    def halve(self) -> tuple[int, int]:
        """Return the longest axis and its middle."""
        axis = max(range(3), key=self.extent.__getitem__)
        return axis, self.extent[axis] // 2


class Differ(Exception):
    """The blocks of a box part at block `at` along `axis`."""

    def __init__(self, axis: int, at: int) -> None:
        super().__init__()
        self.axis, self.at = axis, at


class NotProven(Exception):
    """A branch depends on the block in a way that no proof covers."""


def prove(
    box: Box, code: Decoded, a: NDArray[np.uint64], b: NDArray[np.uint64], lanes: Lanes
) -> None:
    """Prove that a comparison comes out alike in all blocks of a box, in each of `lanes`.

    `a` and `b` broadcast to (probes, warps, 32) and are affine modulo 2^32.

    Raises
    ------
    Differ
        It does not, or a side wraps around: take the parts.
    """
    sides = [_rows(box, side, lanes) for side in typed(code, a, b)]
    for side in sides:
        _check_affine(box, side)
    difference = sides[0] - sides[1]
    compared = np.sign(difference[: len(box.corners)])
    name = operator(code)
    if name not in ("EQ", "NE"):  # monotone along every line: the outcome is enough
        compared = OPERATORS[name](compared, 0)
    unlike = (compared != compared[:1]).any(axis=0)
    if unlike.any():
        raise _parting(box, difference[:, unlike])


def _rows(box: Box, side: Values, lanes: Lanes) -> Values:
    """Return the probes' values in `lanes`: (probes, lanes)."""
    probes = len(box.corners) + len(box.steps)
    shape = np.broadcast_shapes(side.shape, lanes.shape, (probes, 1, 1))
    chosen = np.broadcast_to(lanes[0], shape[1:])
    return np.broadcast_to(side, shape)[:, chosen]


def _check_affine(box: Box, side: Values) -> None:
    """A side that wraps is not affine: all its corners must be where its slopes lead."""
    slopes = {axis: side[row] - side[0] for axis, row in box.steps.items()}
    for row, corner in enumerate(box.corners):
        expected = side[0] + sum(slope * corner[axis] for axis, slope in slopes.items())
        if (side[row] != expected).any():
            raise Differ(*box.halve())


def _parting(box: Box, difference: Values) -> Differ:
    """Return where the first lane's outcome turns, along the axis that moves it most."""
    slopes = {axis: difference[row] - difference[0] for axis, row in box.steps.items()}
    axis = max(slopes, key=lambda each: int(np.abs(slopes[each]).max()) * (box.extent[each] - 1))
    moving = slopes[axis] != 0
    turns = -difference[0][moving] // slopes[axis][moving]
    inside = turns[(turns >= 0) & (turns < box.extent[axis] - 1)]
    if len(inside):
        return Differ(axis, max(int(inside.min()), 1))
    return Differ(*box.halve())
