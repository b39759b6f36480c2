"""A kernel that never ends is reported in seconds, whatever its loop does; one that ends is not."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from time import process_time

import numpy as np
import pytest

from harness.devices.emulator import EmulatedDevice, Fault, machine
from harness.devices.emulator.machine import PATIENCE
from harness.devices.emulator.tests.ptx_text import pointer, program

BEFORE = """
    .shared .align 4 .b8 words[1024];
    ld.param.u64 %rd0, [p0]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.f32 %f0, 0f3F800000;
    mad.lo.u32 %r2, %r1, 256, %r0; mad.wide.u32 %rd1, %r2, 4, %rd0;
    and.b32 %r4, %r2, 3; mad.lo.u32 %r3, %r4, 4, words;
    setp.lt.u32 %p0, %r0, 4; @%p0 st.shared.u32 [%r3], 0; bar.sync 0;
"""
LOOPS = {
    "nothing": "",
    "arithmetic": "fma.rn.f32 %f0, %f0, %f0, %f0; rem.s32 %r2, %r2, 7;" * 8,
    "loads and stores": "ld.global.f32 %f0, [%rd1]; st.global.f32 [%rd1], %f0;" * 8,
    "shuffles": "shfl.sync.down.b32 %r2, %r2, 1, 31, -1; bar.warp.sync -1;" * 8,
    "a lock that nobody opens": "atom.global.cas.b32 %r2, [%rd0], 0, 1;",
    "shared counters": "atom.shared.add.u32 %r2, [%r3], %r1;",
}


def endless(loop: str) -> str:
    """Return a kernel that runs `loop` for ever."""
    return f"{BEFORE} $again: {loop} bra $again;"


@pytest.mark.parametrize(("grid", "block"), [(1, 32), (512, 256)])
@pytest.mark.parametrize("loop", LOOPS)
def test_an_endless_kernel_is_reported_in_time(loop: str, grid: int, block: int) -> None:
    """The last step may take a while: 131,072 lanes are at it together."""
    device = EmulatedDevice(patience=0.3)
    x = device.put(np.zeros(grid * 256, np.float32))
    start = process_time()
    with pytest.raises(Fault, match=r"no thread has left in 0\.3 s: endless"):
        device.count(
            lambda: device.run(program(endless(LOOPS[loop]), ("u64",)), [pointer(x)], grid, block)
        )
    assert process_time() - start < PATIENCE


def steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a second pass at each look at the clock."""
    seconds: Iterator[int] = count()
    monkeypatch.setattr(machine, "process_time", lambda: next(seconds))


def test_it_is_stopped_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """The instruction, the first lane, and what to do if it is not endless."""
    steps(monkeypatch)
    with pytest.raises(Fault) as error:
        EmulatedDevice(patience=100).run(program("$again: bra $again;"), [], 1, 32)
    assert str(error.value) == (
        "k: `bra $again`: no thread has left in 100 s: endless, or raise it with "
        "EmulatedDevice(patience=...) (block 0, thread 0)"
    )


def test_a_long_kernel_whose_threads_leave_in_turn_is_not_endless(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """64 threads leave one after another, 30 trips apart: 1920 trips, none of 100 without one."""
    steps(monkeypatch)
    body = """
        mov.u32 %r0, %tid.x; mad.lo.u32 %r0, %r0, 30, 30;
        $again: sub.u32 %r0, %r0, 1; setp.eq.u32 %p0, %r0, 0; @%p0 exit; bra $again;
    """
    EmulatedDevice(patience=100).run(program(body), [], 1, 64)
    with pytest.raises(Fault, match="no thread has left in 50 s"):
        EmulatedDevice(patience=50).run(program(body), [], 1, 64)
