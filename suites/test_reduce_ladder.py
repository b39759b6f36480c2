"""The reduce ladder: seven ways to add n floats, how much faster each step is, and why.

The steps are real and most published reasons for them are not: a modulo, one contended address, and
bytes in flight lost to an unsigned loop stride explain what was put down to idle warps, bank
conflicts and reaching the limit of the memory.
"""

from __future__ import annotations

import math
from functools import partial
from types import SimpleNamespace
from typing import Any, Final

import pytest

from harness.devices.disassembly import DisassemblerMissing
from harness.devices.emulator.sass import cubin
from harness.models.counting import bytes_in_flight
from harness.profiles import stored
from harness.workloads.atomics import AtomicAlone
from harness.workloads.reduction import Reduction, count_sum
from kernels import compile_kernel

N: Final = 1 << 26  # elements of the published times
BLOCK: Final = 256
ROUNDS: Final = int(math.log2(BLOCK))
ELEMENTS: Final = 1 << 16  # counted per element, so any size will do
counted: Final = partial(count_sum, n=ELEMENTS)

V1, V2, V3, V4, V5, V6, V7 = (Reduction(f"reduce_v{rung}") for rung in range(1, 8))
V5_FLOAT4 = Reduction("reduce_v5_float4")
V2_STORE, V3_STORE, V4_STORE = (
    Reduction(f"reduce_v{rung}", defines=("STORE",)) for rung in (2, 3, 4)
)
V2_MASK = Reduction("reduce_v2", defines=("MASK",))
V2_MASK_STORE = Reduction("reduce_v2", defines=("MASK", "STORE"))
V6_INT_STRIDE = Reduction("reduce_v6", defines=("INT_STRIDE",))
V6_SHUFFLE_DOWN = Reduction("reduce_v6", defines=("SHUFFLE_DOWN",))
V3_WIDE, V4_WIDE = (Reduction(f"reduce_v{rung}", block=512) for rung in (3, 4))
V3_SPREAD, V4_SPREAD = (Reduction(f"reduce_v{rung}", defines=("SPREAD",)) for rung in (3, 4))
ATOMICS, ATOMICS_SPREAD = AtomicAlone(), AtomicAlone(spread=True)


def atomics(emulator: Any, *rungs: Reduction) -> list[int]:
    """Atomics of each rung on n = 2^16 elements."""
    return [sum(counted(emulator, rung).atomics.values()) for rung in rungs]


def per_warp(emulator: Any, reduction: Reduction, opcode: str) -> float:
    """PTX instructions of one opcode per warp that the elements fill."""
    return counted(emulator, reduction).issued(opcode) / (ELEMENTS / 32)


def degrees(emulator: Any, reduction: Reduction) -> list[int]:
    """Wavefronts of the worst request in each round of one block's tree."""
    first_of_two_operands = slice(0, 2 * ROUNDS, 2)
    counters = counted(emulator, reduction, n=BLOCK)
    return counters.degrees("ld", "shared")[first_of_two_operands]


@pytest.mark.claim(
    "reduce.v1-serialised", "atomics on one address are serialised", published="197.4 ms"
)
def test_v1_takes_as_long_as_its_atomics_one_after_another(claim: Any, emulator: Any) -> None:
    """V1's n atomics take n / blocks times what `blocks` atomics take alone.

    As many atomics on as many addresses take a third of it: it is the address that they wait for.
    """
    places = counted(emulator, V1).atomics
    claim.counted("atomics on one address, n = 2^16", list(places.values()), [ELEMENTS])
    each = N / (N // BLOCK)
    claim.cause(
        f"V1 / {N // BLOCK} atomics alone, a {BLOCK}th of its own",
        V1,
        ATOMICS,
        at_least=0.95 * each,
        at_most=1.05 * each,
    )
    what = f"{N // BLOCK} atomics on one address / on one each"
    claim.cause(what, ATOMICS, ATOMICS_SPREAD, at_least=1.5)


@pytest.mark.claim("reduce.v2-over-v1", "a shared-memory tree is 118x faster", published="118x")
def test_v2_replaces_atomics_by_a_tree(claim: Any, emulator: Any) -> None:
    """One atomic a block in place of one an element."""
    claim.counted("atomics, n = 2^16", *atomics(emulator, V2), ELEMENTS // BLOCK)
    claim.timed("V1 / V2", V1, V2, at_least=30)


def divides(claim: Any, emulator: Any) -> bool:
    """Whether V2 divides on the GPU whose times are judged: its code is longer than with a mask."""
    architecture = claim.architecture or emulator.architecture
    plain, masked = (machine_code(v, architecture) for v in (V2, V2_MASK))
    if plain > masked:
        return True
    claim.note(
        f"For {architecture} this compiler makes V2's modulo a mask by itself: nothing to gain."
    )
    return False


def machine_code(reduction: Reduction, architecture: str) -> int:
    """Bytes of a rung's machine code."""
    return len(cubin.code(compile_kernel(reduction.kernel, architecture).cubin, reduction.rung))


# By whether V2 divides: what V3 and a mask gain over it. Where it does not, V3 issues 7 % more than
# V2, and the mask changes nothing.
V3_GAINS: Final[dict[bool, dict[str, float]]] = {True: {"at_least": 1.3}, False: {"at_most": 1.1}}
MASK_GAINS: Final[dict[bool, dict[str, float]]] = {
    True: {"at_least": 1.5},
    False: {"at_least": 0.95, "at_most": 1.05},
}


@pytest.mark.parametrize(("architecture", "expected"), [("sm_90", True), ("sm_100", False)])
def test_v2_divides_where_its_machine_code_does(
    emulator: Any, architecture: str, expected: bool
) -> None:
    """On the GPU that is judged, not the emulated one; where it does not, the claim says so."""
    notes: list[str] = []
    claim = SimpleNamespace(architecture=architecture, note=notes.append)
    assert divides(claim, emulator) == expected
    assert [f"For {architecture} this" in note for note in notes] == [True] * (not expected)


@pytest.mark.claim(
    "reduce.v3-over-v2",
    "contiguous threads are 2x faster",
    published="1.92x",
    expects={"default": "holds", "nvidia-b200": "refuted"},
)
def test_v3_is_faster_than_v2_where_v2_divides(claim: Any, emulator: Any) -> None:
    """Eight rounds: V2 divides in each, V3 in none, if the compiler leaves V2 its divisions."""
    claim.counted("remainders per warp, V2", per_warp(emulator, V2, "rem"), ROUNDS)
    claim.counted("remainders per warp, V3", per_warp(emulator, V3, "rem"), 0)
    claim.timed("V2 / V3", V2, V3, **V3_GAINS[divides(claim, emulator)])


# Machine instructions a warp and round that a modulo costs: from sm_100 on, NVRTC finds by itself
# that the divisor is a power of two, and makes V2 what it makes of V2 with a mask.
MODULO: Final = {"sm_80": 22, "sm_90": 22, "sm_100": 0, "sm_120": 0}
TRIED: Final = {(13, 0), (13, 5)}


def count_the_modulo(claim: Any, emulator: Any) -> None:
    """Count V2 against V2 with a mask in machine code, if this compiler's code was looked at."""
    for architecture, expected in MODULO.items():
        try:
            plain, masked = (
                emulator.count_sass(v.kernel, 1, BLOCK, 0, 0, BLOCK, architecture=architecture)
                for v in (V2, V2_MASK)
            )
        except DisassemblerMissing as missing:
            claim.note(str(missing))
            return
        if plain.compiler not in TRIED:
            claim.note("what this NVRTC makes of the modulo was not looked at")
            return
        each = (plain.total - masked.total) // (BLOCK // 32 * ROUNDS)
        what = "machine instructions a warp and round that the modulo adds to V2"
        claim.counted(what, each, expected, architecture)


@pytest.mark.claim(
    "reduce.v3-cause",
    "V3 is faster because whole warps work",
    published="1.92x",
    expects="refuted",
)
def test_v3_wins_by_dropping_the_modulo(claim: Any, emulator: Any) -> None:
    """V2 with a mask in place of the modulo scatters its threads as V2 does, and is faster than V3.

    V4's adding threads fill whole warps, those of V2 with a mask do not; neither divides, neither
    has a bank conflict. On an H200 whole warps are worth 5 % and the modulo 130 %. All end in a
    plain store, so that the contended atomic hides nothing.
    """
    masked = per_warp(emulator, V2_MASK_STORE, "rem")
    claim.counted("remainders per warp, V2 with a mask", masked, 0)
    touched = [counted(emulator, v).traffic("ld", "shared") for v in (V2, V2_MASK_STORE)]
    claim.counted(
        "warps that the mask spares a shared load", touched[0].requests - touched[1].requests, 0
    )
    stores = atomics(emulator, V2_STORE, V2_MASK_STORE, V3_STORE)
    claim.counted("atomics of V2, V2 with a mask, V3, each with a store", stores, [0, 0, 0])
    count_the_modulo(claim, emulator)
    what, gains = "V2 / V2 with a mask, each with a store", MASK_GAINS[divides(claim, emulator)]
    claim.cause("V3 / V2 with a mask, each with a store", V3_STORE, V2_MASK_STORE, at_least=0.9)
    claim.cause(what, V2_STORE, V2_MASK_STORE, **gains, decisive=True)
    claim.cause("V2 with a mask / V4, each with a store", V2_MASK_STORE, V4_STORE, at_most=1.2)


@pytest.mark.claim(
    "reduce.v3-conflicts",
    "early rounds of V3 have no bank conflict, late rounds do",
    expects="refuted",
)
def test_v3_conflicts_from_the_first_round_and_not_in_the_last(claim: Any, emulator: Any) -> None:
    """Round r reads words 2^(r+1) apart, so a warp's lanes meet in 32 / gcd(2^(r+1), 32) banks.

    The degree is the active lanes a bank: it grows with the distance until lanes run out.
    """
    apart = [2 << r for r in range(ROUNDS)]
    model = [max(min(32, BLOCK // words) * math.gcd(words, 32) // 32, 1) for words in apart]
    claim.counted("V3, wavefronts per request by round", degrees(emulator, V3), model)
    for name, rung in (("V2", V2), ("V4", V4)):
        claim.counted(f"{name}, wavefronts per request by round", degrees(emulator, rung), [1] * 8)


def extra_wavefronts(emulator: Any, reduction: Reduction) -> int:
    """Wavefronts of shared memory beyond one a request, loads and stores."""
    counters = counted(emulator, reduction)
    traffic = [counters.traffic(opcode, "shared") for opcode in ("ld", "st")]
    return sum(each.wavefronts - each.requests for each in traffic)


@pytest.mark.claim(
    "reduce.v4-over-v3",
    "without bank conflicts V4 is another 1.9x faster",
    published="1.9x (its table: 1.115x)",
    expects="refuted",
)
def test_v4_is_faster_than_v3_only_once_the_atomic_is_out_of_the_way(
    claim: Any, emulator: Any
) -> None:
    """V3 has 105 extra wavefronts a block, V4 none; as published both wait for one address.

    On an H200 that is all either waits for. The published A100 still gains 1.115x: its V3, at
    870 us, is slower than its atomics, 771 us by V1.
    """
    blocks = ELEMENTS // BLOCK
    claim.counted("extra wavefronts a block, V3", extra_wavefronts(emulator, V3) / blocks, 105)
    claim.counted("extra wavefronts a block, V4", extra_wavefronts(emulator, V4) / blocks, 0)
    stores = atomics(emulator, V3_STORE, V4_STORE)
    claim.counted("atomics of V3 and V4 with a store", stores, [0, 0])
    claim.timed("V3 / V4 as published", V3, V4, at_least=0.95, at_most=1.3)
    claim.cause("V3 / V4, each with a store", V3_STORE, V4_STORE, at_least=1.1)
    claim.cause("V3 / V4, each block on its own line", V3_SPREAD, V4_SPREAD, at_least=1.1)
    claim.cause("V3 / V4, block 512: half the atomics", V3_WIDE, V4_WIDE, at_least=1.1)


@pytest.mark.claim("reduce.v4-cause", "V4 is compute bound: DRAM is hardly used", expects="refuted")
def test_v4_waits_for_one_contended_address(claim: Any, emulator: Any) -> None:
    """V4 takes about as long as its blocks' atomics alone.

    With as many atomics, each on a line of its own, a third of its time is gone, and a plain store
    gains 1 or 2 % more: it is not the atomics that cost, but that all are on one address.
    """
    places = [counted(emulator, v).atomics.values() for v in (V4, V4_SPREAD, V4_STORE)]
    claim.counted(
        "atomics on one address, n = 2^16: V4, each block on its own line, with a store",
        [max(each, default=0) for each in places],
        [ELEMENTS // BLOCK, 1, 0],
    )
    for profile in stored():
        slots = profile.counter(V4, "smsp__issue_active.avg.pct_of_peak_sustained_active")
        what = f"V4 uses {slots:.0f} % of the issue slots, more than half"
        claim.counted(what, slots > 50, False, profile.label)
    claim.cause("V4 / its atomics alone", V4, ATOMICS, at_least=0.9, at_most=1.1)
    what = "V4 / V4, each block on its own line"
    claim.cause(what, V4, V4_SPREAD, at_least=1.3, decisive=True)
    claim.cause("V4, each block on its own line / with a store", V4_SPREAD, V4_STORE, at_most=1.1)


@pytest.mark.claim("reduce.v5-over-v4", "fewer blocks are 3.12x faster", published="3.12x")
def test_v5_needs_one_atomic_a_resident_block(claim: Any, emulator: Any) -> None:
    """The grid is 8 blocks an SM, whatever n is: few atomics, and one tree for many elements.

    On an H200 the atomics are worth 1.6x, the trees, with V4's atomics away, the other 2.8x.
    """
    n, resident = 1 << 20, 8 * emulator.multiprocessors
    for rung, expected in ((V4, n // BLOCK), (V5, resident)):
        found = sum(counted(emulator, rung, n=n).atomics.values())
        claim.counted(f"atomics of {rung.rung}, n = 2^20", found, expected)
    claim.timed("V4 / V5", V4, V5, at_least=2)
    claim.cause("V4 with a store / V5", V4_STORE, V5, at_least=1.5)


@pytest.mark.claim(
    "reduce.v6-same-as-v5", "warp shuffles bring no significant gain", published="1.01x"
)
def test_v6_saves_instructions_and_no_time(claim: Any, emulator: Any) -> None:
    """Five rounds of shuffles replace five of shared memory, barrier included."""
    v5, v6 = (counted(emulator, rung) for rung in (V5, V6))
    warps = v5.issued("bar") // (ROUNDS + 1)
    claim.counted(
        "barriers a warp, V5 and V6",
        [v5.issued("bar") / warps, v6.issued("bar") / warps],
        [ROUNDS + 1, 1],
    )
    claim.counted("V6 issues fewer instructions", v6.warp_instructions < v5.warp_instructions, True)
    claim.timed("V5 / V6", V5, V6, at_least=0.95, at_most=1.05)


def kib(emulator: Any, rung: Reduction) -> float:
    """KiB that an SM full of a rung has in flight."""
    return bytes_in_flight(rung.kernel, BLOCK, emulator.architecture) / 1024


@pytest.mark.claim(
    "reduce.v6-cause", "V6 gains nothing since the memory is at its limit", expects="refuted"
)
def test_v6_is_short_of_bytes_in_flight(claim: Any, emulator: Any) -> None:
    """V5 and V6 keep 8 KiB an SM in flight: an unsigned stride stops the compiler from unrolling.

    With a signed one V6 issues four loads at once, still of 4 bytes, and is as fast as V7. If the
    memory were at its limit, neither could be faster.
    """
    rungs = {"V5": (V5, 8), "V6": (V6, 8), "V6 signed": (V6_INT_STRIDE, 32), "V7": (V7, 32)}
    for name, (rung, expected) in rungs.items():
        claim.counted(f"KiB in flight an SM, {name}", kib(emulator, rung), expected)
    claim.cause("V6 / V6 with a signed stride", V6, V6_INT_STRIDE, at_least=1.2, decisive=True)
    claim.cause("V6 signed / V7", V6_INT_STRIDE, V7, at_least=0.95, at_most=1.05)


def loads(emulator: Any, reduction: Reduction) -> tuple[int, int]:
    """Requests and sectors of global loads."""
    traffic = counted(emulator, reduction).traffic("ld", "global")
    return traffic.requests, traffic.sectors


def counts_a_quarter_of_the_requests(claim: Any, emulator: Any, scalar: Reduction) -> None:
    """One float4 request moves what four float requests move."""
    (requests, sectors), (requests4, sectors4) = loads(emulator, scalar), loads(emulator, V7)
    claim.counted("load requests, scalar / float4", requests / requests4, 4)
    claim.counted("sectors, scalar / float4", sectors / sectors4, 1)


@pytest.mark.claim("reduce.v7-over-v6", "float4 is 1.45x faster", published="1.45x")
def test_v7_is_faster_than_v6(claim: Any, emulator: Any) -> None:
    """A quarter of the requests, the same sectors, four times the bytes in flight."""
    counts_a_quarter_of_the_requests(claim, emulator, V6)
    claim.timed("V6 / V7", V6, V7, at_least=1.2)


@pytest.mark.claim("reduce.v7-over-v5", "V7 is faster than V5", published="1.46x")
def test_v7_is_faster_than_v5(claim: Any, emulator: Any) -> None:
    """As over V6, since V5 and V6 ask the memory for the same."""
    counts_a_quarter_of_the_requests(claim, emulator, V5)
    claim.timed("V5 / V7", V5, V7, at_least=1.2)


@pytest.mark.claim("reduce.v5-float4-same-as-v7", "V5 with float4 is as fast as V7")
def test_v5_with_float4_equals_v7(claim: Any, emulator: Any) -> None:
    """The same loads; the shuffles change nothing."""
    claim.counted("requests and sectors", loads(emulator, V5_FLOAT4), loads(emulator, V7))
    claim.counted("KiB in flight", [kib(emulator, rung) for rung in (V5_FLOAT4, V7)], [32, 32])
    claim.timed("V5 with float4 / V7", V5_FLOAT4, V7, at_least=0.95, at_most=1.05)


@pytest.mark.claim("reduce.v7-over-v1", "the whole ladder is 1156x", published="1156x")
def test_the_ladder_is_worth_a_thousand(claim: Any, emulator: Any) -> None:
    """An atomic an element against one a resident block."""
    expected = [ELEMENTS, ELEMENTS // 4 // BLOCK]
    claim.counted("atomics, n = 2^16", atomics(emulator, V1, V7), expected)
    claim.timed("V1 / V7", V1, V7, at_least=300)


WORKLOADS: Final = (
    *(V1, V2, V3, V4, V5, V6, V7, V5_FLOAT4, V2_STORE, V3_STORE, V4_STORE),
    *(V2_MASK_STORE, V3_SPREAD, V4_SPREAD, V6_INT_STRIDE, V6_SHUFFLE_DOWN, V3_WIDE, V4_WIDE),
    *(ATOMICS, ATOMICS_SPREAD),
)


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.label)
@pytest.mark.benchmark(group="reduce ladder")
def test_the_ladder_is_timed(bench: Any, workload: Reduction | AtomicAlone) -> None:
    """A row of the benchmark table for each rung and each counterfactual."""
    bench(workload)
