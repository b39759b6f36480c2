"""The recorded profiles: our clock agrees with the profiler's, our counts with the hardware's."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from harness.baselines import ROOT
from harness.devices.emulator import Counters, EmulatedDevice
from harness.profiles import Profile, ProfileError, read, stored
from harness.tests.fakes import FakeWorkload
from harness.workloads.access import Copy, Update
from harness.workloads.reduction import Reduction, reduce_sum

RUNGS: Final = ("reduce_v1", "reduce_v2", "reduce_v3", "reduce_v4")
PERSISTENT: Final = ("reduce_v5", "reduce_v5_float4", "reduce_v6", "reduce_v7")
SMALL: Final = 1 << 16
LOADS: Final = "l1tex__t_{}_pipe_lsu_mem_global_op_ld.sum"
WAVEFRONTS: Final = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"


@pytest.fixture(params=sorted(ROOT.glob("*/profiler.json")), ids=lambda path: path.parent.name)
def profile(request: pytest.FixtureRequest) -> Profile:
    """Each GPU's recorded profile."""
    return read(request.param)


def counters(reduction: Reduction) -> Counters:
    """Count a rung on a small array."""
    device = EmulatedDevice()
    x = device.put(np.ones(SMALL, np.float32))
    return device.count(lambda: reduce_sum(device, reduction, x))


@pytest.mark.parametrize(
    ("rung", "allowed"), [(rung, 0.02) for rung in PERSISTENT] + [("reduce_v4", 0.06)]
)
def test_the_clock_agrees_with_the_profiler(profile: Profile, rung: str, allowed: float) -> None:
    """Kernel time within 2 %; V4, whose contended atomic depends on its address, within 6 %."""
    launch = profile.launches[Reduction(rung).name]
    assert launch["suite_us"] == pytest.approx(launch["ncu_us"], rel=allowed)


@pytest.mark.parametrize("rung", RUNGS + PERSISTENT)
def test_loads_are_what_the_emulated_device_counts(profile: Profile, rung: str) -> None:
    """Requests and sectors grow with n and with nothing else."""
    reduction = Reduction(rung)
    counted = counters(reduction).traffic("ld", "global")
    for name in ("requests", "sectors"):
        measured = profile.counter(reduction, LOADS.format(name))
        assert measured == getattr(counted, name) * reduction.n / SMALL


@pytest.mark.parametrize("rung", RUNGS[1:])
def test_shared_wavefronts_are_what_the_emulated_device_counts(profile: Profile, rung: str) -> None:
    """Per block; the hardware adds up to 3 % that depend on what else the SM does."""
    reduction = Reduction(rung)
    for opcode in ("ld", "st"):
        counted = counters(reduction).traffic(opcode, "shared").wavefronts * reduction.n / SMALL
        measured = profile.counter(reduction, WAVEFRONTS.format(opcode))
        assert counted <= measured <= counted * 1.03


@pytest.mark.parametrize(
    "workload",
    [
        Update("aos", 1 << 22),
        Update("soa", 1 << 22),
        *(Copy("strided", stride) for stride in (8, 16, 32)),
    ],
    ids=lambda workload: workload.name,
)
def test_access_patterns_take_the_sectors_counted(profile: Profile, workload: Any) -> None:
    """The same pattern on fewer elements has the same sectors an element."""
    elements = SMALL // 16
    small = (
        Update(workload.layout, elements)
        if isinstance(workload, Update)
        else Copy(workload.pattern, workload.amount, elements)
    )
    device = EmulatedDevice()
    launch = small.prepare(device)
    counted = device.count(lambda: launch.on(device)).traffic("ld", "global").sectors
    n = profile.launches[workload.name]["n"]
    assert profile.counter(workload, LOADS.format("sectors")) == counted * n / elements


@pytest.mark.parametrize(
    "launches", [{}, {"slow": {}}, {"slow": {"counters": {}}}, {"slow": {"counters": {"x": None}}}]
)
def test_a_counter_that_was_not_recorded_is_named(launches: dict[str, Any]) -> None:
    """With the file and what to do."""
    damaged = Profile(Path("some-gpu/profiler.json"), "some GPU", launches)
    with pytest.raises(ProfileError, match=r"some-gpu/profiler\.json has no counter x of slow"):
        damaged.counter(FakeWorkload("slow"), "x")


@pytest.mark.parametrize("text", ["", "{", '{"launches": []}', '{"launches": [{}], "device": 1}'])
def test_a_damaged_profile_is_named_and_kept(tmp_path: Path, text: str) -> None:
    """Whatever a killed run or a bad merge leaves behind."""
    path = tmp_path / "some-gpu" / "profiler.json"
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(ProfileError, match=r"some-gpu/profiler\.json is damaged"):
        stored(tmp_path)
    assert path.read_text() == text
