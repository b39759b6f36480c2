"""What a launch refuses, and what the memory it works on is like."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from harness.devices.emulator import EmulatedDevice, Fault, Unsupported
from harness.devices.emulator.program import Program
from harness.devices.emulator.ptx import parse
from harness.devices.emulator.tests.ptx_text import pointer, program
from kernels import Kernel, kernel

DYNAMIC = ".shared .align 4 .b8 static[400]; .extern .shared .align 4 .b8 dynamic[];"


@pytest.mark.parametrize(
    ("grid", "block", "shared", "message"),
    [
        (0, 32, 0, "k: grid is 0, allowed are 1 to 2147483647"),
        (1, 0, 0, "k: block is 0, allowed are 1 to 1024"),
        (1, 2048, 0, "k: block is 2048, allowed are 1 to 1024"),
        (1, 32, 2**18, "k: shared memory of a block is 262144, allowed are 0 to 232448"),
        ((2, 2), 32, 0, "k: grid is (2, 2), launches are one-dimensional: pass an int"),
        (1, (32, 2), 0, "k: block is (32, 2), launches are one-dimensional: pass an int"),
    ],
)
def test_an_impossible_launch_is_refused(grid: Any, block: Any, shared: int, message: str) -> None:
    with pytest.raises(Fault) as error:
        EmulatedDevice().run(program("ret;"), [], grid, block, shared=shared)
    assert str(error.value) == message


BY_BOUNDS = "allowed are 1 to 256 by .maxntid, the __launch_bounds__ of the kernel"
BY_SIZE = "allowed are 64 to 64 by .reqntid, the __block_size__ of the kernel"


@pytest.mark.parametrize(
    ("directives", "good", "bad", "message"),
    [
        (".maxntid 256", 256, 257, BY_BOUNDS),
        (".maxntid 128, 2, 1\n.minnctapersm 2", 256, 512, BY_BOUNDS),
        (".maxnreg 32 .reqntid 64, 1, 1", 64, 32, BY_SIZE),
        (".reqntid 64", 64, 65, BY_SIZE),
    ],
)
def test_a_block_that_the_kernel_rules_out_is_refused(
    directives: str, good: int, bad: int, message: str
) -> None:
    launch = Program(parse(f".entry k()\n{directives}\n{{\nret;\n}}")["k"])
    EmulatedDevice().run(launch, [], 1, good)
    with pytest.raises(Fault) as error:
        EmulatedDevice().run(launch, [], 1, bad)
    assert str(error.value) == f"k: block is {bad}, {message}"


@pytest.mark.parametrize(
    "directive", [".reqntid 8, 8, 1", ".reqnctapercluster 2, 1, 1", ".explicitcluster"]
)
def test_a_kernel_for_launches_of_another_kind_is_refused(directive: str) -> None:
    with pytest.raises(Unsupported) as error:
        Program(parse(f".entry k()\n{directive}\n{{\nret;\n}}")["k"])
    assert str(error.value) == f"k: the emulated device has no launch with `{directive}`"


def test_launch_bounds_in_cuda_bind_the_block(tmp_path: Path) -> None:
    (tmp_path / "s.cu").write_text(
        'extern "C" __global__ void __launch_bounds__(64) k(int* o) { o[threadIdx.x] = 1; }'
    )
    device, bounded = EmulatedDevice(), Kernel(str(tmp_path / "s"), "k")
    out = device.empty(128, np.int32)
    device.launch(bounded, 1, 64, out)
    with pytest.raises(Fault, match="k: block is 128, allowed are 1 to 64"):
        device.launch(bounded, 1, 128, out)


@pytest.mark.parametrize("integer", [np.int64, np.int32, np.uint8])
def test_a_size_may_be_an_integer_of_numpy(integer: Any) -> None:
    launch = program(
        "mov.u32 %r0, dynamic; mov.u32 %r0, static; ret;", (), DYNAMIC
    )  # 400 static bytes
    device = EmulatedDevice()
    sizes = integer(3), integer(32)
    found = device.count(lambda: device.run(launch, [], *sizes, shared=integer(4)))
    assert found.lane_instructions == 3 * 96


@pytest.mark.parametrize("load", ["ld.param.u32 %r0, [p0]", "ld.param.u64 %rd0, [p0+8]"])
def test_a_part_of_a_parameter_is_refused(load: str) -> None:
    with pytest.raises(Fault, match="only whole scalar parameters can be read"):
        EmulatedDevice().run(program(f"{load}; ret;", ("u64",)), [np.uint64(0)], 1, 32)


def test_a_device_works_on_after_a_fault() -> None:
    device = EmulatedDevice()
    bad = """
        mov.u32 %r0, %tid.x; setp.eq.u32 %p0, %r0, 5; mov.u64 %rd0, 4;
        @%p0 ld.global.u32 %r1, [%rd0]; bar.sync 0; ret;
    """
    with pytest.raises(Fault, match=r"null.*\(block 0, thread 5\)"):
        device.run(program(bad), [], 1, 64)
    device.run(program("bar.sync 0; ret;"), [], 1, 64)


def test_an_array_tells_its_address_shape_and_strides() -> None:
    device = EmulatedDevice()
    array = device.put(np.zeros((4, 6), np.float32))
    whole, part = array.__cuda_array_interface__, array[1:3].__cuda_array_interface__
    assert (whole["shape"], whole["typestr"], whole["strides"]) == ((4, 6), "<f4", None)
    assert part["data"][0] - whole["data"][0] == 24
    flat: NDArray[Any] = np.arange(6, dtype=np.int32)[::-1]
    assert device.get(device.put(flat)).tolist() == [5, 4, 3, 2, 1, 0]
    assert device.put(flat)[::2].__cuda_array_interface__["strides"] == (8,)


def test_memory_starts_as_bytes_that_no_kernel_computes() -> None:
    device = EmulatedDevice()
    assert np.isnan(device.get(device.empty(4, np.float32))).all()
    assert device.get(device.empty(4, np.int32)).tolist() == [-1] * 4


def test_the_bits_of_a_nan_survive_a_copy() -> None:
    device = EmulatedDevice()
    payload = np.array([0x7F812345, 0xFFC00001], np.uint32)
    x, y = device.put(payload.view(np.float32)), device.empty(2, np.float32)
    body = """
        ld.param.u64 %rd0, [p0]; ld.param.u64 %rd1, [p1]; mov.u32 %r0, %tid.x;
        mad.wide.u32 %rd0, %r0, 4, %rd0; mad.wide.u32 %rd1, %r0, 4, %rd1;
        ld.global.f32 %f0, [%rd0]; st.global.f32 [%rd1], %f0; ret;
    """
    device.run(program(body, ("u64", "u64")), [pointer(x), pointer(y)], 1, 2)
    assert device.get(y).view(np.uint32).tolist() == payload.tolist()


def test_four_warps_reduce_each_its_own() -> None:
    device = EmulatedDevice()
    out = device.empty(4, np.int32)
    adds = "".join(
        f"shfl.sync.bfly.b32 %r3, %r2, {off}, 31, 0xffffffff; add.u32 %r2, %r2, %r3;"
        for off in (16, 8, 4, 2, 1)
    )
    body = f"""
        ld.param.u64 %rd0, [p0]; mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 5; add.u32 %r2, %r1, 1;
        {adds} mad.wide.u32 %rd0, %r1, 4, %rd0; st.global.u32 [%rd0], %r2; ret;
    """
    device.run(program(body, ("u64",)), [pointer(out)], 1, 128)
    assert device.get(out).tolist() == [32, 64, 96, 128]


def test_an_array_of_nothing_is_never_read() -> None:
    for rung in ("v1", "v2", "v3", "v4", "v5", "v5_float4", "v6", "v7"):
        device = EmulatedDevice()
        x, out = device.empty(0, np.float32), device.put(np.zeros(1, np.float32))
        launched = kernel("reduce_ladder", f"reduce_{rung}", BLOCK=32)
        device.launch(launched, 1, 32, x, out, 0)
        assert device.get(out).tolist() == [0]


def test_canaries_around_the_elements_are_neither_read_nor_written() -> None:
    """One element between two NaN: a rung that reads past it returns NaN."""
    for rung in ("v1", "v2", "v3", "v4", "v5", "v6"):
        device = EmulatedDevice()
        x, out = (
            device.put(np.array([np.nan, 5, np.nan], np.float32)),
            device.put(np.zeros(1, np.float32)),
        )
        launched = kernel("reduce_ladder", f"reduce_{rung}", BLOCK=32)
        device.launch(launched, 1, 32, x[1:2], out, 1)
        assert device.get(out).tolist() == [5]
        assert np.isnan(device.get(x)[[0, 2]]).all()
