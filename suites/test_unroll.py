"""Unrolling: two elements a thread help only if the loads of both go out before the first is used.

The compiler leaves the source's order; the assembler hoists loads, and stops at a store that may
write what they read. So the order that counts stands in the machine code alone.
"""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.devices import Device
from harness.models.cycles import (
    FMA,
    LOAD,
    Step,
    hoisted,
    issue_cycles,
    loads_before,
    may_alias,
    named,
    ptx_steps,
    sass_steps,
)
from harness.workloads.multiply_add import BLOCK, ELEMENTS, MultiplyAdd
from kernels import compile_kernel

ARCHITECTURES: Final = ("sm_80", "sm_90")
PUBLISHED: Final = tuple(map(MultiplyAdd, ELEMENTS))  # naive, run-time stride, compile-time offset
REACH: Final = 1 << 23  # bytes: the distance in a load or a store is a signed number of 24 bits

TURNS: Final = 1024  # elements a thread: 207 MB on 132 SMs
NAIVE = MultiplyAdd("naive", TURNS)
STRIDE = MultiplyAdd("run_time_stride", TURNS // 2)
OFFSET = MultiplyAdd("compile_time_offset", TURNS // 2)
OFFSET_AT_RUN_TIME = MultiplyAdd("compile_time_offset", TURNS // 2, (("RUN_TIME", 1),))

Order = tuple[Step, ...]


def compiled_for(architecture: str) -> str:
    """What a count of compiled code depends on, besides the source."""
    major, minor = compile_kernel(PUBLISHED[0].kernel, architecture).compiler
    return f"NVRTC {major}.{minor} for {architecture}"


def in_source() -> list[Order]:
    """The three kernels in the order of their PTX, which is the source's."""
    return [ptx_steps(each.kernel, "sm_90") for each in PUBLISHED]


def as_early_as_may_be() -> list[Order]:
    """The three kernels as the seminar draws them: a load waits only for a store it may read."""
    return [hoisted(order) for order in in_source()]


def assembled(architecture: str) -> list[Order]:
    """The three kernels in the order of their machine code."""
    return [sass_steps(each.kernel, architecture) for each in PUBLISHED]


def last_stores(orders: list[Order], load: int = LOAD, fma: int = FMA) -> list[int]:
    """The cycle in which each order issues its last store."""
    return [issue_cycles(order, load, fma)[-1] for order in orders]


@pytest.mark.claim(
    "unroll.cycles",
    "the three kernels take 1006, 2011 and 1008 cycles",
    published="1006, 2011, 1008",
    expects="refuted",
)
@pytest.mark.usefixtures("disassembler")
def test_the_third_kernel_takes_1009_cycles_and_1008_is_its_first_store(claim: Any) -> None:
    """One instruction a cycle, in order; d = 1000 + 4 cycles from a load over its FMA to the store.

    Naive: the third load goes at 2, the store at 2 + d. Run-time stride: c's second load follows
    the first store, 2 + d + 1 + d. Compile-time offset: the sixth load goes at 5, the store at
    5 + d: three more than naive whatever d is, so never two. Its first store goes at 2 + d if
    loads keep the source's order, and at 4 + d in the assembler's, where c's first is the fifth.
    """
    orders = {"as early as may be": as_early_as_may_be()}
    orders |= {architecture: assembled(architecture) for architecture in ARCHITECTURES}

    @given(load=st.integers(4, 2000), fma=st.integers(2, 50))
    def whatever_the_latencies(load: int, fma: int) -> None:
        d = load + fma
        for kernels in orders.values():
            assert last_stores(kernels, load, fma) == [2 + d, 3 + 2 * d, 5 + d]
        assert last_stores(in_source(), load, fma) == [2 + d, 5 + 2 * d, 5 + 2 * d]

    whatever_the_latencies()
    first_stores = dict(zip(orders, (1006, 1008, 1008), strict=True))
    for name, kernels in orders.items():
        decisive = name == "sm_80"  # the seminar's GPU; sm_90 is the same
        on = compiled_for(name if name in ARCHITECTURES else "sm_90")
        cycles = last_stores(kernels)
        claim.counted(f"{name}: cycles", cycles, [1006, 2011, 1009], on, decisive=decisive)
        first = issue_cycles(kernels[2])[-2]
        what = f"{name}: first store of the third"
        claim.counted(what, first, first_stores[name], on, decisive=decisive)
        claim.note(f"Third kernel, {name}: {named(kernels[2])}.")
    on = compiled_for("sm_90")
    claim.counted("source order: cycles", last_stores(in_source()), [1006, 2013, 2013], on)
    _, strided, offset = last_stores(assembled("sm_90"))
    claim.counted("sm_90: second / third", round(strided / offset, 2), 1.99, on)


def before_the_store(orders: list[Order]) -> list[int]:
    """Loads that each order issues before its first store."""
    return [loads_before("store", order) for order in orders]


@pytest.mark.claim(
    "unroll.store-blocks-loads",
    "with a run-time stride the compiler stops before the second load of c",
)
@pytest.mark.usefixtures("disassembler")
def test_a_store_stops_the_load_that_may_read_what_it_writes(claim: Any) -> None:
    """With a stride of 0, c's second load reads what the first store wrote, so it has to follow.

    Addresses are told apart as distances from one base, and each must fit its instruction: a
    stride known to the compiler blocks the load all the same from 8 MiB on.
    """
    pairs, on = [(order[4], order[7]) for order in in_source()[1:]], compiled_for("sm_90")
    aliasing = [may_alias(*pair) for pair in pairs]
    what = "run-time stride, compile-time offset: c's second load may read the first store"
    claim.counted(what, aliasing, [True, False], on)
    claim.counted("PTX: loads before the store", before_the_store(in_source()), [3, 3, 3], on)
    expected = before_the_store(as_early_as_may_be())
    for architecture in ARCHITECTURES:
        orders, on = assembled(architecture), compiled_for(architecture)
        what = f"{architecture}: loads before the first store"
        claim.counted(what, before_the_store(orders), expected, on)
        names = named(orders[1]).split()
        late = [name for name in names[names.index("ST1") :] if name[0] in "abc"]
        what = f"{architecture}, run-time stride: loads after the store"
        claim.counted(what, late, ["c2"], on, decisive=True)
        known = [stride_known(size, architecture) for size in (REACH - 4 * BLOCK, REACH)]
        what = f"{architecture}: loads before the store, a known stride just below and at 8 MiB"
        claim.counted(what, known, [6, 5], on)


def stride_known(size: int, architecture: str) -> int:
    """Loads before the first store if the compiler knows that the stride is `size` bytes."""
    known = MultiplyAdd("run_time_stride", defines=(("STRIDE", size // 4),))
    return loads_before("store", sass_steps(known.kernel, architecture))


def under_way(order: Order) -> tuple[int, int]:
    """Loads issued before the first FMA, and those of them whose own FMA then lacks none."""
    loads = loads_before("fma", order)
    issued = {step.result for step in order[:loads]}
    fmas = [step for step in order if step.kind == "fma"]
    return loads, sum(len(fma.operands) for fma in fmas if issued.issuperset(fma.operands))


@pytest.mark.claim(
    "unroll.constant-offset-doubles",
    "with compile-time offsets all loads go first: twice as fast",
    published="2x",
)
@pytest.mark.usefixtures("disassembler")
def test_twice_the_loads_under_way_take_half_the_latencies(claim: Any) -> None:
    """A block of 128 an SM has a warp a scheduler: nothing hides a latency, so they add up.

    For two elements naive waits for DRAM twice, the compile-time offset once. The run-time stride
    also waits twice, the second time for c alone. The next turn's loads stand behind this turn's
    store, which waits for its operands; so turns do not overlap. Address arithmetic, the loop, and
    the slowest of six loads for that of three keep the factor below 2. True on any GPU.
    """
    workloads = (NAIVE, STRIDE, OFFSET, OFFSET_AT_RUN_TIME)
    for architecture in ARCHITECTURES:
        on = compiled_for(architecture)
        found = [under_way(sass_steps(each.kernel, architecture)) for each in workloads]
        what = f"{architecture}: loads under way at the first use"
        claim.counted(what, [loads for loads, _ in found], [3, 5, 6, 5], on)
        what = f"{architecture}: those of elements that lack none"
        claim.counted(what, [complete for _, complete in found], [3, 3, 6, 3], on)
    claim.timed("naive / compile-time offset", NAIVE, OFFSET, at_least=1.6)
    claim.timed("naive / run-time stride", NAIVE, STRIDE, at_most=1.4)
    claim.cause(
        "offset read at run time / at compile time", OFFSET_AT_RUN_TIME, OFFSET, at_least=1.4
    )


def short(workload: MultiplyAdd) -> str:
    """The kernel and its counterfactual: compile_time_offset-run_time."""
    return "-".join((workload.form, *(name.lower() for name, _ in workload.defines)))


@pytest.mark.parametrize("workload", [NAIVE, STRIDE, OFFSET, OFFSET_AT_RUN_TIME], ids=short)
@pytest.mark.benchmark(group="unroll")
def test_the_three_kernels_are_timed(bench: Any, workload: MultiplyAdd) -> None:
    """A row of the benchmark table for each kernel and the counterfactual."""
    bench(workload)


@given(form=st.sampled_from([*ELEMENTS]), turns=st.integers(1, 3), blocks=st.integers(1, 5))
def test_every_kernel_updates_each_element_once(
    device: Device, form: str, turns: int, blocks: int
) -> None:
    """However a grid is cut into launched blocks and turns."""
    MultiplyAdd(form, turns, blocks=blocks).prepare(device).check()


@given(form=st.sampled_from([*ELEMENTS]), turns=st.integers(1, 3), blocks=st.integers(1, 5))
def test_each_element_is_three_loads_and_a_store(
    emulator: Any, form: str, turns: int, blocks: int
) -> None:
    """As often as the source says: no form saves a request or makes one more."""
    counters = emulator.count_checked(MultiplyAdd(form, turns, blocks=blocks))
    warps = ELEMENTS[form] * turns * blocks * BLOCK // 32
    found = [counters.traffic(opcode, "global").requests for opcode in ("ld", "st")]
    assert [*found, counters.issued("fma")] == [3 * warps, warps, warps]


@given(turns=st.integers(1, 3), blocks=st.integers(1, 3))
def test_counterfactuals_update_the_same_elements(device: Device, turns: int, blocks: int) -> None:
    """A distance known earlier or later is the same distance."""
    known = ("run_time_stride", ("STRIDE", BLOCK * blocks * turns))
    for form, define in (known, ("compile_time_offset", ("RUN_TIME", 1))):
        MultiplyAdd(form, turns, (define,), blocks).prepare(device).check()
