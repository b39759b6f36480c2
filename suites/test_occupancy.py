"""Occupancy: how many warps an SM holds, what limits them, and what they are good for."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.baselines import slug
from harness.devices import Device
from harness.models import datasheet
from harness.models.counting import compiled_occupancy, shared_per_block
from harness.models.datasheet import GPUS, KIB, MULTIPROCESSORS, REGISTERS, SMSPS, expected, of
from harness.models.occupancy import occupancy, rounded_up
from harness.workloads.little import Read
from kernels import Kernel, kernel

EIGHTHS: Final = (1, 2, 4, 8)  # of the 64 warps an SM holds
MLPS: Final = (1, 2, 4, 8)  # loads of a thread before the first use
DRAWN: Final = 2000


@dataclass(frozen=True)
class Hold:
    """The kernel that takes `values` registers and more a thread, and `shared` bytes a block."""

    values: int
    shared: int = 4096

    @property
    def kernel(self) -> Kernel:
        """The compiled entry."""
        return kernel("occupancy", "hold", VALUES=self.values, SHARED=self.shared)

    def check(self, device: Device, grid: int, block: int) -> None:
        """Hash random words on the device, and hold the result against the same in NumPy."""
        x = np.random.default_rng(block).integers(0, 2**32, (self.values, grid, block), np.uint32)
        y = device.empty(grid * block, np.uint32)
        device.launch(self.kernel, grid, block, device.put(x.reshape(-1)), y)
        hashed = np.zeros((grid, block), np.uint32)
        for words in (*x, *x[::-1]):
            hashed = np.uint32(31) * hashed + words
        np.testing.assert_array_equal(device.get(y), hashed[:, ::-1].reshape(-1))


HOLDS: Final = (
    *(Hold(values) for values in (8, 16, 32, 48, 64, 96, 128, 168, 200, 232)),
    *(Hold(8, shared) for shared in (10_000, 20_480, 49_152)),
    Hold(64, 16_384),
)

FEWER_WARPS: Final = {
    slug(name): "refuted" for gpu in GPUS if gpu.sm.warps_per_smsp < 16 for name in gpu.names
}


@pytest.mark.claim(
    "occupancy.limits",
    "an SM has 4 SMSPs of 16 warps, 65,536 registers, and 164 (A100) or 228 KB (H100, B200) "
    "of shared memory",
    expects={"default": "holds", **FEWER_WARPS},
)
def test_an_sm_has_room_for_so_much(claim: Any, device: Any) -> None:
    """By compute capability: 16 warps an SMSP are 12 on 8.6, 8.9 and 12.0, and 8 on 7.5.

    The shared memory is that of an SM; CUDA keeps 1 KiB of it from every block.
    """
    guide = "the programming guide"
    claim.counted("SMSPs, registers", [SMSPS, REGISTERS], [4, 65536], guide)
    sixteen = [
        f"{major}.{minor}"
        for (major, minor), sm in MULTIPROCESSORS.items()
        if sm.warps_per_smsp == 16
    ]
    claim.counted("16 warps an SMSP on", sixteen, ["7.0", "8.0", "9.0", "10.0"], guide)
    claim.note(expected(lambda gpu: "holds" if gpu.sm.warps_per_smsp == 16 else "refuted"))
    for name, kib in (("NVIDIA A100-SXM4-80GB", 164), ("NVIDIA H200", 228), ("NVIDIA B200", 228)):
        gpu = of(name)
        assert gpu
        sizes = [gpu.sm.shared // KIB, gpu.sm.shared_per_block // KIB]
        claim.counted(f"KiB of shared memory, SM and block, {name}", sizes, [kib, kib - 1], guide)
    if getattr(device, "clock", None):
        said = datasheet.from_driver(device).sm
        known = datasheet.multiprocessor(device.architecture)
        registers = device.attribute(datasheet.REGISTERS_PER_SM)
        claim.counted("registers, driver and table", registers, REGISTERS, device.name)
        for figure in ("warps", "blocks", "shared", "shared_per_block", "reserved"):
            value, row = getattr(said, figure), getattr(known, figure)
            claim.counted(f"{figure}, driver and table", value, row, device.name)


KNOWN: Final = {  # blocks an SM by registers a thread; 8.0, 1 KiB of static shared memory
    32: [21, 16, 8, 4, 2],
    33: [16, 12, 6, 3, 1],
    64: [10, 8, 4, 2, 1],
    96: [6, 5, 2, 1, 0],
    168: [4, 3, 1, 0, 0],
    255: [2, 2, 1, 0, 0],
}


HELD: Final = {  # blocks of 256 threads an SM, 9.0, by what limits them
    "warps": (Hold(8), 8),
    "registers": (Hold(64), 3),
    "shared memory": (Hold(8, 49_152), 4),
}


@pytest.mark.claim("occupancy.calculator", "registers and shared memory limit the occupancy")
def test_the_least_of_four_limits_is_what_the_driver_says(claim: Any, device: Any) -> None:
    """An SMSP gives out registers in units of 256 a warp, an SM its memory in units of 128."""

    @given(warps=st.integers(1, 32), registers=st.integers(1, 64), shared=st.integers(0, 227 * KIB))
    def the_least_of_four(warps: int, registers: int, shared: int) -> None:
        by_registers = 4 * (16384 // rounded_up(32 * registers, 256)) // warps
        by_shared = 228 * KIB // rounded_up(shared + KIB, 128)
        found = occupancy(MULTIPROCESSORS[9, 0], 32 * warps, registers, shared)
        assert found.blocks == min(64 // warps, 32, by_registers, by_shared)

    the_least_of_four()
    sizes = (96, 128, 256, 512, 1024)
    for registers, blocks in KNOWN.items():
        found = [occupancy(MULTIPROCESSORS[8, 0], size, registers, KIB).blocks for size in sizes]
        what = f"blocks of {' '.join(map(str, sizes))} threads, {registers} registers, 8.0"
        claim.counted(what, found, blocks, "cuda_occupancy.h")
    held = [compiled_occupancy(hold.kernel, 256, "sm_90") for hold, _ in HELD.values()]
    found, fit = [each.blocks for each in held], [blocks for _, blocks in HELD.values()]
    what = f"blocks of 256 threads on an SM, limited by {', '.join(HELD)}"
    claim.counted(what, found, fit, "sm_90", decisive=True)
    limited = [limiter in each.limiters for limiter, each in zip(HELD, held, strict=True)]
    claim.counted("that is what limits them", limited, [True] * len(HELD), "sm_90")
    if getattr(device, "clock", None):
        what = f"{DRAWN} drawn blocks, as many resident as the driver says"
        claim.counted(what, blocks_that_agree(device) >= DRAWN, True, device.name)


def blocks_that_agree(gpu: Any) -> int:
    """Ask the driver about drawn threads, registers and shared memory; return how often."""
    limit = datasheet.multiprocessor(gpu.architecture).shared_per_block
    agreed = []

    @settings(max_examples=DRAWN)
    @given(
        hold=st.sampled_from(HOLDS),
        block=st.integers(1, 1024) | st.integers(1, 32).map(lambda warps: 32 * warps),
        share=st.floats(0, 1),
    )
    def equal(hold: Hold, block: int, share: float) -> None:
        dynamic = int(share**3 * (limit - hold.shared))
        found = compiled_occupancy(hold.kernel, block, gpu.architecture, dynamic)
        said = gpu.resident_blocks(hold.kernel, block, dynamic)
        assert found.blocks == said, f"{found}, the driver says {said}"
        agreed.append(found)

    equal()
    return len(agreed)


@pytest.mark.claim(
    "occupancy.bandwidth-grows",
    "bandwidth rises with occupancy and with memory-level parallelism",
)
def test_bandwidth_rises_with_warps_and_with_loads_of_each(claim: Any, emulator: Any) -> None:
    """Bytes in flight = 4 bytes x loads of a thread x threads: both multiply it.

    Where one is short the other makes up for it; where there is enough of both neither matters.
    On a GPU that needs 2 KiB an SM (RTX 4090) 1/8 of the warps and 2 loads are already enough.
    """
    table = [
        [Read(mlp, eighths).bytes_in_flight(emulator.architecture) // KIB for mlp in MLPS]
        for eighths in EIGHTHS
    ]
    model = [[mlp * eighths for mlp in MLPS] for eighths in EIGHTHS]
    claim.counted("KiB in flight an SM, occupancy 1/8 2/8 4/8 8/8 x MLP 1 2 4 8", table, model)
    for mlp in MLPS:
        for low, high in pairwise(EIGHTHS):
            what = f"MLP {mlp}: occupancy {high}/8 over {low}/8"
            claim.timed(what, Read(mlp, low), Read(mlp, high), at_least=0.97)
    for eighths in EIGHTHS:
        for few, many in pairwise(MLPS):
            what = f"occupancy {eighths}/8: MLP {many} over {few}"
            claim.timed(what, Read(few, eighths), Read(many, eighths), at_least=0.97)
    for what, more in (
        ("MLP 1: occupancy 8/8 over 1/8", Read(1, 8)),
        ("occupancy 1/8: MLP 8 over 1", Read(8, 1)),
    ):
        claim.timed(what, Read(1, 1), more, at_least=4, decisive=True)


@given(
    hold=st.sampled_from([Hold(8), Hold(32), Hold(64, 16_384)]),
    grid=st.integers(1, 3),
    block=st.integers(1, 300),
)
def test_every_value_is_hashed_whatever_it_costs(
    device: Device, hold: Hold, grid: int, block: int
) -> None:
    """A kernel whose values were dropped would need fewer registers."""
    hold.check(device, grid, block)


@given(
    hold=st.sampled_from([Hold(8), Hold(32), Hold(64, 16_384)]),
    grid=st.integers(1, 3),
    block=st.integers(1, 300),
)
def test_a_value_is_loaded_once_and_a_hash_stored_once(
    emulator: Any, hold: Hold, grid: int, block: int
) -> None:
    """A request for each value of a warp; `shared` bytes and no more are taken of the SM."""
    counters = emulator.count(lambda: hold.check(emulator, grid, block))
    warps = grid * -(-block // 32)
    found = [counters.traffic(opcode, "global").requests for opcode in ("ld", "st")]
    assert found == [hold.values * warps, warps]
    assert shared_per_block(hold.kernel, emulator.architecture) == hold.shared
