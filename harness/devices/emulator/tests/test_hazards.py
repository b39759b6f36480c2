"""What lockstep hides and hardware does not forgive: races, lone barriers, dead lanes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from harness.devices.emulator import EmulatedDevice, Fault
from harness.devices.emulator.tests.ptx_text import program
from kernels import FOLDER, Kernel

LADDER: Final = (FOLDER / "reduce_ladder.cu").read_text()
RUNGS: Final = ["v2", "v3", "v4", "v5", "v5_float4", "v6", "v7"]
BARRIER: Final = "__syncthreads();"
FULL: Final = "0xffffffff"
WRITE: Final = "race with a write, no barrier between"
READ: Final = "race with a read, no barrier between"
SEVERAL: Final = "several threads write one place"
UNWRITTEN: Final = "it reads what nothing wrote"


def body_of(rung: str) -> str:
    found = re.search(rf"__global__ void reduce_{rung}\(.*?\n}}", LADDER, re.DOTALL)
    assert found
    return found[0]


def mutants() -> list[tuple[str, int]]:
    return [(rung, n) for rung in RUNGS for n in range(body_of(rung).count(BARRIER))]


def reduce(source: Path, rung: str, block: int) -> tuple[float, float]:
    """Return the sum on the device and the exact one, of three blocks and a part of a fourth."""
    kernel = Kernel(str(source.with_suffix("")), f"reduce_{rung}", (("BLOCK", block),))
    width = 4 if rung in ("v5_float4", "v7") else 1
    x = np.arange(3 * block * width + 3 * width, dtype=np.float32) % 7
    device = EmulatedDevice()
    out = device.put(np.zeros(1, np.float32))
    device.launch(kernel, 4, block, device.put(x), out, x.size // width)
    return float(device.get(out)[0]), float(x.sum(dtype=np.float64))


@pytest.mark.parametrize(("rung", "number"), mutants())
def test_a_barrier_taken_out_of_a_rung_is_missed(rung: str, number: int, tmp_path: Path) -> None:
    """Every read still follows every write in lockstep: the sum would be right."""
    whole = body_of(rung)
    before, after = (BARRIER.join(parts) for parts in split(whole.split(BARRIER), number + 1))
    source = tmp_path / "mutant.cu"
    source.write_text(LADDER.replace(whole, before + after))
    for block in (64, 256):
        with pytest.raises(
            Fault, match=r"`(ld|st)\.shared\..*race with a .*\(block \d+, thread \d+\)"
        ):
            reduce(source, rung, block)


def split(parts: list[str], at: int) -> tuple[list[str], list[str]]:
    return parts[:at], parts[at:]


@pytest.mark.parametrize("block", [32, 64, 128, 256, 512, 1024])
def test_the_rungs_as_published_have_no_race(block: int) -> None:
    for rung in RUNGS:
        found, expected = reduce(FOLDER / "reduce_ladder.cu", rung, block)
        assert found == expected


# Every thread writes its own word of `words`, then what the test says.
PROLOGUE: Final = """
    mov.u32 %r0, %tid.x; mov.u32 %r1, words; mad.lo.u32 %r1, %r0, 4, %r1;
    mov.u32 %r2, %ctaid.x; setp.eq.u32 %p0, %r0, 0; setp.lt.u32 %p1, %r0, 32;
"""
OWN: Final = "st.shared.u32 [%r1], %r0;"
SHARED: Final = ".shared .align 16 .b8 words[1024];"


def run(body: str, block: int = 64, grid: int = 1) -> None:
    EmulatedDevice().run(program(f"{PROLOGUE} {body} ret;", (), SHARED), [], grid, block)


CLEAN: Final = {
    "a barrier orders a block": f"{OWN} bar.sync 0; ld.shared.u32 %r3, [words];",
    "a thread reads what it wrote": f"{OWN} ld.shared.u32 %r3, [%r1]; {OWN}",
    "a warp barrier orders a warp": f"""
        @!%p1 exit; {OWN} bar.warp.sync {FULL}; ld.shared.u32 %r3, [words+4];""",
    "several read": f"{OWN} bar.sync 0; ld.shared.u32 %r3, [words]; ld.shared.u32 %r3, [words];",
    "bytes of one word": "shr.u32 %r3, %r1, 2; st.shared.u8 [%r3], %r0; ld.shared.u8 %r3, [%r3];",
    "atomics do not race": f"""
        {OWN} bar.sync 0; atom.shared.add.u32 %r3, [words], 1; red.shared.add.u32 [words], 1;""",
    "one thread, atomically and not": f"""
        {OWN} red.shared.add.u32 [%r1], 1; ld.shared.u32 %r3, [%r1];""",
    "a later write in a warp": f"""
        @!%p1 exit; {OWN} bar.warp.sync {FULL}; @%p0 ld.shared.u32 %r3, [words+64];
        bar.warp.sync {FULL}; ld.shared.u32 %r3, [%r1]; {OWN}""",
    "two writers of a warp in turn": f"""
        @!%p1 exit; setp.eq.u32 %p2, %r0, 1; @%p0 st.shared.u32 [words], 1; bar.warp.sync {FULL};
        @%p2 st.shared.u32 [words], 2;""",
    "half a warp orders itself": f"""
        {OWN} setp.lt.u32 %p2, %r0, 16; @!%p2 exit; bar.warp.sync 0xffff;
        xor.b32 %r3, %r1, 4; ld.shared.u32 %r3, [%r3];""",
    "each half of a warp orders itself at once": f"""
        {OWN} and.b32 %r3, %r0, 31; setp.lt.u32 %p2, %r3, 16;
        selp.b32 %r3, 0xffff, 0xffff0000, %p2; bar.warp.sync %r3;
        xor.b32 %r3, %r1, 4; ld.shared.u32 %r3, [%r3];""",
    "a warp barrier tells on what an earlier one told": f"""
        {OWN} setp.lt.u32 %p2, %r0, 2; @%p2 bar.warp.sync 3; setp.eq.u32 %p3, %r0, 2;
        setp.eq.u32 %p2, %r0, 1; or.pred %p2, %p2, %p3; @%p2 bar.warp.sync 6;
        @%p3 ld.shared.u32 %r3, [words];""",
    "vectors side by side": "shl.b32 %r3, %r0, 4; st.shared.v4.u32 [%r3], {%r0, %r0, %r0, %r0};",
}  # fmt: skip

RACES: Final = {
    "another warp's write": (f"{OWN} ld.shared.u32 %r3, [words];", WRITE, "thread 1"),
    "another lane's write": (f"{OWN} ld.shared.u32 %r3, [words+4];", WRITE, "thread 0"),
    "a warp barrier does not order a block": (
        f"{OWN} bar.warp.sync {FULL}; ld.shared.u32 %r3, [words];", WRITE, "thread 32"),
    "a warp barrier orders only those its mask names": (
        f"{OWN} setp.lt.u32 %p2, %r0, 16; @%p2 bar.warp.sync 0xffff; "
        "@%p2 ld.shared.u32 %r3, [%r1+64];", WRITE, "thread 0"),
    "nor does it order those it names with others": (
        f"{OWN} setp.lt.u32 %p2, %r0, 2; @%p2 bar.warp.sync 3; "
        "@%p2 ld.shared.u32 %r3, [%r1+4];", WRITE, "thread 1"),
    "nor a lane that has left": (
        f"{OWN} @%p0 exit; @%p1 bar.warp.sync {FULL}; setp.eq.u32 %p2, %r0, 1; "
        "@%p2 ld.shared.u32 %r3, [words];", WRITE, "thread 1"),
    "nor does a chain of barriers in the wrong order": (
        f"{OWN} setp.eq.u32 %p3, %r0, 2; setp.eq.u32 %p2, %r0, 1; or.pred %p2, %p2, %p3; "
        "@%p2 bar.warp.sync 6; setp.lt.u32 %p2, %r0, 2; @%p2 bar.warp.sync 3; "
        "@%p3 ld.shared.u32 %r3, [words];", WRITE, "thread 2"),
    "a write after a read that only some have waited for": (
        f"{OWN} bar.sync 0; @%p1 ld.shared.u32 %r3, [words]; setp.lt.u32 %p2, %r0, 16; "
        "@%p2 bar.warp.sync 0xffff; @%p0 st.shared.u32 [words], 1;", READ, "thread 0"),
    "a write after another's read": (
        f"{OWN} bar.sync 0; @%p0 ld.shared.u32 %r3, [words+4]; {OWN}", READ, "thread 1"),
    "a write after a read by several": (
        f"{OWN} bar.sync 0; ld.shared.u32 %r3, [words]; @%p0 {OWN}", READ, "thread 0"),
    "a write after reads by another lane and by itself": (
        f"{OWN} bar.sync 0; setp.eq.u32 %p2, %r0, 1; @%p0 ld.shared.u32 %r3, [words+4]; "
        "@%p2 ld.shared.u32 %r3, [words+4]; @%p2 st.shared.u32 [words+4], %r0;", READ, "thread 1"),
    "two lanes write one word": ("st.shared.u32 [words], %r0;", SEVERAL, "thread 0"),
    "two lanes write one word, the same": ("st.shared.u32 [words], 1;", SEVERAL, "thread 0"),
    "a plain read beside atomics": (
        f"{OWN} bar.sync 0; red.shared.add.u32 [words], 1; ld.shared.u32 %r3, [words];",
        WRITE, "thread 0"),
    "the last word of a vector": (
        "shl.b32 %r3, %r0, 2; @%p0 st.shared.v4.u32 [words], {%r0, %r0, %r0, %r0}; "
        "setp.eq.u32 %p2, %r0, 3; @%p2 ld.shared.u32 %r3, [words+12];",
        WRITE, "thread 3"),
    "a byte of another's word": (
        f"{OWN} setp.eq.u32 %p2, %r0, 1; @%p2 ld.shared.u8 %r3, [words+3];", WRITE, "thread 1"),
    "nothing was written": ("ld.shared.u32 %r3, [%r1];", UNWRITTEN, "thread 0"),
    "nothing was written, atomically": ("red.shared.add.u32 [%r1], 1;", UNWRITTEN, "thread 0"),
}  # fmt: skip


@pytest.mark.parametrize("body", CLEAN.values(), ids=CLEAN.keys())
def test_ordered_accesses_are_clean(body: str) -> None:
    run(body)


@pytest.mark.parametrize(("body", "reason", "thread"), RACES.values(), ids=RACES.keys())
def test_a_race_is_an_error(body: str, reason: str, thread: str) -> None:
    with pytest.raises(Fault, match=rf"^k: `.*shared.*`: {reason} \(block 0, {thread}\)$"):
        run(body)


def test_half_a_warp_that_waits_alone_is_a_race_in_cuda_too(tmp_path: Path) -> None:
    """The other half may not have written s[t + 16] yet; lockstep would hide it."""
    source = tmp_path / "half.cu"
    source.write_text("""
        extern "C" __global__ void half_waits(int* o)
        {
            __shared__ int s[32];
            int t = threadIdx.x;
            s[t] = t * 3;
            if (t < 16) { __syncwarp(0xffff); o[t] = s[t + 16]; }
        }
    """)
    device = EmulatedDevice()
    with pytest.raises(Fault, match=rf"`ld\.shared.*`: {WRITE} \(block 0, thread 0\)"):
        device.launch(
            Kernel(str(tmp_path / "half"), "half_waits"), 1, 32, device.empty(16, np.int32)
        )


def test_a_race_in_one_of_several_blocks_is_found_there() -> None:
    """Blocks that did the same so far share one row; block 3 alone skips its barrier."""
    body = (
        f"{OWN} setp.eq.u32 %p2, %r2, 3; @%p2 bra $on; bar.sync 0; $on: ld.shared.u32 %r3, [words];"
    )
    with pytest.raises(Fault, match=rf"{WRITE} \(block 3, thread 1\)"):
        run(body, grid=5)


def test_an_access_that_all_blocks_make_alike_races_only_where_one_wrote() -> None:
    body = f"""
        {OWN} bar.sync 0; setp.eq.u32 %p2, %r2, 2; and.pred %p2, %p2, %p0;
        @%p2 st.shared.u32 [words], %r0;
        setp.eq.u32 %p3, %r0, 1; @%p3 ld.shared.u32 %r3, [words];"""
    with pytest.raises(Fault, match=rf"{WRITE} \(block 2, thread 1\)"):
        run(body, grid=4)


def test_blocks_may_pass_different_numbers_of_barriers() -> None:
    """Block b passes b + 1 barriers and then reads its neighbour's word."""
    run(
        f"""{OWN} mov.u32 %r4, 0;
        $again: bar.sync 0; add.u32 %r4, %r4, 1; setp.le.u32 %p2, %r4, %r2; @%p2 bra $again;
        xor.b32 %r5, %r1, 4; ld.shared.u32 %r3, [%r5]; bar.sync 0; st.shared.u32 [%r5], %r3;""",
        grid=7,
    )


@pytest.mark.parametrize(
    ("body", "thread"),
    [
        ("setp.gt.u32 %p2, %r0, 40; @%p2 exit; bar.sync 0;", "thread 41"),
        (
            "and.b32 %r3, %r0, 3; setp.ne.u32 %p2, %r3, 0; @%p2 bra $on; bar.sync 0; $on:",
            "thread 1",
        ),
        ("@%p0 bra $on; bar.sync 0; bra.uni $end; $on: bar.sync 0; $end:", "thread 0"),
    ],
    ids=["early return", "inside a branch", "two barriers"],
)
def test_a_barrier_without_all_threads_is_an_error(body: str, thread: str) -> None:
    reason = r"a thread of the block never reaches it"
    with pytest.raises(Fault, match=rf"^k: `bar.sync 0`: {reason} \(block 0, {thread}\)$"):
        run(body)


MISSING: Final = "a lane its mask names does not take part"
UNNAMED: Final = "a lane takes part that its mask does not name"
DEAD: Final = "it reads a lane that does not take part"


@pytest.mark.parametrize(
    ("body", "reason", "thread"),
    [
        ("shfl.sync.down.b32 %r3, %r0, 1, 31, 0;", UNNAMED, "thread 0"),
        ("shfl.sync.down.b32 %r3, %r0, 1, 31, 0xff;", UNNAMED, "thread 8"),
        (f"@%p0 shfl.sync.down.b32 %r3, %r0, 1, 31, {FULL};", MISSING, "thread 1"),
        (f"@%p0 vote.sync.any.pred %p2, %p0, {FULL};", MISSING, "thread 1"),
        (f"@%p0 bar.warp.sync {FULL};", MISSING, "thread 1"),
        ("@%p0 shfl.sync.down.b32 %r3, %r0, 1, 31, 1;", DEAD, "thread 0"),
        (
            "setp.lt.u32 %p2, %r0, 16; selp.b32 %r3, 0xffff, 0x10000, %p2; bar.warp.sync %r3;",
            UNNAMED,
            "thread 17",
        ),
        ("@%p0 exit; shfl.sync.bfly.b32 %r3, %r0, 1, 31, 0xfffffffe;", DEAD, "thread 1"),
    ],
)
def test_a_warp_without_its_lanes_is_an_error(body: str, reason: str, thread: str) -> None:
    with pytest.raises(Fault, match=rf"{reason} \(block 0, {thread}\)$"):
        run(body, block=32)


def test_a_mask_may_name_lanes_that_have_left() -> None:
    """PTX ISA: the instruction waits for the lanes of its mask that have not exited."""
    run(f"@%p0 exit; vote.sync.any.pred %p2, %p0, {FULL}; bar.warp.sync {FULL};", block=40)


@pytest.mark.parametrize(
    ("body", "thread"),
    [
        ("add.u32 %r4, %r3, 1;", "thread 0"),
        ("@%p0 mov.u32 %r3, 1; add.u32 %r4, %r3, 1;", "thread 1"),
        ("@%p0 bra $on; mov.u32 %r3, 1; $on: add.u32 %r4, %r3, 1;", "thread 0"),
    ],
)
def test_a_register_read_before_it_is_written_is_an_error(body: str, thread: str) -> None:
    with pytest.raises(
        Fault, match=rf"`add.u32 .*`: %r3 is read before it is written \(block 0, {thread}\)"
    ):
        run(body)


def test_a_register_written_on_both_paths_is_whole() -> None:
    run(
        """@%p0 bra $on; mov.u32 %r3, 1; bra.uni $end; $on: mov.u32 %r3, 2;
        $end: add.u32 %r4, %r3, 1;"""
    )
