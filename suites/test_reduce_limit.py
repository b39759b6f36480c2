"""Past the ladder: sums at the limit of the memory, of any size and type, the same bits every time.

V7 has one load under way, and an address that all blocks contend for. V8 has eight loads, V9 a
place for each block's sum, V10 no registers that wait; what remains is the memory, and for few
elements its latency.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import pytest

from harness.devices import Device
from harness.devices.disassembly import DisassemblerMissing
from harness.models.counting import loads_under_way
from harness.workloads.limit import (
    ELEMENTS,
    V10,
    Sum,
    best,
    error_bound,
    height,
    peak,
    reduce_sum,
    streaming,
    sum_by,
)
from harness.workloads.peers import LIBRARIES, Peer, missing
from harness.workloads.reduction import Reduction

GIB: Final = 1 << 30
EVERY_SIZE: Final = (
    *(1, 1 << 10, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28, 1 << 30),
    *((1 << 31) + 7, (1 << 32) + 3),
)
V7: Final = Reduction("reduce_v7")
V8, V9 = Sum(1 << 26, rung="reduce_v8"), Sum(1 << 26, rung="reduce_v9")
V8_CROWDED: Final = Sum(1 << 26, rung="reduce_v8", changes=(("resident", 4),))
FEW_THREADS: Final = Sum(1 << 28, rung="reduce_v10", changes=(("block", 128),))
V9_LARGE: Final = Sum(1 << 28, rung="reduce_v9")


@pytest.mark.claim(
    "beyond.v8-over-v7", "loads that wait for none of their kind take V8 past V7", ours=True
)
def test_v8_has_eight_loads_under_way(claim: Any, emulator: Any) -> None:
    """V8 adds eight float4 a trip, and the assembler keeps their loads together.

    Told to leave registers for four blocks an SM, twice as many as there are, it takes the same
    loads a few at a time: the same threads, less under way, and slower.
    """
    v8, crowded = (s.shape(emulator).compiled(ELEMENTS["float32"]) for s in (V8, V8_CROWDED))
    try:
        together = [loads_under_way(k, "sm_90") for k in (V7.kernel, v8, crowded)]
        claim.counted("loads under way: V7, V8, V8 for four blocks", together, [1, 8, 3], "sm_90")
    except DisassemblerMissing as no_tool:
        claim.note(str(no_tool))
    claim.timed("V7 / V8", V7, V8, at_least=1.01)
    claim.cause("V8 for four blocks / V8", V8_CROWDED, V8, at_least=1.01)


@pytest.mark.claim(
    "beyond.deterministic", "a sum without atomics has the same bits every time", ours=True
)
def test_v9_gives_the_same_bits_and_costs_nearly_nothing(
    claim: Any, device: Device, emulator: Any
) -> None:
    """Blocks may end in any order: each leaves its sum in its slot, and one adds slot by slot.

    On a GPU V8's atomics land in any order, and so its last bits differ from run to run.
    """
    x = np.random.default_rng(1).uniform(-1, 1, 1 << 22).astype(np.float32)
    for rung, expected in (("reduce_v8", 2 * emulator.multiprocessors), ("reduce_v9", 0)):
        name, small = rung.removeprefix("reduce_").upper(), emulator.put(x[: 1 << 16])
        shape = streaming(rung, emulator.architecture)
        counters = emulator.count(lambda on=small, by=shape: sum_by(emulator, on, "float32", by))
        found = sum(counters.atomics.values())
        claim.counted(f"atomics of {name}", found, expected, decisive=True)
        if getattr(device, "clock", None):
            shape, array = streaming(rung, device.architecture), device.put(x)
            bits = {sum_by(device, array, "float32", shape) for _ in range(100)}
            what, alike = f"100 sums of {name} are alike to the bit", rung == "reduce_v9"
            claim.counted(what, len(bits) == 1, alike, device.name, decisive=True)
    claim.timed("V9 / V8", V9, V8, at_most=1.02)


@pytest.mark.claim(
    "beyond.bulk-copies", "bulk copies fill the memory with 4 warps an SM", ours=True
)
def test_bytes_in_flight_need_no_threads(claim: Any, emulator: Any) -> None:
    """V10 with 128 threads an SM against V9 with 1024: as many bytes under way, as fast.

    What fills the memory is neither occupancy nor registers: it is bytes in flight.
    """
    few, many = FEW_THREADS.shape(emulator), V9_LARGE.shape(emulator)
    threads = [shape.block * shape.per_sm for shape in (few, many)]
    claim.counted("threads an SM, V10 and V9", threads, [128, 1024], "arithmetic")
    in_flight = [shape.in_flight // 1024 for shape in (few, many)]
    claim.counted("KiB in flight an SM, V10 and V9", in_flight, [128, 128], "arithmetic")
    claim.timed("V9 / V10 with 128 threads an SM", V9_LARGE, FEW_THREADS, at_least=0.98)


@pytest.mark.claim(
    "beyond.limit", "a sum of 2^30 floats takes as long as the memory must", ours=True
)
def test_the_sum_is_bound_by_nothing_but_the_memory(claim: Any) -> None:
    """Of the peak a DRAM spends a few hundredths on refreshing itself and on opening rows.

    H200s differ: ten trials read 97.6 to 97.8 % of it four times, 95.5 five times, 93.4 once,
    whatever read. 2^26 floats take 57 us; the launch, the first load and the last sum 3 to 5 more.
    """
    for power, share in ((30, 0.9), (26, 0.85)):
        n = 1 << power
        claim.timed(
            f"share of the peak, n = 2^{power}",
            peak(n),
            Sum(n),
            at_least=share,
            decisive=power == 30,
        )


@pytest.mark.claim("beyond.types", "every type is summed at the limit of the memory", ours=True)
def test_a_gibibyte_of_any_type_takes_as_long(claim: Any) -> None:
    """Converting and adding eight float16 a load is far from the arithmetic's limit."""
    floats = Sum(GIB // 4)
    for name, element in ELEMENTS.items():
        n = GIB // element.stored.itemsize
        summed = Sum(n, name)
        claim.timed(f"share of the peak, 1 GiB of {name}", peak(n, name), summed, at_least=0.9)
        if name != "float32":
            what = f"1 GiB of float32 / of {name}"
            claim.timed(what, floats, summed, at_least=0.98, decisive=True)


@pytest.mark.claim(
    "beyond.every-size",
    "from 1 float to 2^32, a sum is as fast as any library's, or faster",
    ours=True,
)
def test_no_peer_is_faster_at_any_size(claim: Any, device: Device) -> None:
    """Same run, same clock, same cold L2; a library's time is that of all that it queues.

    Between 2^26 and 2^30 all read at the limit of the memory, and it is a matter of the card who is
    half a per cent ahead: in the one trial on the slowest H200, CUB was.
    """
    live = getattr(device, "clock", None)
    asked = [name for name in LIBRARIES if not (live and missing(name))]
    for name in LIBRARIES.keys() - asked:
        claim.note(f"not held against {name}: {missing(name)}")
    most = getattr(device, "memory_bytes", math.inf) / 3
    for n in EVERY_SIZE:
        if 4 * n > most:
            claim.note(f"{n} floats do not fit in this GPU's memory beside the libraries")
            continue
        for name in asked:
            claim.timed(f"{name} / reduce_sum, n = {n}", Peer(name, n), Sum(n), at_least=0.98)


@pytest.mark.claim(
    "beyond.accuracy", "the error stays below that of a tree of the same height", ours=True
)
def test_the_error_is_within_the_bound_of_its_height(claim: Any, emulator: Any) -> None:
    """gamma_h times the sum of magnitudes; h grows with the elements a thread adds, not with n.

    V1 adds all n to one float: at n = 2^32 its bound is past the sum itself.
    """
    x = np.random.default_rng(2).uniform(0, 1, 1 << 20).astype(np.float32)
    found, exact = reduce_sum(emulator, emulator.put(x)), math.fsum(x)
    shape = best(emulator, x.size, ELEMENTS["float32"])
    bound = error_bound(emulator, x.size, "float32", shape, exact)
    error = abs(found - exact)
    what = f"the error at n = 2^20, {error:.1e}, is within the bound, {bound:.1e}"
    claim.counted(what, error <= bound, True)
    n = (1 << 32) + 3
    additions = height(emulator, n, "float32", V10)
    what = f"at most {additions:,} additions an element: fewer than n / 2^19"
    claim.counted(what, additions < n / 2**19, True)
    what = "the bound at n = 2^32 is below a thousandth of the sum of magnitudes"
    claim.counted(what, error_bound(emulator, n, "float32", V10, 1.0) < 1e-3, True, "arithmetic")


TIMED: Final = (
    *(Sum(1), Sum(1 << 20), Sum(1 << 26), Sum(1 << 30)),
    *(V8, V8_CROWDED, V9, V9_LARGE, FEW_THREADS),
)


@pytest.mark.parametrize("workload", TIMED, ids=lambda w: w.name.replace(" ", "-"))
@pytest.mark.benchmark(group="past the ladder")
def test_sums_at_the_limit_are_timed(bench: Any, workload: Sum) -> None:
    """A row of the benchmark table for each."""
    bench(workload)
