"""Divergence: whichever way its lanes part, a warp computes what each thread would alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from itertools import takewhile
from typing import Final

import numpy as np
import pytest

from harness.devices import Device
from harness.devices.emulator import EmulatedDevice, Unsupported
from harness.draws import DIVERGENT, Draw

WORD: Final = 1 << 32
UNWRITTEN: Final = WORD - 1  # what the array holds before


def chain(v: int, numbers: Iterable[int]) -> int:
    """Return what `step` makes of v, one number after the other."""
    return reduce(lambda v, i: (v * 3 + i) % WORD, numbers, v)


def nested_loops(t: int) -> int:
    """The inner loop's numbers, once for each trip of the outer one."""
    return chain(1, [j for _ in range(t % 8) for j in range(t // 8 % 4 + 1)])


def break_continue(t: int, n: int) -> int:
    """Without every third trip, up to the first past t % 16."""
    entered = (i for i in range(n) if (i + t) % 3)
    return chain(1, takewhile(lambda i: i <= t % 16, entered))


def call(t: int) -> int:
    """The same function on both sides."""
    return chain(t, range(t % 4)) if t & 2 else chain(1, range(t % 8)) + 7


def early_return(t: int) -> int:
    """Who leaves writes nothing."""
    leaves = t % 5 == 3 or any(i * i > t for i in range(t % 8))
    return UNWRITTEN if leaves else chain(1, range(t % 8))


ALONE: Final[dict[str, Callable[..., int]]] = {
    each.__name__: each for each in (nested_loops, break_continue, call, early_return)
}


def expected(launch: Draw) -> list[int]:
    """Return what each thread of a launch writes."""
    threads, scalars = launch.grid * launch.block, launch.counted[1:]
    if launch.kernel.name == "uneven_stride":
        (n,) = scalars
        return [chain(1, range(i, n, threads)) for i in range(threads)]
    return [ALONE[launch.kernel.name](i % launch.block, *scalars) for i in range(threads)]


def compute(device: Device, launch: Draw) -> list[int]:
    """Run a launch and return what its threads wrote."""
    out = device.put(np.full(launch.grid * launch.block, UNWRITTEN, np.uint32))
    device.launch(launch.kernel, launch.grid, launch.block, out, *launch.counted[1:])
    found: list[int] = device.get(out).tolist()
    return found


@pytest.mark.parametrize("launch", DIVERGENT, ids=lambda launch: launch.kernel.name)
def test_lanes_that_part_compute_what_each_would_alone(device: Device, launch: Draw) -> None:
    """On whichever device this runs."""
    if launch.kernel.name == "call" and isinstance(device, EmulatedDevice):
        pytest.skip("the emulated device has no calls: run this on a GPU")
    assert compute(device, launch) == expected(launch)


def test_a_call_is_refused_by_name(emulator: Device) -> None:
    """With the first instruction that prepares it; its machine code is counted all the same."""
    (launch,) = (each for each in DIVERGENT if each.kernel.name == "call")
    with pytest.raises(Unsupported, match=r"does not know `st\.param\.b32 "):
        compute(emulator, launch)
