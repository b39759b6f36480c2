"""Shuffles: the lanes of a warp read each other's registers, and leave shared memory alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.devices import Device
from harness.workloads.reduction import Reduction, count_sum
from kernels import kernel

WARP: Final = 32
THREADS: Final = 2 * WARP  # two warps: nothing may cross between them
WIDTHS: Final = (2, 4, 8, 16, 32)
LAST_ROUNDS: Final = 5  # strides 16, 8, 4, 2, 1: all in one warp

V6 = Reduction("reduce_v6")
V6_SHUFFLE_DOWN = Reduction("reduce_v6", defines=("SHUFFLE_DOWN",))


def from_lane(lane: int, source: int, width: int) -> int:
    """Count from the first lane of the own segment, and wrap around in it."""
    return lane - lane % width + source % width


def from_above(lane: int, delta: int, width: int) -> int:
    """Count down, as far as the first lane of the own segment."""
    return lane - delta if delta <= lane % width else lane


def from_below(lane: int, delta: int, width: int) -> int:
    """Count up, as far as the last lane of the own segment."""
    return lane + delta if lane % width + delta < width else lane


def from_partner(lane: int, mask: int, width: int) -> int:
    """Flip bits of the own number: segments before may be read, segments behind may not."""
    partner = lane ^ mask
    return partner if partner // width <= lane // width else lane


# CUDA C++ Programming Guide, warp shuffle functions: which lane each lane reads.
DEFINITIONS: Final[dict[str, Callable[[int, int, int], int]]] = {
    "shuffle_from": from_lane,
    "shuffle_up": from_above,
    "shuffle_down": from_below,
    "shuffle_xor": from_partner,
}


def shuffled(device: Device, name: str, operands: Any, width: int) -> tuple[Any, Any]:
    """Run a shuffle on random values; return what the lanes received, and what they held."""
    held = np.random.default_rng(width).permutation(THREADS).astype(np.int32)
    arguments = device.put(held), device.put(np.broadcast_to(operands, THREADS).astype(np.int32))
    received = device.empty(THREADS, np.int32)
    device.launch(kernel("shuffle", name), 1, THREADS, *arguments, received, width)
    return device.get(received), held


def sources(device: Device, name: str, operand: int, width: int) -> list[int]:
    """The lane that each lane of the first segment received from."""
    received, held = shuffled(device, name, operand, width)
    return [int(np.flatnonzero(held == value)[0]) for value in received[:width]]


def assert_defined(device: Device, name: str, operands: list[int], width: int) -> None:
    """Hold every lane of both warps against the definition."""
    received, held = shuffled(device, name, operands, width)
    lanes = [DEFINITIONS[name](i % WARP, operands[i], width) for i in range(THREADS)]
    np.testing.assert_array_equal(received, held[np.arange(THREADS) // WARP * WARP + lanes])


def in_every_lane(least: int, most: int) -> st.SearchStrategy[list[int]]:
    """Draw an operand for each thread: the same for all, or one each."""
    operand = st.integers(least, most)
    each = st.lists(operand, min_size=THREADS, max_size=THREADS)
    return operand.map(lambda same: [same] * THREADS) | each


LANES: Final = in_every_lane(-2 * WARP, 2 * WARP)
DELTAS: Final = in_every_lane(0, WARP - 1)  # the instruction reads five bits


@pytest.mark.claim(
    "shuffle.lanes",
    "lane i receives from srcLane, i - delta, i + delta or i ^ laneMask",
)
def test_each_shuffle_reads_the_lane_that_its_definition_names(claim: Any, emulator: Any) -> None:
    """The table's sources, and what it leaves out: a source outside the segment is the lane itself.

    Only __shfl_sync wraps around instead. A segment is `width` lanes.
    """

    @given(width=st.sampled_from(WIDTHS), data=st.data())
    def as_defined(width: int, data: st.DataObject) -> None:
        for name in DEFINITIONS:
            operands = data.draw(LANES if name == "shuffle_from" else DELTAS)
            assert_defined(emulator, name, operands, width)

    as_defined()
    for what, name, expected in (
        ("__shfl_sync, lane 3", "shuffle_from", [3, 3, 3, 3, 3, 3, 3, 3]),
        ("__shfl_up_sync, delta 3", "shuffle_up", [0, 1, 2, 0, 1, 2, 3, 4]),
        ("__shfl_down_sync, delta 3", "shuffle_down", [3, 4, 5, 6, 7, 5, 6, 7]),
        ("__shfl_xor_sync, mask 3", "shuffle_xor", [3, 2, 1, 0, 7, 6, 5, 4]),
    ):
        received = sources(emulator, name, 3, width=8)
        claim.counted(f"{what}, width 8: lanes 0-7 receive from", received, expected)


def exchange(emulator: Any, rung: str, block: int, blocks: int, n: int) -> dict[str, float]:
    """What the adding inside a block takes: requests and shuffles a block, barriers a warp."""
    counters = count_sum(emulator, Reduction(rung, block=block, blocks=blocks), n)
    return {
        "loads": counters.traffic("ld", "shared").requests / blocks,
        "stores": counters.traffic("st", "shared").requests / blocks,
        "barriers": counters.issued("bar") / (blocks * block // WARP),
        "shuffles": counters.issued("shfl") / blocks,
    }


def exchange_v5(block: int) -> dict[str, float]:
    """A tree: one store a warp; W - 1 active warps in the wide rounds, one in each of the last.

    An active warp loads two operands and stores one sum. One load more fetches the result.
    """
    warps = block // WARP
    active = warps - 1 + LAST_ROUNDS
    return {
        "loads": 2 * active + 1,
        "stores": warps + active,
        "barriers": 1 + math.log2(block),
        "shuffles": 0,
    }


def exchange_v6(block: int) -> dict[str, float]:
    """Five shuffles in each warp, one store a warp, one load and five shuffles in the first."""
    warps = block // WARP
    return {"loads": 1, "stores": warps, "barriers": 1, "shuffles": LAST_ROUNDS * (warps + 1)}


@pytest.mark.claim("shuffle.last-rounds", "the last five rounds need no shared memory")
def test_five_rounds_of_shuffles_replace_five_of_shared_memory(claim: Any, emulator: Any) -> None:
    """At strides up to 16 all adding threads are one warp, whose lanes can read each other.

    V5 pays two loads, a store and a barrier for each such round, V6 a shuffle. A block of one
    warp has no other rounds: what V6 keeps there is one store, one load and one barrier.
    """

    @given(
        block=st.sampled_from([32, 64, 128, 256, 512, 1024]),
        blocks=st.integers(1, 3),
        trips=st.integers(1, 3),
    )
    def the_formulas(block: int, blocks: int, trips: int) -> None:
        for rung, formula in (("reduce_v5", exchange_v5), ("reduce_v6", exchange_v6)):
            found = exchange(emulator, rung, block, blocks, trips * blocks * block)
            assert found == formula(block)

    the_formulas()
    for block in (WARP, 256):
        v5, v6 = (exchange(emulator, rung, block, 1, block) for rung in ("reduce_v5", "reduce_v6"))
        for what, v5_pays in exchange_v5(block).items():
            each = "a warp" if what == "barriers" else "a block"
            expected = [v5_pays, exchange_v6(block)[what]]
            claim.counted(f"{what} {each} of {block}, V5 and V6", [v5[what], v6[what]], expected)


def by_instruction(emulator: Any, reduction: Reduction, n: int) -> list[int]:
    """Shuffles that xor, shuffles that count down, and all shuffles."""
    counters = count_sum(emulator, reduction, n)
    modes = [counters.opcodes[f"shfl.sync.{mode}.b32"] for mode in ("bfly", "down")]
    return [*modes, counters.issued("shfl")]


@pytest.mark.claim("shuffle.down-same-as-xor", "__shfl_down_sync is as good as __shfl_xor_sync")
def test_counting_down_takes_as_many_shuffles_and_as_long(claim: Any, emulator: Any) -> None:
    """Both halve the distance five times; xor leaves the sum in all lanes, down only in lane 0."""

    @given(block=st.sampled_from([32, 256, 1024]), blocks=st.integers(1, 3))
    def the_same_shuffles(block: int, blocks: int) -> None:
        for defines in ((), ("SHUFFLE_DOWN",)):
            rung = Reduction("reduce_v6", block=block, blocks=blocks, defines=defines)
            some = blocks * exchange_v6(block)["shuffles"]
            expected = [0, some, some] if defines else [some, 0, some]
            assert by_instruction(emulator, rung, blocks * block) == expected

    the_same_shuffles()
    xor, down = (by_instruction(emulator, rung, 1 << 16) for rung in (V6, V6_SHUFFLE_DOWN))
    claim.counted("shuffles, xor - down", xor[2] - down[2], 0)
    claim.counted("shfl.bfly of xor and of down", [xor[0], down[0]], [xor[2], 0])
    claim.counted("shfl.down of xor and of down", [xor[1], down[1]], [0, down[2]])
    claim.timed("V6 with down / V6 with xor", V6_SHUFFLE_DOWN, V6, at_least=0.97, at_most=1.03)


@pytest.mark.parametrize("name", DEFINITIONS)
@given(width=st.sampled_from(WIDTHS), operands=in_every_lane(0, WARP - 1))
def test_every_lane_receives_what_its_definition_says(
    device: Device, name: str, operands: list[int], width: int
) -> None:
    """On whichever device this runs; a GPU is held against the same definitions."""
    assert_defined(device, name, operands, width)
