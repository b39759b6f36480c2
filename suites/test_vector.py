"""Vectorised access: one instruction for four floats, the same bytes on the bus."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.devices import Device
from harness.devices.arguments import ArgumentError
from harness.devices.disassembly import memory_instructions
from harness.models.accuracy import ROUNDOFF
from harness.models.counting import bytes_in_flight
from harness.models.datasheet import GPU, GPUS
from harness.strategies import Floats, floats
from harness.workloads.saxpy import BLOCK, A, Saxpy, saxpy

SCALAR, VECTORISED = Saxpy(1), Saxpy(4)
WARP: Final = 32
GLOBAL_LOAD: Final = ("load", "global")
SMALLEST: Final = 2.0**-149  # subnormal float32


def loads(emulator: Any, workload: Saxpy) -> Any:
    """The traffic of a saxpy's global loads."""
    return emulator.count_checked(workload).traffic("ld", "global")


@pytest.mark.claim(
    "vector.quarter-of-the-loads", "a load of float4 does the work of four", published="4x"
)
@pytest.mark.usefixtures("disassembler")
def test_float4_asks_a_quarter_as_often_for_the_same_sectors(claim: Any, emulator: Any) -> None:
    """Of x and y: 2 n / 32 requests by float, 2 n / 128 by float4; 2 n / 8 sectors either way.

    The machine code has two loads of 16 bytes a thread where it had two of 4.
    """

    @given(warps=st.integers(1, 64))
    def a_quarter_of_the_requests(warps: int) -> None:
        n = 4 * WARP * warps
        scalar, vectorised = (loads(emulator, Saxpy(width, n)) for width in (1, 4))
        assert (scalar.requests, vectorised.requests) == (2 * n // 32, 2 * n // 128)
        assert scalar.sectors == vectorised.sectors == 2 * n // 8

    a_quarter_of_the_requests()
    scalar, vectorised = (loads(emulator, Saxpy(width, 4096)) for width in (1, 4))
    claim.counted("load requests, float / float4", scalar.requests / vectorised.requests, 4)
    claim.counted("sectors, float / float4", scalar.sectors / vectorised.sectors, 1)
    for architecture in ("sm_80", "sm_90"):
        for workload in (SCALAR, VECTORISED):
            code = memory_instructions(workload.kernel, architecture)
            sizes = [each.bytes for each in code if (each.kind, each.space) == GLOBAL_LOAD]
            what = f"bytes of each load in the machine code of {workload.kernel}"
            claim.counted(what, sizes, [4 * workload.width] * 2, architecture)


@pytest.mark.claim("vector.saxpy-faster", "the vectorised saxpy is faster")
def test_float4_makes_saxpy_faster(claim: Any, emulator: Any) -> None:
    """32 bytes in flight a thread where there were 8: x and y, of 2048 threads an SM.

    An H200 needs some 48 KiB an SM to fill its DRAM, a V100 12: there float4 gains 1 or 2 %.
    """
    for name, workload, kib in (("float", SCALAR, 16), ("float4", VECTORISED, 64)):
        in_flight = bytes_in_flight(workload.kernel, BLOCK, emulator.architecture)
        claim.counted(f"KiB in flight an SM, {name}", in_flight / 1024, kib)
    full = ", ".join(gpu.name for gpu in GPUS if fills(gpu, kib=16))
    claim.note(f"Expected by the data sheets, not measured: little to gain on {full}.")
    claim.timed("saxpy with float / with float4", SCALAR, VECTORISED, at_least=1.1)


def fills(gpu: GPU, kib: int) -> bool:
    """Whether so much in flight an SM is what CUB keeps there to fill the memory."""
    return gpu.in_flight_kib is not None and gpu.in_flight_kib <= kib


@pytest.mark.claim(
    "vector.width",
    "float4 loads four floats at once, 128 bytes",
    published="128 bytes",
    expects="refuted",
)
def test_a_float4_is_16_bytes_and_a_warp_of_them_512(claim: Any, emulator: Any) -> None:
    """4 floats x 32 bits = 128 bits = 16 bytes a lane; 32 lanes x 16 bytes = 512 a request."""

    @given(warps=st.integers(1, 64))
    def the_same_for_any_full_warp(warps: int) -> None:
        traffic = loads(emulator, Saxpy(4, 4 * WARP * warps))
        assert (traffic.bytes, traffic.sectors) == (512 * traffic.requests, 16 * traffic.requests)

    the_same_for_any_full_warp()
    traffic = loads(emulator, Saxpy(4, 4096))
    claim.counted("bytes a load brings a lane", traffic.bytes / traffic.lanes, 16)
    claim.counted("bits a load brings a lane", 8 * traffic.bytes / traffic.lanes, 128)
    claim.counted("bytes a load brings a warp", traffic.bytes / traffic.requests, 512)


def left_by_the_published_kernel(device: Device, n: int) -> int:
    """Elements of n that saxpy_vectorized does not change, in arrays rounded up to float4s."""
    x, y = (device.put(np.ones(-(-n // 4) * 4, np.float32)) for _ in "xy")
    device.launch(VECTORISED.kernel, max(-(-n // 4 // BLOCK), 1), BLOCK, x, y, A, n)
    found = device.get(y)
    np.testing.assert_array_equal(found[: n - n % 4], A + 1)
    np.testing.assert_array_equal(found[n - n % 4 :], 1)
    return int(np.count_nonzero(found[:n] == 1))


def left_by_the_launcher(device: Device, n: int) -> int:
    """Elements of n that saxpy does not change."""
    x, y = (device.put(np.ones(n, np.float32)) for _ in "xy")
    saxpy(device, A, x, y)
    return int(np.count_nonzero(device.get(y) == 1))


@pytest.mark.claim(
    "vector.tail", "the published saxpy computes all n elements", expects="refuted", ours=True
)
def test_the_published_saxpy_leaves_the_last_elements(claim: Any, emulator: Any) -> None:
    """The quotient n / 4 rounds down: the last n % 4 elements stay as they were, without a word.

    The launcher hands them to the scalar kernel.
    """

    @given(n=st.integers(1, 5000))
    def n_modulo_four(n: int) -> None:
        assert left_by_the_published_kernel(emulator, n) == n % 4
        assert left_by_the_launcher(emulator, n) == 0

    n_modulo_four()
    for n in (4099, 4097, 4096):
        left = left_by_the_published_kernel(emulator, n)
        claim.counted(f"elements of {n} the published kernel leaves", left, n % 4)
    left = left_by_the_launcher(emulator, 4099)
    claim.counted("elements of 4099 our launcher leaves", left, 0)


@pytest.mark.parametrize("workload", [SCALAR, VECTORISED], ids=lambda w: w.kernel.name)
@pytest.mark.benchmark(group="saxpy")
def test_both_saxpys_are_timed(bench: Any, workload: Saxpy) -> None:
    """A row of the benchmark table for each width."""
    bench(workload)


@given(width=st.sampled_from([1, 4]), warps=st.integers(1, 64))
def test_every_element_is_stored_once(emulator: Any, width: int, warps: int) -> None:
    """Of y: n / 32 requests by float, n / 128 by float4; n / 8 sectors either way."""
    n = 4 * WARP * warps
    stores = emulator.count_checked(Saxpy(width, n)).traffic("st", "global")
    assert (stores.requests, stores.sectors) == (n // (WARP * width), n // 8)


@pytest.mark.parametrize("width", [1, 4])
@given(x=floats(BLOCK, 1 << 13), a=st.floats(-16, 16, width=32), seed=st.integers(0, 2**32 - 1))
def test_saxpy_rounds_once(device: Device, width: int, x: Floats, a: float, seed: int) -> None:
    """Any size, any values: a fused multiply-add is within half a unit of the exact a x + y."""
    values, scale = x.array(), np.float32(a)
    y = Floats("normal", seed, len(values)).array()
    target = device.put(y)
    saxpy(device, scale, device.put(values), target, width)
    with np.errstate(invalid="ignore"):  # infinity times zero
        exact = np.float64(scale) * values + y.astype(np.float64)
    np.testing.assert_allclose(device.get(target), exact, rtol=1.001 * ROUNDOFF, atol=SMALLEST)


@given(start=st.integers(0, 9), size=st.integers(4, 3000), width=st.sampled_from([1, 4]))
def test_a_view_is_computed_or_refused(device: Device, start: int, size: int, width: int) -> None:
    """The scalar kernel takes any view; float4 needs its first element on 16 bytes."""
    x, y = (device.put(np.arange(4096, dtype=np.float32)) for _ in "xy")
    views = x[start : start + size], y[start : start + size]
    if start % width:
        with pytest.raises(ArgumentError, match="is not 16-byte aligned"):
            saxpy(device, A, *views, width)
    else:
        saxpy(device, A, *views, width)
        expected = np.arange(4096, dtype=np.float32)
        expected[start : start + size] *= 3
        np.testing.assert_array_equal(device.get(y), expected)


def test_arrays_of_two_sizes_are_refused(device: Device) -> None:
    """The kernel would read past the end of the shorter one."""
    x, y = (device.put(np.ones(size, np.float32)) for size in (8, 4))
    with pytest.raises(ArgumentError, match="x has 8 elements and y has 4"):
        saxpy(device, A, x, y)
