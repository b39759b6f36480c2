"""What `count_sass` takes, says and refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.devices.arguments import ArgumentError
from harness.devices.disassembly import SassError
from harness.devices.emulator import EmulatedDevice, Fault
from harness.devices.emulator.sass.__main__ import main
from harness.devices.emulator.sass.tests.launches import branching
from kernels import kernel

COPY = kernel("coalescing", "copy_offset")
DEVICE = EmulatedDevice()


def test_arguments_are_those_of_a_launch_and_an_address_will_do_for_an_array() -> None:
    """No branch depends on where an array stands."""
    x, y = (DEVICE.put(np.zeros(64, np.float32)) for _ in "xy")
    by_array = DEVICE.count_sass(COPY, 1, 64, x, y, 0)
    assert by_array == DEVICE.count_sass(COPY, 1, 64, 0, (1 << 64) - 1, 0)
    assert by_array == DEVICE.count_sass(COPY, (1, 1, 1), (64, 1), 0, 0, 0, shared=1024)
    with pytest.raises(ArgumentError, match="the kernel reads device memory"):
        DEVICE.count_sass(COPY, 1, 64, 1 << 64, 0, 0)


def test_nothing_is_allocated_run_or_counted_elsewhere() -> None:
    """2^50 threads take no longer than one block."""
    counters = DEVICE.count(lambda: DEVICE.count_sass(COPY, (1 << 20, 1 << 15, 32), 1, 0, 0, 0))
    assert counters.warp_instructions == 0


def test_an_architecture_is_the_devices_unless_named() -> None:
    """Whatever GPU is present."""
    assert DEVICE.count_sass(COPY, 1, 32, 0, 0, 0).architecture == "sm_90"
    named = DEVICE.count_sass(COPY, 1, 32, 0, 0, 0, architecture="sm_120")
    assert named.architecture == "sm_120"


@pytest.mark.parametrize(
    ("grid", "block", "message"),
    [
        (0, 32, "copy_offset: grid is 0, allowed are 1 to 2147483647 x 65535 x 65535"),
        ((1, 65536), 32, r"copy_offset: grid is \(1, 65536\), allowed are"),
        (1, (1, 1, 65), r"copy_offset: block is \(1, 1, 65\), allowed are 1 to 1024 x 1024 x 64"),
        (1, (64, 32), "copy_offset: block is 2048, allowed are 1 to 1024"),
        ((), 32, r"copy_offset: grid is \(\): pass an int or one to three of them"),
    ],
)
def test_a_launch_that_no_hardware_takes_is_refused(grid: Any, block: Any, message: str) -> None:
    """As CUDA would."""
    with pytest.raises(Fault, match=message):
        DEVICE.count_sass(COPY, grid, block, 0, 0, 0)


def test_assumptions_are_said() -> None:
    """A barrier that some threads never reach hangs a GPU; the interpreter finds it."""
    count = DEVICE.count_sass(kernel("reduce_ladder", "reduce_v4", BLOCK=64), 1, 64, 0, 0, 64)
    assert count.assumptions == ("every thread of a block reaches its barriers",)
    assert DEVICE.count_sass(branching("oblique"), 1, 32, 0, 0).assumptions == ()


def test_a_cubin_without_the_kernel_is_refused() -> None:
    """By its name."""
    from harness.devices.emulator.sass import cubin

    for broken in (b"", b"\x7fELF" + b"\0" * 60):
        with pytest.raises(SassError, match="bytes has no f"):
            cubin.read(broken, "f", "sm_90")
        with pytest.raises(SassError, match="bytes has no f"):
            cubin.code(broken, "f")


def test_the_table_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """Rungs by architecture, and the published column."""
    assert main(["--n", "65536", "--grid", "8"]) == 0
    head, columns, *rows = capsys.readouterr().out.splitlines()
    assert head.startswith("warp instructions, n = 65536, block 256, NVRTC ")
    assert columns.split() == ["sm_80", "sm_90", "sm_100", "sm_120", "published"]
    assert [row.split()[0] for row in rows] == [f"reduce_v{rung}" for rung in range(1, 8)]
    assert rows[1].endswith("155,000,000")
