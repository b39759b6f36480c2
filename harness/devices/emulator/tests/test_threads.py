"""Program counters, barriers, and rows that stand for many blocks."""

from __future__ import annotations

import numpy as np
import pytest

from harness.devices.emulator.threads import (
    BarrierViolation,
    Lanes,
    Threads,
    special_registers,
    uniform,
)


def step(threads: Threads) -> tuple[int, Lanes]:
    found = threads.next()
    assert found
    return found


def test_a_block_that_is_no_multiple_of_a_warp_ends_inside_its_last_warp() -> None:
    threads = Threads(3, 70)
    assert threads.shape == (3, 3, 32)
    assert threads.exists.sum(axis=-1).tolist() == [[32, 32, 6]]
    _, lanes = step(threads)
    assert (lanes == threads.exists).all()


def test_the_lowest_counter_runs_until_the_lanes_meet_again() -> None:
    """Odd lanes jump to 2; even lanes run 1, then all run 2 together."""
    threads = Threads(1, 32)
    odd = threads.index % 2 == 1
    threads.go(2, odd)
    threads.go(1, ~odd)
    block, lanes = step(threads)
    assert (block, lanes.tolist()) == (1, (~odd).tolist())
    threads.go(2, lanes)
    block, lanes = step(threads)
    assert block == 2
    assert lanes.all()


def test_threads_that_have_left_run_no_more() -> None:
    threads = Threads(1, 32)
    threads.go(np.iinfo(np.int32).max, threads.exists)
    assert threads.next() is None
    assert not threads.running.any()


def test_a_barrier_holds_a_block_until_all_its_threads_wait() -> None:
    threads = Threads(2, 64)
    first = np.broadcast_to(threads.index < 32, threads.shape)
    threads.go(5, threads.exists)
    threads.wait(first)
    _, lanes = step(threads)
    assert (lanes == ~first).all()
    threads.wait(~first)
    block, lanes = step(threads)
    assert (block, threads.barriers) == (5, 1)
    assert lanes.all()


def test_blocks_are_released_each_at_its_own_barrier() -> None:
    threads = Threads(2, 32)
    second = np.array([False, True])[:, None, None] & threads.exists
    threads.go(5, ~second & threads.exists)
    threads.go(9, second)
    threads.wait(threads.exists)
    block, lanes = step(threads)
    assert (block, lanes.tolist()) == (5, (~second).tolist())


def test_two_barriers_at_once_in_one_block_are_a_violation() -> None:
    threads = Threads(2, 64)
    threads.go(5, threads.exists)
    threads.go(9, threads.index == 40)
    threads.wait(threads.exists)
    with pytest.raises(BarrierViolation, match="a thread of the block never reaches it") as error:
        threads.next()
    assert error.value.block == 5
    assert np.argwhere(error.value.lanes).tolist() == [[0, 1, 8]]


def test_a_thread_that_left_is_missed_at_the_barrier() -> None:
    threads = Threads(1, 33)
    threads.go(np.iinfo(np.int32).max, threads.index == 32)
    threads.go(5, threads.index < 32)
    threads.wait(threads.index < 32)
    with pytest.raises(BarrierViolation):
        threads.next()


def test_one_row_stands_for_all_blocks_as_long_as_they_agree() -> None:
    assert uniform(np.ones((4, 2, 32))).shape == (1, 2, 32)
    different = np.arange(4)[:, None, None] * np.ones((1, 2, 32))
    assert uniform(different).shape == (4, 2, 32)


def test_special_registers_tell_a_thread_where_it_is() -> None:
    registers = special_registers(Threads(2, 40), first=7, grid=9, block=40)
    assert registers["%ctaid.x"].ravel().tolist() == [7, 8]
    assert registers["%tid.x"].ravel()[:40].tolist() == [*range(40)]
    assert registers["%laneid"].ravel()[:40].tolist() == [*range(32), *range(8)]
    one = {name: values.item() for name, values in registers.items() if values.size == 1}
    assert one == {
        "%ntid.x": 40, "%ntid.y": 1, "%ntid.z": 1, "%nctaid.x": 9, "%nctaid.y": 1, "%nctaid.z": 1,
        "%tid.y": 0, "%tid.z": 0, "%ctaid.y": 0, "%ctaid.z": 0,
    }  # fmt: skip
