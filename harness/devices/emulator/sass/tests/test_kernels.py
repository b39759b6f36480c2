"""Every kernel of kernels/*.cu is counted, or refused by name."""

from __future__ import annotations

from typing import Final

import pytest

from harness.devices.emulator import EmulatedDevice, Uncountable
from harness.devices.emulator.sass.tests.launches import (
    ARCHITECTURES,
    BULK,
    COUNTED,
    REFUSED,
    arguments,
    block_of,
)
from kernels import FOLDER, SIGNATURE, Kernel

WRITTEN: Final = {
    (path.stem, name)
    for path in FOLDER.glob("*.cu")
    for name, _ in SIGNATURE.findall(path.read_text())
}


def test_no_kernel_is_forgotten() -> None:
    """One that is added must be counted or refused here."""
    known = (*COUNTED, *REFUSED, BULK)
    assert {(entry.source, entry.name) for entry in known} == WRITTEN


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("entry", COUNTED, ids=lambda entry: f"{entry.source}-{entry}")
def test_a_kernel_that_its_launch_decides_is_counted(entry: Kernel, architecture: str) -> None:
    """At least one instruction a warp; the histogram adds up."""
    block = block_of(entry, 128)
    count = EmulatedDevice(architecture).count_sass(entry, 999, block, *arguments(entry, 1000))
    assert count.total == sum(count.by_opcode.values()) >= 999 * block // 32
    if "long long n" not in entry.path.read_text():  # proven are comparisons of 32-bit numbers
        assert count.blocks_run <= 60


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("entry", REFUSED, ids=str)
def test_a_kernel_that_data_decide_is_refused_by_name(entry: Kernel, architecture: str) -> None:
    """The message quotes the branch and what it depends on."""
    with pytest.raises(
        Uncountable, match=rf"{entry.name}: `.*BRA .*` at 0x\w+ is decided by `(F|LDG)"
    ):
        EmulatedDevice(architecture).count_sass(
            entry, 8, block_of(entry, 128), *arguments(entry, 1)
        )


@pytest.mark.parametrize("architecture", ARCHITECTURES[1:])
def test_bulk_copies_are_refused_by_name(architecture: str) -> None:
    """The message quotes the first instruction that no table has."""
    with pytest.raises(Uncountable, match=r"reduce_v10 .*`FENCE.*` at 0x\w+: .* is not known"):
        EmulatedDevice(architecture).count_sass(BULK, 8, 128, 0, 0, 0, 1 << 20, shared=8192)
