"""Bank conflicts: shared memory serves 32 words at once, if each is in a bank of its own."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.devices import Device
from harness.devices.disassembly import instructions, memory_instructions
from harness.models.counting import shared_per_block
from harness.workloads.banks import MAX_STRIDE, READS, TILE, WORDS, StridedReads, Transpose
from kernels import kernel

BANKS: Final = 32
WORD: Final = 4  # bytes
BYTES: Final = 512  # of gather_bytes, and its block
GATHER: Final = kernel("banks", "gather_bytes")
STRIDES: Final = (1, 2, 4, 8, 16, 32, 33)
WIDTHS: Final = (4, 8, 16)  # bytes of a word


def gathered(device: Device, addresses: Any) -> None:
    """Read one byte a lane from shared memory, and compare it with what was put there."""
    source = np.random.default_rng(BYTES).integers(0, 256, BYTES, np.uint8)
    arguments = device.put(source), device.put(np.asarray(addresses, np.int32))
    out = device.empty(BYTES, np.uint8)
    device.launch(GATHER, 1, BYTES, *arguments, out)
    np.testing.assert_array_equal(device.get(out), source[addresses])


def conflict(emulator: Any, a: int, b: int) -> bool:
    """Whether a warp whose lanes read the bytes at a and b has to wait."""
    addresses = np.where(np.arange(BYTES) % 2, a, b)
    loads = emulator.count(lambda: gathered(emulator, addresses)).traffic("ld", "shared")
    return bool(loads.wavefronts > loads.requests)


def conflicting_words(emulator: Any, a: int) -> list[str]:
    """The bytes, as ranges, that cannot be read together with byte a."""
    found = [b for b in range(BYTES) if conflict(emulator, a, b)]
    starts = [b for b in found if b - 1 not in found]
    ends = [b for b in found if b + 1 not in found]
    return [f"{start}-{end}" for start, end in zip(starts, ends, strict=True)]


@pytest.mark.claim(
    "banks.mapping",
    "shared memory is 32 banks of 4 bytes: bytes 0-3, 128-131 and 256-259 are in bank 0",
    published="0-3, 128-121, 256-259 (a slip for 128-131)",
)
def test_two_words_of_one_bank_cannot_be_read_together(claim: Any, emulator: Any) -> None:
    """Byte a is in bank a / 4 % 32; two lanes wait for each other iff same bank, other word.

    So the bytes that wait for byte 0 are the rest of bank 0, found here by trying all of them.
    """

    @given(a=st.integers(0, BYTES - 1), b=st.integers(0, BYTES - 1), row=st.integers(0, 3))
    def iff_the_same_bank_and_another_word(a: int, b: int, row: int) -> None:
        for other in (b, (a + row * BANKS * WORD) % BYTES):  # any byte, and one of the same bank
            same_bank = a // WORD % BANKS == other // WORD % BANKS
            assert conflict(emulator, a, other) == (same_bank and a // WORD != other // WORD)

    iff_the_same_bank_and_another_word()
    rest = ["128-131", "256-259", "384-387"]
    claim.counted("bytes of 0-511 that wait for byte 0", conflicting_words(emulator, 0), rest)
    rest = ["132-135", "260-263", "388-391"]
    claim.counted("bytes of 0-511 that wait for byte 4", conflicting_words(emulator, 4), rest)
    claim.note("The text's 128-121 is a slip for 128-131: a bank is four bytes wide.")


def wavefronts_per_request(emulator: Any, reads: StridedReads) -> float:
    """Passes of the banks for one warp's load, on average."""
    loads = emulator.count_checked(reads).traffic("ld", "shared")
    return float(loads.wavefronts / loads.requests)


def degree(stride: int, width: int = WORD) -> int:
    """Wavefronts of a request by the rule: a wavefront brings at most 128 bytes, one word a bank.

    A warp of 4-byte words goes at once, 8 bytes by half warps, 16 by quarter warps. A word of
    4 k bytes takes k banks at once, so each of the k parts has 32 / k places for its lanes.
    """
    parts = width // WORD
    return parts * math.gcd(stride, BANKS // parts)


def loads_of_a_trip(width: int, architecture: str) -> list[int]:
    """Bytes of the shared loads inside the loop of the machine code: none hoisted, none merged."""
    entry = StridedReads(1, width).kernel
    branches = [each for each in instructions(entry, architecture) if each.opcode == "BRA"]
    loops = [(int(each.operands[-1], 16), each.offset) for each in branches]
    start, end = [(target, offset) for target, offset in loops if target < offset][-1]
    accesses = memory_instructions(entry, architecture)
    loads = [each for each in accesses if (each.kind, each.space) == ("load", "shared")]
    return [each.bytes for each in loads if start <= each.instruction.offset <= end]


def near(expected: float) -> dict[str, float]:
    """The bounds 5 % either side."""
    return {"at_least": 0.95 * expected, "at_most": 1.05 * expected}


@pytest.mark.claim("banks.degree", "lanes that read from one bank are served one after another")
@pytest.mark.usefixtures("disassembler")
def test_time_is_the_greatest_common_divisor_of_stride_and_banks(claim: Any, emulator: Any) -> None:
    """Lanes `stride` words apart meet in 32 / gcd(stride, 32) banks: gcd(stride, 32) wavefronts.

    The load pipe of an SM passes one wavefront a cycle, so 32 warps with nothing else to do take
    32 x degree cycles a load. 8- and 16-byte words take 2 and 4 wavefronts even without conflict.
    """

    @given(stride=st.integers(1, MAX_STRIDE), width=st.sampled_from(WIDTHS))
    def the_rule_of_each_width(stride: int, width: int) -> None:
        reads = StridedReads(stride, width, trips=1, block=64, blocks=1)
        assert wavefronts_per_request(emulator, reads) == degree(stride, width)

    the_rule_of_each_width()
    for stride in STRIDES:
        found = wavefronts_per_request(emulator, StridedReads(stride, trips=1, blocks=1))
        claim.counted(f"wavefronts per request, stride {stride}", found, math.gcd(stride, BANKS))
    for width in WIDTHS:
        on, what = emulator.architecture, f"bytes of the loads of a trip, {width}-byte words"
        claim.counted(what, loads_of_a_trip(width, on), [width] * READS, on)
    for stride in STRIDES[1:]:
        what, bounds = f"stride {stride} / stride 1", near(math.gcd(stride, BANKS))
        claim.timed(what, StridedReads(stride), StridedReads(1), **bounds, decisive=stride == BANKS)
    for width in WIDTHS[1:]:
        what, bounds = f"{width}-byte words / 4-byte words, stride 1", near(degree(1, width))
        claim.timed(what, StridedReads(1, width), StridedReads(1), **bounds)


def extra_wavefronts(emulator: Any, transpose: Transpose) -> int:
    """Wavefronts beyond one a request, loads and stores."""
    counters = emulator.count_checked(transpose)
    traffic = [counters.traffic(opcode, "shared") for opcode in ("ld", "st")]
    return sum(each.wavefronts - each.requests for each in traffic)


@pytest.mark.claim(
    "banks.padding", "a tile with a 33rd column has no conflict and is faster", ours=True
)
def test_a_padded_tile_is_read_by_columns_without_conflict(claim: Any, emulator: Any) -> None:
    """A column's words are a row length apart: gcd(row length, 32) wavefronts for each of 32 reads.

    At 32 words that is 1024 + 32 wavefronts a tile of 8 KiB moved, so 132 SMs at 1.98 GHz pass
    2.0 TB/s, half of what an H200's DRAM would give. A GPU with little DRAM bandwidth a wavefront
    (RTX 4090: 2.5 against 1.0 TB/s) hides the conflicts.
    """

    @given(pad=st.integers(0, 8), side=st.integers(1, 3))
    def the_row_length_sets_the_degree(pad: int, side: int) -> None:
        transpose = Transpose(pad, n=side * TILE)
        extra = TILE * (math.gcd(TILE + pad, BANKS) - 1)
        assert extra_wavefronts(emulator, transpose) == extra * transpose.tiles

    the_row_length_sets_the_degree()
    for pad, extra in ((0, 992), (1, 0)):
        what = f"extra wavefronts a tile, rows of {TILE + pad}"
        claim.counted(what, extra_wavefronts(emulator, Transpose(pad, n=TILE)), extra)
    claim.cause("rows of 32 / rows of 33", Transpose(0), Transpose(1), at_least=1.1)


WORKLOADS: Final = (
    *(StridedReads(stride) for stride in STRIDES),
    *(StridedReads(1, width) for width in WIDTHS[1:]),
    *(Transpose(pad) for pad in (0, 1)),
)


def short(workload: StridedReads | Transpose) -> str:
    """The kernel and its pattern: read_strided-4-bytes-33, transpose-33."""
    if isinstance(workload, Transpose):
        return f"transpose-{TILE + workload.pad}"
    return f"read_strided-{workload.width}-bytes-{workload.stride}"


@pytest.mark.parametrize("workload", WORKLOADS, ids=short)
@pytest.mark.benchmark(group="banks")
def test_the_bank_patterns_are_timed(bench: Any, workload: StridedReads | Transpose) -> None:
    """A row of the benchmark table for each stride and each tile."""
    bench(workload)


@given(stride=st.integers(1, MAX_STRIDE), width=st.sampled_from(WIDTHS), trips=st.integers(1, 3))
def test_every_strided_read_is_one_request(
    emulator: Any, stride: int, width: int, trips: int
) -> None:
    """16 of a trip and warp; wavefronts per request say nothing of how many there are."""
    counters = emulator.count_checked(StridedReads(stride, width, trips, block=64, blocks=1))
    assert counters.traffic("ld", "shared").requests == READS * trips * 2


@given(pad=st.integers(0, 8), side=st.integers(1, 3))
def test_a_tile_crosses_each_memory_once_either_way(emulator: Any, pad: int, side: int) -> None:
    """32 requests a tile in and out of shared memory, and 32 of four sectors in global memory."""
    transpose = Transpose(pad, n=side * TILE)
    counters = emulator.count_checked(transpose)
    for opcode in ("ld", "st"):
        assert counters.traffic(opcode, "shared").requests == TILE * transpose.tiles
        rows = counters.traffic(opcode, "global")
        assert (rows.requests, rows.sectors) == (
            TILE * transpose.tiles,
            4 * TILE * transpose.tiles,
        )


@pytest.mark.parametrize("pad", [0, 1, 8])
def test_the_arrays_are_all_the_shared_memory(emulator: Any, pad: int) -> None:
    """More would cost occupancy unseen."""
    reads = {StridedReads(1, width).kernel: WORDS * width for width in WIDTHS}
    for entry, size in (reads | {Transpose(pad).kernel: 4 * TILE * (TILE + pad)}).items():
        assert shared_per_block(entry, emulator.architecture) == size, entry


@given(seed=st.integers(0, 2**32 - 1))
def test_bytes_come_from_wherever_a_lane_asks(device: Device, seed: int) -> None:
    """Whatever a pattern costs, it is a gather."""
    gathered(device, np.random.default_rng(seed).integers(0, BYTES, BYTES))


@given(
    stride=st.integers(1, MAX_STRIDE),
    width=st.sampled_from(WIDTHS),
    trips=st.integers(0, 3),
    block=st.sampled_from([32, 96, 256]),
)
def test_strided_reads_add_up(
    device: Device, stride: int, width: int, trips: int, block: int
) -> None:
    """Every load counts in the sum, however often it is repeated."""
    StridedReads(stride, width, trips, block, blocks=2).prepare(device).check()


@given(pad=st.integers(0, 8), side=st.integers(1, 4))
def test_every_tile_is_turned(device: Device, pad: int, side: int) -> None:
    """The unused words of a row are never seen."""
    Transpose(pad, n=side * TILE).prepare(device).check()
