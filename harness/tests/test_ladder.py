"""The counts that are known: the seminar's column, and the hardware counters of an H200."""

from __future__ import annotations

import time
from typing import Any, Final

import pytest

from harness.devices.emulator import EmulatedDevice, SassCount
from harness.devices.emulator.sass.tests.launches import ARCHITECTURES
from harness.profiles import stored
from harness.workloads.ladder import ladder
from harness.workloads.reduction import RUNGS
from kernels import kernel

# sm_80, n = 2^24, block 256, grid 1728 for V5 to V7, by NVRTC.
SM_80: Final = {
    (13, 5): (154_992_640, 61_669_376, 52_756_480, 5_599_168, 4_602_112, 1_849_600),
    (13, 0): (154_992_640, 70_582_272, 52_756_480, 5_599_168, 4_617_664, 1_865_152),
}
V1: Final = kernel("reduce_ladder", "reduce_v1", BLOCK=256)


def test_the_seminars_column_is_of_an_a100_and_sixteen_mi_floats() -> None:
    """To every instruction, for the compilers that were tried."""
    counts = [ladder(f"reduce_v{rung}", 1 << 24, 1728, "sm_80") for rung in range(2, 8)]
    compiler = counts[0].compiler
    if compiler not in SM_80:
        pytest.skip(f"what NVRTC {compiler} makes of the ladder is not known here")
    assert tuple(count.total for count in counts) == SM_80[compiler]


def test_the_histogram_is_the_ladders_arithmetic() -> None:
    """V7: a load for four floats a lane, four additions each; five shuffles twice; one barrier."""
    n, blocks, warps = 1 << 26, 1056, 8
    found = ladder("reduce_v7", n, blocks, "sm_90").by_opcode
    loads = n // 4 // 32
    assert found["LDG"] == loads
    assert found["SHFL"] == blocks * (5 * warps + 5)
    assert found["FADD"] == 4 * loads + found["SHFL"]
    assert found["BAR"] == blocks * warps


@pytest.mark.parametrize("profile", stored(), ids=lambda profile: profile.label)
def test_counts_are_what_the_hardware_counted(profile: Any) -> None:
    """Every launch of the profile: ten, and three copies. The local compiler made the same code."""
    device = EmulatedDevice()
    for launch in profile.launches.values():
        counted = recount(device, launch)
        assert counted.total == launch["counters"]["smsp__inst_executed.sum"], launch["workload"]


def recount(device: EmulatedDevice, launch: dict[str, Any]) -> SassCount:
    """Count a launch of the profile again."""
    name = launch["kernel"].split("[")[0]
    if name.startswith("reduce"):
        loads = launch["n"] // RUNGS[name].width
        entry, scalars = kernel("reduce_ladder", name, BLOCK=256), [0, 0, loads]
    else:
        entry = kernel("coalescing", name)
        scalars = {"update_aos": [0], "update_soa": [0, 0]}.get(name, [0, 0, 8])
    return device.count_sass(entry, launch["grid"], launch["block"], *scalars)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_an_index_that_wraps_around_is_counted_right(architecture: str) -> None:
    """2^32 threads: those past 2^31 have a negative index, which is below n = 2^30 as well.

    So three quarters of the warps load and add. On sm_90: 2^27 warps of 11 instructions to the
    branch, EXIT included, and 3 / 4 of them the rest.
    """
    count = EmulatedDevice(architecture).count_sass(V1, 1 << 24, 256, 0, 0, 1 << 30)
    short, whole = (
        EmulatedDevice(architecture).count_sass(V1, 1, 32, 0, 0, n).total for n in (0, 32)
    )
    assert count.total == (short << 25) + (3 * whole << 25)
    assert count.blocks_run < 50
    if architecture == "sm_90":
        assert count.total == 1_778_384_896


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_target_takes_less_than_a_second(architecture: str) -> None:
    """After disassembly, which takes half a second by itself."""
    for rung in (*range(1, 8), "5_float4"):
        ladder(f"reduce_v{rung}", 0, 1, architecture)
        start = time.process_time()
        ladder(f"reduce_v{rung}", 1 << 26, 1056, architecture)
        assert time.process_time() - start < 1
