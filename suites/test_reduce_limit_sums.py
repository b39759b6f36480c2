"""Sums past the ladder are right for any size, type and start; what no kernel adds is refused."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.devices import Device, Launch
from harness.devices.arguments import ArgumentError
from harness.devices.emulator import Unsupported
from harness.models.accuracy import exact_sum
from harness.strategies import Floats, boundary_sizes, floats
from harness.workloads import limit
from harness.workloads.limit import (
    ELEMENTS,
    KIB,
    TILES,
    V10,
    RungMissing,
    Shape,
    Sum,
    best,
    element_of,
    error_bound,
    fits,
    launch_of,
    reduce_sum,
    sum_by,
)

SMALL: Final = (
    Shape("reduce_tile", 64, 2),
    Shape("reduce_v8", 32, 4, per_sm=1),
    Shape("reduce_v9", 64, 3, per_sm=1),
    Shape("reduce_v10", 32, per_sm=1, stages=2, chunk=1024),
)


def shapes(device: Device) -> Iterator[Shape]:
    """Small shapes of every rung that the device can run, so that few elements go around often."""
    return (shape for shape in SMALL if fits(device, shape))


def stored(values: np.ndarray[Any, Any], element: str) -> np.ndarray[Any, Any]:
    """Whole numbers up to 2^8 as an array of the type; bfloat16 as its bits."""
    if element != "bfloat16":
        return values.astype(ELEMENTS[element].stored)
    return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


@pytest.mark.parametrize("element", ELEMENTS)
def test_every_rung_sums_every_type_from_any_start(device: Device, element: str) -> None:
    """Whole numbers add without rounding; a view may begin and end off the 16 bytes of a load."""

    @given(
        size=st.sampled_from(boundary_sizes(512, 1 << 14)), start=st.integers(0, 8), data=st.data()
    )
    def sums(size: int, start: int, data: st.DataObject) -> None:
        shape = data.draw(st.sampled_from(list(shapes(device))))
        values = np.arange(size + start) % 11 - 5
        x = device.put(stored(values, element))[start:]
        assert sum_by(device, x, element, shape) == values[start:].sum()

    sums()


def test_any_float32_is_summed_within_the_bound(device: Device) -> None:
    """Values that cancel, differ in size, are subnormal or no numbers; V8 flushes subnormals.

    NaN, or infinities of both signs, give NaN; infinities of one sign give that infinity.
    """

    @given(x=floats(128, 1 << 14), data=st.data())
    @example(x=Floats("infinite", 0, 1000), data=None)
    @example(x=Floats("absorbing", 0, 1 << 13), data=None)
    @example(x=Floats("subnormal", 0, 1 << 10), data=None)
    def sums(x: Floats, data: st.DataObject | None) -> None:
        ours = list(shapes(device))
        shape = data.draw(st.sampled_from(ours)) if data else ours[-1]
        values = x.array()
        assert_sum(device, values, sum_by(device, device.put(values), "float32", shape), shape)

    sums()


def assert_sum(device: Device, x: np.ndarray[Any, Any], found: float, shape: Shape) -> None:
    """Hold a float32 sum against the exact one."""
    exact = exact_sum(x)
    if not math.isfinite(exact):
        np.testing.assert_equal(found, exact)
        return
    magnitude = exact_sum(np.abs(x))
    assert abs(found - exact) <= error_bound(device, len(x), "float32", shape, magnitude)


@pytest.mark.parametrize("element", ELEMENTS)
def test_the_launcher_changes_rungs_without_losing_an_element(device: Device, element: str) -> None:
    """On both sides of every size at which it takes another shape, from any start."""
    wide = ELEMENTS[element].stored.itemsize
    sizes = {0, 1, 32, 33, *(most // wide + d for most, _ in TILES[:5] for d in (-1, 0, 1))}
    values = np.arange(max(sizes) + 1) % 11 - 5
    everything = device.put(stored(values, element))
    for size in sorted(sizes):
        for start in (0, 1):
            found = reduce_sum(device, everything[start : start + size], element)
            assert found == values[start : start + size].sum(), f"{size} elements from {start}"


def test_more_than_all_tiles_are_streamed(device: Device) -> None:
    """Past 64 MiB the grid no longer grows: blocks go around, and the last tile is ragged."""
    n = (1 << 24) + 4093
    x, total = limit.whole_numbers(device, "float32", n)
    assert best(device, n, ELEMENTS["float32"]).per_sm
    assert reduce_sum(device, x) == total


@pytest.mark.parametrize("element", ELEMENTS)
def test_a_launch_leaves_its_slots_empty(device: Device, element: str) -> None:
    """The next launch, here of other values, waits for sums and not for what the last one left."""
    out = device.empty(1, ELEMENTS[element].total)
    first, second = (stored(np.full(20_000, value), element) for value in (-1, 3))
    for shape in shapes(device):
        if shape.slotted:
            launch = launch_of(device, device.put(first), out, element, shape)
            _, _, slots, size = launch.arguments
            again = replace(launch, arguments=(device.put(second), out, slots, size))
            for each, total in ((launch, -20_000), (again, 60_000)):
                each.on(device)
                assert device.get(out)[0] == total
                assert not device.get(slots).any()
            assert launch.grid > 1


def test_the_check_of_a_timed_sum_sees_one_lost_element(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its inputs are whole numbers and none is 0, so that it can ask for the exact sum."""
    launch = Sum(1 << 12).prepare(device)
    launch.check()
    monkeypatch.setattr(limit, "sum_by", lambda on, x, *rest: sum_by(on, x[:-1], *rest))
    with pytest.raises(AssertionError, match="the sum is exactly"):
        launch.check()


def test_the_check_of_a_timed_sum_sees_a_kernel_that_writes_nothing(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was in the output before is no sum, however many numbers there are."""
    launches = [Sum(n).prepare(device) for n in (1, 1 << 12, limit.PERIOD)]
    monkeypatch.setattr(Launch, "on", lambda self, on: None)
    for launch in launches:
        with pytest.raises(AssertionError, match="the sum is exactly"):
            launch.check()


@pytest.mark.parametrize("element", ELEMENTS)
def test_timed_numbers_repeat_with_a_known_sum(device: Device, element: str) -> None:
    """Over each period they sum to 1: no partial sum grows much with n, and no period is 0."""
    x, total = limit.whole_numbers(device, element, 1000)
    values = device.get(x)
    if element == "bfloat16":
        values = (values.astype(np.uint32) << 16).view(np.float32)
    assert values.sum(dtype=np.float64) == total
    assert np.abs(values).min() == 1
    assert np.abs(values).max() == 16
    assert limit.whole_numbers(device, element, limit.PERIOD)[1] == 1


def test_what_no_rung_adds_is_refused_by_name(device: Device) -> None:
    """A kernel would read the wrong bits without a word."""
    values = np.arange(64)
    refused: dict[str, tuple[Any, str | None]] = {
        "x holds int64: reduce_sum adds float32, float64": (device.put(values), None),
        "x holds uint16: .* in uint16, with element='bfloat16'": (
            device.put(values.astype(np.uint16)),
            None,
        ),
        "x holds float32, and 'float16' is stored as float16": (
            device.put(values.astype(np.float32)),
            "float16",
        ),
        "'float8' is stored as nothing here": (device.put(values.astype(np.float32)), "float8"),
        "pass one dimension": (device.put(values.astype(np.float32).reshape(8, 8)), None),
        "strides": (device.put(values.astype(np.float32))[::2], None),
        "ndarray": (values.astype(np.float32), None),
    }
    for message, (x, element) in refused.items():
        with pytest.raises(ArgumentError, match=message):
            reduce_sum(device, x, element)
    assert element_of(device.put(values.astype(np.float64))) == "float64"


def test_an_address_between_two_elements_is_refused(device: Device) -> None:
    """A raw kernel would break the context; NumPy and CuPy make such views without a word."""
    x = Shifted(device.put(np.ones(64, np.float32)), 2)
    with pytest.raises(ArgumentError, match="no multiple of the 4 bytes of float32: copy it"):
        reduce_sum(device, x)


class Shifted:
    """An array that claims to begin so many bytes later."""

    def __init__(self, array: Any, offset: int) -> None:
        self.array, self.interface = array, dict(array.__cuda_array_interface__)
        self.interface["data"] = (self.interface["data"][0] + offset, False)
        self.interface["shape"] = (32,)

    def __getitem__(self, index: slice) -> Any:
        return self.array[index]

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.interface


def test_without_bulk_copies_v10_names_v9(emulator: Any) -> None:
    """They came with sm_90; the emulated device has none, and knows no instruction of theirs."""
    x = emulator.put(np.ones(64, np.float32))
    refused = r"reduce_v10 fills 131072 bytes .* emulated sm_\d+ can fill 0: take reduce_v9"
    with pytest.raises(RungMissing, match=refused):
        sum_by(emulator, x, "float32", V10)
    out, slots = emulator.put(np.zeros(1, np.float32)), emulator.put(np.zeros(132, np.uint64))
    with pytest.raises(Unsupported, match="does not know `mbarrier"):
        emulator.launch(V10.compiled(ELEMENTS["float32"]), 132, 256, x, out, slots, 64, shared=KIB)
    assert best(emulator, 1 << 28, ELEMENTS["float32"]).rung == "reduce_v9"
