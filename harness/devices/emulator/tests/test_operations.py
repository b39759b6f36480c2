"""Memory, control and cross-lane instructions against their definitions in Python."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.devices.emulator import EmulatedDevice, Unsupported
from harness.devices.emulator.lanewise import LANEWISE
from harness.devices.emulator.operations import ATOMICS, OPERATIONS, handler_of
from harness.devices.emulator.ptx import parse
from harness.devices.emulator.tests.ptx_text import entry_text, pointer, program, run_lanes

WARP: Final = range(32)
FULL: Final = "0xffffffff"

# body, signature, inputs by lane, expected by lane
BODIES: Final[list[tuple[str, str, list[list[Any]], list[Any]]]] = [
    ("mov.u32 %d, %laneid;", "s32 -> u32", [[0] * 40], [*WARP, *range(8)]),
    ("mov.b32 %d, %a;", "f32 -> b32", [[1.0, -0.0]], [0x3F800000, 0x80000000]),
    ("mov.b64 %d, {%a, %b};", "b32 b32 -> b64", [[1], [2]], [2 * 2**32 + 1]),
    ("mov.b64 {%d, _}, %a;", "b64 -> b32", [[2**40 + 5]], [5]),
    ("mov.b64 {_, %d}, %a;", "f64 -> b32", [[1.0]], [0x3FF00000]),
    ("mov.pred %d, %a;", "pred -> pred", [[0, 1]], [0, 1]),
    ("selp.u32 %d, 1, 2, %a;", "pred -> u32", [[0, 1]], [2, 1]),
    ("cvt.u32.u64 %d, %a;", "u64 -> u32", [[2**32 + 7]], [7]),
    ("mov.u32 %d, 0; @%a mov.u32 %d, 7;", "pred -> u32", [[0, 1]], [0, 7]),
    ("mov.u32 %d, 0; @!%a mov.u32 %d, 7;", "pred -> u32", [[0, 1]], [7, 0]),
    ("mov.u32 %d, 7; @%a exit;", "pred -> u32", [[0, 1, 0]], [7, 2**32 - 1, 7]),
    ("mov.u32 %d, 7; @%a ret;", "pred -> u32", [[1, 0]], [2**32 - 1, 7]),
    ("mov.u32 %d, 1; @%a bra $to; mov.u32 %d, 2; $to:", "pred -> u32", [[0, 1]], [2, 1]),
    ("bra.uni $to; mov.u32 %a, 9; $to: mov.u32 %d, %a;", "u32 -> u32", [[4]], [4]),
    ("prefetch.global.L2 [%a]; mov.u32 %d, %a;", "u32 -> u32", [[4]], [4]),
    ("membar.gl; membar.cta; membar.sys; mov.u32 %d, %a;", "u32 -> u32", [[4]], [4]),
    ("bar.sync 0; bar.warp.sync 0xf; mov.u32 %d, %a;", "u32 -> u32", [[1, 2, 3, 4]], [1, 2, 3, 4]),
    ("activemask.b32 %d;", "u32 -> u32", [[0] * 3], [7] * 3),
    ("mov.u32 %d, 0; @%a activemask.b32 %d;", "pred -> u32", [[1, 0, 1]], [5, 0, 5]),
    (f"vote.sync.ballot.b32 %d, %a, {FULL};", "pred -> u32", [[1, 0, 1]], [5] * 3),
    (f"vote.sync.any.pred %d, %a, {FULL};", "pred -> pred", [[0, 0, 1]], [1] * 3),
    (f"vote.sync.any.pred %d, %a, {FULL};", "pred -> pred", [[0, 0]], [0] * 2),
    (f"vote.sync.all.pred %d, %a, {FULL};", "pred -> pred", [[1, 1]], [1] * 2),
    (f"vote.sync.all.pred %d, %a, {FULL};", "pred -> pred", [[1, 0]], [0] * 2),
    # Two groups vote at once, each by its own mask.
    ("vote.sync.ballot.b32 %d, %a, %b;", "pred u32 -> u32", [[1, 0, 1], [3, 3, 4]], [1, 1, 4]),
    (f"shfl.sync.idx.b32 %d, %a, 1, 31, {FULL};", "u32 -> u32", [[5, 6]], [6, 6]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "signature", "inputs", "expected"), BODIES, ids=lambda v: str(v)[:40]
)
def test_row(body: str, signature: str, inputs: list[list[Any]], expected: list[Any]) -> None:
    (found,) = run_lanes(body, signature, *inputs)
    assert found.tolist() == expected


# Old and new value of a word that starts at 5, given operands.
ONE_LANE: Final[list[tuple[str, list[int], int]]] = [
    ("atom.global.add.u32", [3], 8),
    ("atom.relaxed.gpu.global.add.u32", [3], 8),
    ("atom.global.min.s32", [-1], -1),
    ("atom.global.min.u32", [2**32 - 1], 5),
    ("atom.global.max.s32", [9], 9),
    ("atom.global.and.b32", [4], 4),
    ("atom.global.or.b32", [2], 7),
    ("atom.global.xor.b32", [1], 4),
    ("atom.global.exch.b32", [9], 9),
    ("atom.global.cas.b32", [5, 9], 9),
    ("atom.global.cas.b32", [4, 9], 5),
    ("atom.global.inc.u32", [5], 0),
    ("atom.global.inc.u32", [6], 6),
    ("atom.global.dec.u32", [6], 4),
    ("atom.global.dec.u32", [4], 4),
]  # fmt: skip


@pytest.mark.parametrize(("mnemonic", "operands", "new"), ONE_LANE)
def test_an_atomic_returns_the_old_value(mnemonic: str, operands: list[int], new: int) -> None:
    device = EmulatedDevice()
    word, old = device.put(np.array([5], np.int32)), device.empty(1, np.int32)
    listed = ", ".join(map(str, operands))
    body = f"""
        ld.param.u64 %rd0, [p0]; ld.param.u64 %rd1, [p1];
        {mnemonic} %r0, [%rd0], {listed};
        st.global.u32 [%rd1], %r0; ret;
    """
    device.run(program(body, ("u64", "u64")), [pointer(word), pointer(old)], 1, 1)
    assert (device.get(old).tolist(), device.get(word).tolist()) == ([5], [new])


def test_a_reduction_is_an_atomic_without_result() -> None:
    device = EmulatedDevice()
    total = device.put(np.zeros(1, np.float32))
    body = "ld.param.u64 %rd0, [p0]; red.global.add.f32 [%rd0], 0f3F800000; ret;"
    device.run(program(body, ("u64",)), [pointer(total)], 3, 40)
    assert device.get(total).tolist() == [120]


@pytest.mark.parametrize("space", ["global", "shared"])
def test_lanes_that_add_to_one_word_collect_all_counts(space: str) -> None:
    """32 lanes adding 1 find 0 to 31, and blocks that do exactly the same still add one by one."""
    device = EmulatedDevice()
    word, old = device.put(np.zeros(1, np.int32)), device.empty(64, np.int32)
    body = f"""
        ld.param.u64 %rd0, [p0]; ld.param.u64 %rd1, [p1];
        mov.u32 %r1, %tid.x; setp.eq.u32 %p0, %r1, 0; mov.u32 %r4, word;
        @%p0 st.shared.u32 [word], 0; bar.sync 0;
        atom.{space}.add.u32 %r0, [{"%rd0" if space == "global" else "%r4"}], 1;
        mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.u32 %r1, %r2, %r3, %r1;
        mad.wide.u32 %rd2, %r1, 4, %rd1; st.global.u32 [%rd2], %r0; ret;
    """
    outside = ".shared .align 4 .u32 word;"
    device.run(program(body, ("u64", "u64"), outside), [pointer(word), pointer(old)], 2, 32)
    expected = [*range(64)] if space == "global" else [*range(32)] * 2
    assert sorted(device.get(old).tolist()) == sorted(expected)


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
@given(
    st.integers(0, 63),
    st.sampled_from([1, 2, 4, 8, 16, 32]),
    st.integers(0, 31),
)
@example(3, 8, 5)
def test_shuffles_read_the_lane_the_isa_defines(
    mode: str, delta: int, width: int, clamp: int
) -> None:
    """A lane whose source is outside its segment of `width` lanes, or past the clamp, reads itself.

    CUDA's own functions clamp at 0 for up and at 31, the segment's last lane, for the others.
    """
    c = (32 - width) << 8 | clamp
    line = f"shfl.sync.{mode}.b32 %d|%e, %a, {delta}, {c}, {FULL};"
    values, inside = run_lanes(line, "u32 -> u32 pred", [100 + lane for lane in WARP])
    for lane in WARP:
        start, step = lane - lane % width, delta % 32
        source = {
            "up": lane - step,
            "down": lane + step,
            "bfly": lane ^ step,
            "idx": start + step % width,
        }[mode]
        limit = start + clamp % width
        reached = source >= limit if mode == "up" else source <= limit
        assert inside[lane] == reached
        assert values[lane] == 100 + (source if reached else lane)


def test_a_shuffle_out_of_range_is_fine_if_the_result_is_not_used() -> None:
    """The last lane of an incomplete warp reaches past the warp: it reads itself."""
    (found,) = run_lanes(
        f"shfl.sync.down.b32 %d, %a, 31, 31, {FULL};", "u32 -> u32", [[*WARP][0:32]][0]
    )
    assert found.tolist() == [31, *range(1, 32)]


@pytest.mark.parametrize(("width", "element"), [(2, "f32"), (4, "b32"), (2, "b64")])
@pytest.mark.parametrize("space", ["global", "shared"])
def test_a_vector_access_moves_its_elements_in_order(space: str, width: int, element: str) -> None:
    device = EmulatedDevice()
    register = {"f32": "%f", "b32": "%r", "b64": "%rd"}[element]
    size = width * int(element[1:]) // 8
    listed = ", ".join(f"{register}{i}" for i in range(3, 3 + width))
    through = f"""
        st.shared.v{width}.{element} [buffer], {{{listed}}};
        ld.shared.v{width}.{element} {{{listed}}}, [buffer];
    """
    body = f"""
        ld.param.u64 %rd0, [p0]; ld.param.u64 %rd1, [p1];
        ld.global.v{width}.{element} {{{listed}}}, [%rd0];
        {through if space == "shared" else ""}
        st.global.v{width}.{element} [%rd1], {{{listed}}}; ret;
    """
    source, target = device.put(np.arange(size, dtype=np.uint8)), device.empty(size, np.uint8)
    outside = ".shared .align 16 .b8 buffer[16];"
    device.run(program(body, ("u64", "u64"), outside), [pointer(source), pointer(target)], 1, 1)
    assert device.get(target).tolist() == [*range(size)]


REFUSED: Final = [
    "add.rp.f32 %f0, %f1, %f2", "cvt.rz.f32.s32 %f0, %r1", "add.ftz.f32 %f0, %f1, %f2",
    "add.sat.s32 %r0, %r1, %r2", "mad.lo.cc.u32 %r0, %r1, %r2, %r3", "ex2.approx.f32 %f0, %f1",
    "div.approx.f32 %f0, %f1, %f2", "rsqrt.approx.f32 %f0, %f1", "sqrt.approx.f32 %f0, %f1",
    "bfe.u32 %r0, %r1, 3, 4", "barrier.sync 0", "bar.sync 1", "bar.sync 0, 64",
    "bar.red.popc.u32 %r0, 0, %p0", "bar.arrive 0, 64",
    "ld.local.f32 %f0, [%rd0]", "ld.const.f32 %f0, [%rd0]", 
    "ld.global.nc.L1::no_allocate.f32 %f0, [%rd0]",
    "st.local.f32 [%rd0], %f0", "cvta.shared.u64 %rd0, %rd1", "cvta.to.shared.u64 %rd0, %rd1",
    "call.uni (retval0), f, (param0)", "st.param.f32 [param0+0], %f0", "brx.idx %r0, table",
    "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [image, {%f4, %f5}]",
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0}, {%r0}, {%r1}, {%f1}",
    "cp.async.ca.shared.global [%r0], [%rd0], 16", "shfl.down.b32 %r0, %r1, 1, 31", "trap",
    "atom.global.add.noftz.f16 %h0, [%rd0], %h1", "atom.acquire.gpu.global.add.u32 %r0, [%rd0], 1",
    "ld.bf16 %h0, [%rd0]", "ld.volatile.v8.f32 %f0, [%rd0]", "add.f16x2 %r0, %r1, %r2",
    "vote.any.pred %p0, %p1",
]  # fmt: skip


@pytest.mark.parametrize("line", REFUSED, ids=lambda line: line.split()[0])
def test_what_no_table_describes_is_refused_with_its_text(line: str) -> None:
    with pytest.raises(Unsupported) as refusal:
        program(f"{line}; ret;")
    assert str(refusal.value) == (
        f"the emulated device does not know `{line}`: "
        "add it to harness/devices/emulator/operations.py, with a row in its test"
    )


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("mov.u64 %rd0, %clock64", "%clock64"),
        ("mov.u32 %r0, %warpid", "%warpid"),
        ("mov.u64 %rd0, table", "table"),
        ("selp.s32 %r0, 1, 2, !%p0", "!%p0"),
        ("bra $nowhere", "$nowhere"),
    ],
)
def test_an_unknown_name_is_refused_before_the_launch(line: str, name: str) -> None:
    with pytest.raises(Unsupported, match=r"the emulated device has no ") as refusal:
        program(f"{line}; ret;")
    assert str(refusal.value) == f"`{line}`: the emulated device has no {name!r}"


def test_every_operation_is_tested() -> None:
    texts = [entry_text(body) for body, _, _, _ in BODIES]
    texts += [entry_text(f"{m} %r0, [%rd0], 1;") for m, _, _ in ONE_LANE]
    seen = [i for text in texts for block in parse(text)["k"].blocks for i in block]
    by_own_tests = {"shfl", "red", "ld", "st"}
    assert {i.opcode for i in seen} | by_own_tests >= set(OPERATIONS)
    assert {m for i in seen if i.opcode == "atom" for m in i.modifiers} >= set(ATOMICS)
    assert not set(OPERATIONS) & set(LANEWISE)
    assert all(handler_of(i) for i in seen)
