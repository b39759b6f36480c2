"""The occupancy calculator against known answers, its own laws, and NVIDIA's calculator."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.models.datasheet import KIB, MULTIPROCESSORS, REGISTERS, WARP, Multiprocessor
from harness.models.occupancy import Occupancy, occupancy

SM_80, SM_90 = MULTIPROCESSORS[8, 0], MULTIPROCESSORS[9, 0]
CASES = 1000  # a compute capability

sms = st.sampled_from(sorted(MULTIPROCESSORS.values(), key=lambda sm: sm.capability))
threads = st.integers(1, 1024)
registers = st.integers(0, 255)
shared = st.integers(0, 228 * KIB)


@pytest.mark.parametrize(
    ("asked", "blocks", "limiters"),
    [
        ((SM_90, 256), 8, ("warps",)),
        ((SM_90, 32), 32, ("blocks",)),
        ((SM_90, 64), 32, ("warps", "blocks")),
        ((SM_90, 1024, 64), 1, ("registers",)),
        ((SM_90, 1024, 65), 0, ("registers",)),
        ((SM_90, 256, 32, 0, 227 * KIB), 1, ("shared memory",)),
        ((SM_90, 256, 32, 0, 227 * KIB + 1), 0, ("shared memory",)),
        ((SM_90, 256, 32, 0, 113 * KIB), 2, ("shared memory",)),
        ((SM_90, 256, 32, 0, 113 * KIB + 1), 1, ("shared memory",)),
        ((SM_80, 256, 32, 0, 163 * KIB), 1, ("shared memory",)),
        ((MULTIPROCESSORS[8, 9], 256, 32), 6, ("warps",)),
        ((MULTIPROCESSORS[7, 5], 1024, 64), 1, ("warps", "registers")),
        ((MULTIPROCESSORS[7, 0], 32, 0, 96 * KIB), 1, ("shared memory",)),
        ((SM_90, 1025), 0, ("warps",)),
    ],
)
def test_what_limits_a_block(asked: Any, blocks: int, limiters: tuple[str, ...]) -> None:
    """SM, threads, registers, static and dynamic shared memory."""
    found = occupancy(*asked)
    assert (found.blocks, found.limiters) == (blocks, limiters)


def test_a_block_of_five_warps_is_checked_as_if_it_were_eight() -> None:
    """5 x 8192 registers are there, but the launch is refused if 8 x 8192 were not."""
    assert occupancy(SM_90, 5 * WARP, 255).blocks == 1
    assert occupancy(SM_90, 9 * WARP, 255).blocks == 0
    assert 9 * WARP * 256 > REGISTERS


def test_occupancy_is_the_share_of_warps() -> None:
    """Three warps a block, 21 blocks: 63 of 64."""
    assert occupancy(SM_80, 96, 32).share == 63 / 64


@given(sm=sms, block=threads, regs=registers, static=shared, more=st.integers(0, 64))
def test_more_of_anything_never_fits_more(
    sm: Multiprocessor, block: int, regs: int, static: int, more: int
) -> None:
    """Blocks fall with threads of a block, registers and shared memory."""
    blocks = occupancy(sm, block, regs, static).blocks
    assert occupancy(sm, block + more, regs, static).blocks <= blocks
    assert occupancy(sm, block, regs + more, static).blocks <= blocks
    assert occupancy(sm, block, regs, static + 128 * more).blocks <= blocks


@given(sm=sms, block=threads, regs=registers, static=shared, dynamic=shared)
def test_what_is_resident_fits(
    sm: Multiprocessor, block: int, regs: int, static: int, dynamic: int
) -> None:
    """Warps, registers and bytes of all blocks together; static or dynamic is the same."""
    found = occupancy(sm, block, regs, static, dynamic)
    assert found == occupancy(sm, block, regs, dynamic, static)
    assert found.share <= 1
    assert found.blocks * found.warps_per_block * WARP * regs <= REGISTERS
    assert found.blocks * (static + dynamic + sm.reserved) <= sm.shared
    assert found.limiters


@pytest.mark.parametrize("asked", [(0,), (32, -1), (32, 0, -1), (32, 0, 0, -1)])
def test_what_no_block_has_is_refused(asked: tuple[int, ...]) -> None:
    """The message repeats what was asked."""
    with pytest.raises(ValueError, match="at least one thread, and nothing is negative"):
        occupancy(SM_90, *asked)


@pytest.fixture(scope="module")
def calculator(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """NVIDIA's calculator, compiled from its header; it comes with nvidia-cuda-runtime."""
    compiler = shutil.which("c++") or shutil.which("g++")
    if not compiler:
        pytest.skip("no C++ compiler (c++, g++) is on the path")
    pathfinder = pytest.importorskip("cuda.pathfinder", reason="CuPy brings cuda-pathfinder")
    folder = pathfinder.find_nvidia_header_directory("cudart")
    if not folder or not Path(folder, "cuda_occupancy.h").exists():
        pytest.skip("cuda_occupancy.h is not installed: pip install 'nvidia-cuda-runtime<14'")
    library = tmp_path_factory.mktemp("oracle") / "oracle.so"
    source = Path(__file__).with_name("occupancy_oracle.cpp")
    subprocess.run([compiler, "-shared", "-fPIC", f"-I{folder}", source, "-o", library], check=True)
    return ctypes.CDLL(str(library))


def limits(calculator: Any, sm: Multiprocessor, block: tuple[int, int, int, int]) -> list[int]:
    """Return the blocks by warps, blocks, registers and shared memory, and the least of them."""
    sizes = sm.warps * WARP, sm.shared, sm.shared_per_block, sm.reserved
    case = (ctypes.c_int * 10)(*sm.capability, *sizes, *block)
    each = (ctypes.c_int * 4)()
    blocks = int(calculator.resident_blocks(case, each))
    return [*each, blocks]


def ours(found: Occupancy) -> list[int]:
    """Return the same of our calculator, without limits as C has it."""
    most = 2**31 - 1
    return [*(min(blocks, most) for blocks in found.limits.values()), found.blocks]


def drawn(random: Random, sm: Multiprocessor) -> tuple[int, int, int, int]:
    """Return threads, registers, static and dynamic bytes, often at an edge of their units."""
    block = random.choice([random.randint(1, 1040), WARP * random.randint(1, 32)])
    regs = random.choice([random.randint(0, 255), 8 * random.randint(0, 31), 33, 65])
    static = random.choice([0, 0, random.randint(0, 48 * KIB), 128 * random.randint(0, 384)])
    room = max(0, sm.shared_per_block - static)
    dynamic = random.choice(
        [0, random.randint(0, room + 256), 128 * random.randint(0, room // 128)]
    )
    return block, regs, static, dynamic


@pytest.mark.parametrize(
    "sm", MULTIPROCESSORS.values(), ids=lambda sm: "{}.{}".format(*sm.capability)
)
def test_nvidias_calculator_says_the_same(calculator: Any, sm: Multiprocessor) -> None:
    """Each of the four limits, and the blocks, of a thousand drawn kernels."""
    random = Random(sum(sm.capability))
    for _ in range(CASES):
        block = drawn(random, sm)
        assert ours(occupancy(sm, *block)) == limits(calculator, sm, block), block
