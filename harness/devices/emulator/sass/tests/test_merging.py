"""By how much the kernels of divergence.cu tell our rule from the one that merges lanes.

Ours costs a BSYNC for every group that comes to a meeting, the other one BSYNC for all of them. How
many groups come is derived from the source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import pytest

from harness.devices.emulator.sass.tests.launches import ARCHITECTURES
from harness.devices.emulator.sass.tests.merging import merged, split
from harness.devices.emulator.threads import WARP
from harness.draws import DIVERGENT, Draw

Lanes = Sequence[int]  # of one warp, by their number within the grid


def beyond_one(kinds: Iterable[Any]) -> int:
    """Groups that come to one meeting after the first: lanes are in one group if of one kind."""
    return max(len(set(kinds)) - 1, 0)


def nested_loops(launch: Draw, lanes: Lanes) -> int:
    """At the end of each inner loop by their trips of it, and at the end of the outer one."""
    threads = [lane % launch.block for lane in lanes]
    inside = (beyond_one(t // 8 % 4 for t in threads if t % 8 > trip) for trip in range(8))
    return sum(inside) + beyond_one(t % 8 for t in threads)


def break_continue(launch: Draw, lanes: Lanes) -> int:
    """In each trip those that skip it and those that do not; at the end by the trip they left."""
    threads, n = [lane % launch.block for lane in lanes], launch.counted[-1]
    left = {t: next((i for i in range(n) if (i + t) % 3 and i > t % 16), n) for t in threads}
    inside = (beyond_one((i + t) % 3 == 0 for t in threads if left[t] > i) for i in range(n))
    return sum(inside) + beyond_one(left.values())


def call(launch: Draw, lanes: Lanes) -> int:
    """One side returns to a meeting of its own; each group of the other goes to the common one."""
    threads = [lane % launch.block for lane in lanes]
    one_side = beyond_one(t % 4 for t in threads if t & 2)
    return one_side + beyond_one("met" if t & 2 else t % 8 for t in threads)


def early_return(launch: Draw, lanes: Lanes) -> int:
    """Those that stay, by their trips; once more if the last trip is of some that leave."""
    awaited = [t for lane in lanes if (t := lane % launch.block) % 5 != 3]
    trips = {t: next((i + 1 for i in range(t % 8) if i * i > t), t % 8) for t in awaited}
    stay = [t for t in awaited if all(i * i <= t for i in range(t % 8))]
    again = max(trips.values()) > max(trips[t] for t in stay)
    return beyond_one(trips[t] for t in stay) + again


def uneven_stride(launch: Draw, lanes: Lanes) -> int:
    """By their trips, which are as many in all warps but one."""
    n, stride = launch.counted[-1], launch.grid * launch.block
    return beyond_one(len(range(lane, n, stride)) for lane in lanes)


MORE: Final[dict[str, Callable[[Draw, Lanes], int]]] = {
    model.__name__: model
    for model in (nested_loops, break_continue, call, early_return, uneven_stride)
}


def warps(launch: Draw) -> list[Lanes]:
    """Return the lanes of each warp."""
    return [
        range(block * launch.block + first, block * launch.block + min(first + WARP, launch.block))
        for block in range(launch.grid)
        for first in range(0, launch.block, WARP)
    ]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("launch", DIVERGENT, ids=lambda launch: launch.kernel.name)
def test_all_five_tell_the_two_rules_apart(launch: Draw, architecture: str) -> None:
    """By a BSYNC for each group that another was waiting for, and what else such a group issues."""
    ours, other = split(launch, architecture), merged(launch, architecture)
    more = sum(MORE[launch.kernel.name](launch, lanes) for lanes in warps(launch))
    assert ours.by_opcode["BSYNC"] - other.by_opcode["BSYNC"] == more > 0
    assert ours.total - other.total >= more


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_rules_agree_where_no_lane_parts(architecture: str) -> None:
    """All 1,792 lanes make one trip."""
    (whole,) = (each for each in DIVERGENT if each.kernel.name == "uneven_stride")
    even = Draw(whole.kernel, whole.grid, whole.block, (*whole.arguments[:-1], 1792))
    assert split(even, architecture) == merged(even, architecture)
