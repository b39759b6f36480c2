"""A kernel made wrong must be refused; one made slow must wait before its first load."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.devices import Device, Launch
from harness.devices.emulator import EmulatedDevice, Fault
from harness.selftest.plants import WRONG, Plant, planted, waiting
from harness.selftest.session import SMALL
from harness.selftest.trials import wrong_flagged
from harness.tests.fakes import FakeGPU, FakeWorkload
from harness.workbench import Workbench
from harness.workloads.reduction import whole_numbers
from kernels import compile_kernel


@pytest.mark.parametrize("plant", WRONG, ids=lambda plant: plant.name)
def test_a_wrong_kernel_goes_red_in_its_own_check(plant: Plant, tmp_path: Path) -> None:
    """One replaced place each: the sum is off, or the emulated device names what is forbidden.

    The elements are those that a GPU adds in the self-test.
    """
    launch = planted(plant, tmp_path, SMALL).prepare(EmulatedDevice())
    with pytest.raises((AssertionError, Fault)):
        launch.check()


def test_the_same_kernel_unharmed_passes(tmp_path: Path) -> None:
    """So it is the plant that fails the check, not the copy of the source."""
    planted(Plant("none", "int lane", "int lane"), tmp_path, SMALL).prepare(
        EmulatedDevice()
    ).check()


def test_the_barrier_and_the_write_beside_are_named(tmp_path: Path) -> None:
    """What no sum shows on every run."""
    plants = {plant.name: plant for plant in WRONG}
    for name, message in (("lost-barrier", "race with a write"), ("written-beside", "past the 4")):
        launch = planted(plants[name], tmp_path, SMALL).prepare(EmulatedDevice())
        with pytest.raises(Fault, match=message):
            launch.check()


def test_the_wait_compiles_and_precedes_every_load(tmp_path: Path) -> None:
    """The index of the first load comes from shared memory, which is written after the wait."""
    ptx = compile_kernel(planted(waiting(1235), tmp_path).kernel, "sm_90").ptx
    body = ptx[ptx.index("entry reduce_v7(") :]
    places = [body.index(text) for text in ("%clock64", "bar.sync", "ld.volatile.shared", "v4.f32")]
    assert places == sorted(places)
    assert ", 1235;" in body


def test_a_place_that_is_gone_is_an_error(tmp_path: Path) -> None:
    """A plant that changes nothing would prove nothing."""
    with pytest.raises(ValueError, match="adapt the plant missing"):
        planted(Plant("missing", "no such text", ""), tmp_path)


def test_what_writes_beside_its_arrays_is_never_timed() -> None:
    """The workbench looks at the memory around the arrays after each check."""

    class Damaged(FakeGPU):
        def verify_canaries(self) -> None:
            raise AssertionError("byte +1 after float32[1] was written")

    gpu = Damaged()
    with pytest.raises(AssertionError, match="byte \\+1 after"):
        Workbench(gpu).rounds(FakeWorkload("copy"), 20)
    assert not [line for line in gpu.log if line.startswith("time")]


def test_a_lost_load_is_one_whose_sum_shows(tmp_path: Path) -> None:
    """The sum must be exact, and the four whole numbers that no thread loads do not add to 0."""
    device = EmulatedDevice()
    x, total = whole_numbers(device, SMALL)
    lost = device.get(x)[-4:].sum()
    assert lost != 0
    (plant,) = (plant for plant in WRONG if plant.name == "lost-load")
    with pytest.raises(AssertionError, match=f"gives {total - lost}; the sum is exactly {total}"):
        planted(plant, tmp_path, SMALL).prepare(device).check()


class Untried(FakeWorkload):
    """Cannot be prepared."""

    def prepare(self, device: Device) -> Launch:
        raise RuntimeError("out of memory")


@pytest.mark.parametrize(
    ("workload", "refused"),
    [
        (FakeWorkload("wrong", right=0), True),
        (FakeWorkload("right"), False),
        (Untried("untried"), False),
    ],
)
def test_only_a_failed_check_refuses_a_kernel(workload: FakeWorkload, refused: bool) -> None:
    """One that could not be tried says nothing about the check."""
    assert wrong_flagged(Workbench(FakeGPU()), {"it": workload}) == {"it": refused}
