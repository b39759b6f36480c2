"""The roofline: what limits a kernel is its FLOP per byte, and most kernels have few.

Below the ridge time is bytes over bandwidth, above it FLOP over the arithmetic peak. The ridge is
where the two are the same: peak / bandwidth.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.devices import Device, Workload
from harness.models import peaks
from harness.models.accuracy import ROUNDOFF
from harness.models.counting import shared_per_block
from harness.strategies import VALUES
from harness.timing import Ideal
from harness.workloads.axpy import Axpy
from harness.workloads.library import Gemm
from harness.workloads.operations import EXPONENTIAL, OPERATIONS
from harness.workloads.roofline import BalancedChain, Chain, Common

LENGTHS: Final = tuple(1 << power for power in range(11))
# In FLOP/B 0.25, 4, 128 and 256; the fp32 ridge lies from 10 (A100, B200) to 82 (RTX 4090).
SHORTEST, FREE, LONG, LONGEST = (Chain(length) for length in (1, 16, 512, 1024))
AS_LONG_AS_SHORTEST: Final = BalancedChain(LONG.length, SHORTEST)
GEMMS: Final = {
    "fp16": (Gemm("fp16", 8192), peaks.tensor_peak),
    "fp32": (Gemm("fp32", 4096), peaks.fp32_peak),
}
COMMON: Final[dict[str, Axpy | Common]] = {
    "axpy": Axpy("fp32"),
    **{name: Common(name) for name in OPERATIONS},
}

ARITHMETIC: Final = {"fma": 2, **dict.fromkeys(("add", "sub", "mul", "max", "rcp", "sqrt"), 1)}
# An exponential counts as one FLOP, this kernel spells it out as 18.
SPELLED_OUT: Final = {"softmax": 18 - 1}
# Bytes an element that every row asks for again, and that memory delivers once.
CACHED: Final = {"gemv": 4, "layer_norm": 8}


def counted(emulator: Any, workload: Workload) -> tuple[int, int]:
    """The fp32 FLOP of a workload and the bytes it asks for."""
    counters = emulator.count_checked(workload)
    floats = {name: n for name, n in counters.opcodes.items() if name.endswith(".f32")}
    flop = sum(32 * ARITHMETIC.get(name.split(".")[0], 0) * n for name, n in floats.items())
    return flop, sum(int(counters.traffic(opcode, "global").bytes) for opcode in ("ld", "st"))


def fused(emulator: Any, length: int, n: int = 1024) -> float:
    """Fused multiply-adds an element: two FLOP of one instruction, which the peak counts on."""
    return float(emulator.count_checked(Chain(length, n)).opcodes["fma.rn.f32"] * 32 / n)


@pytest.mark.claim(
    "roofline.ridge", "past the ridge arithmetic costs time, before it arithmetic is free"
)
def test_arithmetic_is_free_up_to_the_ridge(claim: Any, emulator: Any) -> None:
    """K multiply-adds on 4 bytes in and 4 bytes out: 2 K / 8 FLOP per byte.

    Two plateaus, of bandwidth and of FLOP/s; where their lines meet is the measured ridge. The
    other one is multiprocessors x lanes x 2 x highest SM clock over bus width x clock x 2.
    """

    @given(length=st.sampled_from(LENGTHS[:6]), blocks=st.integers(1, 4))
    def two_flop_a_link_and_eight_bytes(length: int, blocks: int) -> None:
        n = 1024 * blocks
        assert counted(emulator, Chain(length, n)) == (2 * length * n, 8 * n)
        assert fused(emulator, length, n) == length

    two_flop_a_link_and_eight_bytes()
    for length in (SHORTEST.length, FREE.length, LONG.length):
        flop, size = counted(emulator, Chain(length, 1024))
        claim.counted(f"FLOP per byte, K = {length}", flop / size, 2 * length / 8)
        claim.counted(f"multiply-adds an element, K = {length}", fused(emulator, length), length)
    for chain in (SHORTEST, FREE):
        what = f"share of a copy's bandwidth, K = {chain.length}"
        claim.timed(what, peaks.bytes_at_copy(chain), chain, at_least=0.85)
    claim.timed("twice the arithmetic above it", LONGEST, LONG, at_least=1.8, decisive=True)
    what = "16 times the arithmetic below the ridge"
    claim.timed(what, FREE, SHORTEST, at_most=1.1, decisive=True)
    what = f"share of the fp32 peak, K = {LONG.length}"
    claim.timed(what, peaks.flop_at_peak(LONG), LONG, at_least=0.8)
    claim.timed(
        "measured ridge / peak over bandwidth",
        SHORTEST,
        AS_LONG_AS_SHORTEST,
        at_least=0.65,
        at_most=1.35,
    )


@pytest.mark.claim("roofline.gemm-compute-bound", "GEMM is compute bound")
def test_gemm_uses_each_element_often_enough(claim: Any) -> None:
    """2 n^3 FLOP over 3 n^2 elements: 2 n / 3 for each element that crosses the pins.

    The memory could bring all three matrices four times over. Without reuse, two operands of each
    multiply-add from memory, its bandwidth would allow a tenth of the rate at most.
    """

    @given(n=st.integers(1, 1 << 20), kind=st.sampled_from(sorted(GEMMS)))
    def two_thirds_of_n(n: int, kind: str) -> None:
        gemm = Gemm(kind, n)
        assert 3 * gemm.flop == 2 * n * gemm.elements

    two_thirds_of_n()
    for kind, (gemm, peak) in GEMMS.items():
        what = f"FLOP an element, {kind} n = {gemm.n}"
        claim.counted(what, gemm.flop / gemm.elements, 2 * gemm.n / 3, "arithmetic")
        claim.timed(
            f"{kind}, share of its unit's peak", peaks.flop_at_peak(gemm, peak), gemm, at_least=0.6
        )
        claim.timed(f"{kind}, memory's share", peaks.bytes_at_peak(gemm), gemm, at_most=0.25)
        claim.timed(f"{kind}, over what no reuse allows", without_reuse(gemm), gemm, at_least=10)


def without_reuse(gemm: Gemm) -> Ideal:
    """n^3 multiply-adds, two operands each, at the memory's peak."""
    size = gemm.n**3 * 2 * gemm.dtype.itemsize
    return Ideal("every operand from memory", lambda device: size / peaks.memory_peak(device))


def per_element(emulator: Any, name: str, rows: int) -> tuple[float, float]:
    """FLOP and bytes asked for of one more element: what a block costs besides drops out."""
    if name == "axpy":
        flop, size = counted(emulator, Axpy("fp32", 1024 * rows))
        return flop / (1024 * rows), size / (1024 * rows)
    short, long = (counted(emulator, Common(name, rows, columns, 64)) for columns in (256, 512))
    more = 256 * rows
    return (long[0] - short[0]) / more, (long[1] - short[1]) / more


def least(name: str) -> tuple[float, float]:
    """FLOP and bytes of an element as the operation needs them."""
    work = COMMON[name]
    return work.flop / work.elements, work.bytes / work.elements


@pytest.mark.claim("roofline.rest-memory-bound", "the other common kernels are memory bound")
def test_the_other_kernels_leave_the_arithmetic_idle(claim: Any, emulator: Any) -> None:
    """2 to 7 FLOP on 4 to 12 bytes of an element: below 1 FLOP/B, and no fp32 ridge is below 9.

    At most a row that all others share is read again, and that comes from a cache.
    """

    @given(name=st.sampled_from(sorted(COMMON)), rows=st.integers(1, 3))
    def little_arithmetic(name: str, rows: int) -> None:
        flop, size = per_element(emulator, name, rows)
        assert (flop - SPELLED_OUT.get(name, 0), size - CACHED.get(name, 0)) == least(name)

    little_arithmetic()
    for name, work in COMMON.items():
        flop, size = per_element(emulator, name, 1)
        found = flop - SPELLED_OUT.get(name, 0), size - CACHED.get(name, 0)
        claim.counted(f"{name}: FLOP and bytes an element", found, least(name))
        memory, arithmetic = peaks.bytes_at_peak(work), peaks.flop_at_peak(work)
        claim.timed(f"{name}: share of the memory's peak", memory, work, at_least=0.6)
        claim.timed(f"{name}: share of the fp32 peak", arithmetic, work, at_most=0.1)


TIMED: Final[dict[str, Workload]] = {
    **{f"chain-{length}": Chain(length) for length in LENGTHS},
    **COMMON,
    **{f"gemm-{kind}": gemm for kind, (gemm, _) in GEMMS.items()},
}


@pytest.mark.parametrize("name", TIMED)
@pytest.mark.benchmark(group="roofline")
def test_the_roofline_is_timed(bench: Any, name: str) -> None:
    """A row of the benchmark table, and a point under the roof, for each."""
    bench(TIMED[name])


@given(length=st.sampled_from(LENGTHS[:6]), blocks=st.integers(1, 4))
def test_a_chain_computes_its_closed_form(device: Device, length: int, blocks: int) -> None:
    """Of v -> a v + b, K times: a^K v + b (1 - a^K) / (1 - a)."""
    Chain(length, 1024 * blocks).prepare(device).check()


@given(
    name=st.sampled_from(sorted(OPERATIONS)),
    shape=st.sampled_from([(128, 32), (256, 64), (512, 64), (512, 128)]),
    kind=st.sampled_from(["normal", "ones", "cancelling"]),
    rows=st.integers(1, 4),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_operation_computes_what_it_says(
    device: Device, name: str, shape: tuple[int, int], kind: str, rows: int, seed: int
) -> None:
    """Rows of any values, each row against float64."""
    work, generator = Common(name, rows, *shape), np.random.default_rng(seed)
    sizes = {"rows": work.elements, "row": work.columns}
    inputs = [VALUES[kind](generator, sizes[shape]) for shape in work.parts.inputs]
    work.on(device, *inputs).check()


@given(seed=st.integers(0, 2**32 - 1), least=st.sampled_from([-0.4, -1.0, -8.0, -80.0]))
def test_the_exponential_alone_is_as_near_as_its_steps_allow(
    device: Device, seed: int, least: float
) -> None:
    """Where a row's largest is 0, t's result over that of 0 is the kernel's e^t, rounded once.

    0 has the exponential 1 exactly, so its result is the factor that all others are multiplied by.
    """
    softmax = Common("softmax", 4, 1024, 64)
    t = np.random.default_rng(seed).uniform(least, 0, (4, 1024)).astype(np.float32)
    t[:, 0] = 0
    launch = softmax.on(device, t.ravel())
    launch.on(device)
    y = device.get(launch.arguments[-1]).astype(np.float64).reshape(t.shape)
    off = np.abs(y / y[:, :1] / np.exp(t.astype(np.float64)) - 1)
    assert off.max() <= EXPONENTIAL + ROUNDOFF


@pytest.mark.parametrize("block", [32, 256])
def test_sums_of_a_row_take_a_word_a_warp(emulator: Any, block: int) -> None:
    """More shared memory would cost occupancy unseen."""
    sums = {"relu": 0, "dot": 1, "gemv": 1, "softmax": 2, "layer_norm": 2}
    kernels = {name: Common(name, 1, 4 * block, block).kernel for name in sums}
    for name, kernel in kernels.items():
        found = shared_per_block(kernel, emulator.architecture)
        assert found == sums[name] * 4 * block // 32, name
