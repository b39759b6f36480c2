"""What a launch on the emulated device promises, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from harness.devices import Device, Launch
from harness.devices.arguments import ArgumentError
from harness.devices.emulator import Counters, EmulatedDevice, Fault, Unsupported
from harness.devices.emulator.tests.ptx_text import architectures
from harness.workloads.atomics import AtomicAlone
from kernels import Kernel, kernel

SOURCE = """
extern "C" __global__ void scale(const float* x, float* y, float a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i];
}

extern "C" __global__ void scale_double(const double* x, double* y, double a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void reverse_dynamic(const float* x, float* y)
{
    extern __shared__ float s[];
    __shared__ float offset;
    if (threadIdx.x == 0) offset = 1.0f;
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x] + offset;
}

struct Record {
    int key;
    alignas(8) float value;
};

extern "C" __global__ void values_of(const Record* records, float* y)
{
    y[threadIdx.x] = records[threadIdx.x].value;
}

extern "C" __global__ void add_reversed(const signed char* x, unsigned short* y)
{
    __shared__ unsigned char s[128];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = s[127 - threadIdx.x] + x[threadIdx.x] * 3;
}

extern "C" __global__ void write_then_exp(float* y)
{
    float before = y[threadIdx.x];
    y[threadIdx.x] = 1.0f;
    y[threadIdx.x] += __expf(before);
}

extern "C" __global__ void atomic_largest(unsigned* best, const float* x)
{
    unsigned old = *best, seen;
    float mine = x[threadIdx.x];
    do {
        seen = old;
        if (!(mine > __uint_as_float(seen))) break;
        old = atomicCAS(best, seen, __float_as_uint(mine));
    } while (old != seen);
}

extern "C" __global__ void count_odd(int* total, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && (i & 1)) {
        unsigned mask = __activemask();
        if ((threadIdx.x & 31) == __ffs(mask) - 1) atomicAdd(total, __popc(mask));
    }
}

extern "C" __global__ void chase(const int* next, int* out, int steps)
{
    int j = threadIdx.x;
    for (int k = 0; k < steps; k++) j = next[j];
    out[threadIdx.x] = j;
}
"""


@pytest.fixture
def cuda(tmp_path: Path) -> Callable[[str], Kernel]:
    """Return a kernel of SOURCE by name."""
    (tmp_path / "source.cu").write_text(SOURCE)
    return lambda name: Kernel(str(tmp_path / "source"), name)


def ladder(device: EmulatedDevice, rung: str, n: int, block: int = 64) -> tuple[bytes, Counters]:
    """Return the bits of a rung's sum, and its counters."""
    width = 4 if rung in ("v7", "v5_float4") else 1
    x = np.random.default_rng(n).random(n, dtype=np.float32)
    array, out = device.put(x), device.put(np.zeros(1, np.float32))
    launched = kernel("reduce_ladder", f"reduce_{rung}", BLOCK=block)
    grid = -(-n // (width * block))
    counters = device.count(lambda: device.launch(launched, grid, block, array, out, n // width))
    return device.get(out).tobytes(), counters


@pytest.mark.parametrize("rung", ["v1", "v2", "v3", "v4", "v5", "v5_float4", "v6", "v7"])
def test_two_runs_give_the_same_bits_and_counts(rung: str) -> None:
    assert ladder(EmulatedDevice(), rung, 3000) == ladder(EmulatedDevice(), rung, 3000)


@pytest.mark.parametrize("rung", ["v1", "v4", "v6", "v7"])
def test_a_launch_in_batches_is_the_same_launch(rung: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One block at a time, five at a time, all at once: the same sum, to the bit, and counts."""
    sum_, counters = ladder(EmulatedDevice(), rung, 3000)
    for lanes in (1, 5 * 64):
        monkeypatch.setattr("harness.devices.emulator.LANES_AT_ONCE", lanes)
        batched, others = ladder(EmulatedDevice(), rung, 3000)
        assert batched == sum_
        assert others.opcodes == counters.opcodes
        assert others.lane_instructions == counters.lane_instructions
        assert list(others.atomics.values()) == list(counters.atomics.values())
        for opcode, space in (("ld", "global"), ("ld", "shared"), ("st", "shared")):
            assert others.traffic(opcode, space) == counters.traffic(opcode, space)


def test_every_architecture_gives_the_same_sums() -> None:
    for rung in ("v2", "v4", "v6", "v7"):
        sums = {ladder(EmulatedDevice(name), rung, 3000)[0] for name in architectures()}
        assert len(sums) == 1


def test_every_architecture_addresses_bytes_alike(cuda: Callable[[str], Kernel]) -> None:
    x = np.arange(-64, 64, dtype=np.int8)
    expected = (x[::-1].astype(np.uint8) + 3 * x.astype(int)).astype(np.uint16)
    for name in architectures():
        device = EmulatedDevice(name)
        y = device.empty(128, np.uint16)
        device.launch(cuda("add_reversed"), 1, 128, device.put(x), y)
        assert (device.get(y) == expected).all()


def test_only_what_runs_inside_count_is_counted(cuda: Callable[[str], Kernel]) -> None:
    device = EmulatedDevice()
    x, y = device.put(np.ones(64, np.float32)), device.empty(64, np.float32)

    def run() -> None:
        device.launch(cuda("scale"), 2, 32, x, y, np.float32(2), 64)

    run()
    once = device.count(run)

    def run_twice() -> None:
        run()
        run()

    assert once.traffic("ld", "global").requests == 2
    assert device.count(run_twice).warp_instructions == 2 * once.warp_instructions
    with pytest.raises(ZeroDivisionError):
        device.count(lambda: 1 // 0)
    assert device.count(lambda: None) == Counters()


@pytest.mark.parametrize("n", [1, 31, 32, 33, 511, 512, 513, 1000])
def test_the_last_block_may_be_incomplete(cuda: Callable[[str], Kernel], n: int) -> None:
    device = EmulatedDevice()
    values = np.arange(n, dtype=np.float64)
    x, y = device.put(values), device.put(values)
    device.launch(cuda("scale_double"), -(-n // 512), 512, x, y, np.float64(0.1), n)
    expected = [float(Fraction(0.1) * Fraction(v) + Fraction(v)) for v in values.tolist()]
    assert device.get(y).tolist() == expected


def test_dynamic_shared_memory_follows_the_static(cuda: Callable[[str], Kernel]) -> None:
    device = EmulatedDevice()
    x, y = device.put(np.arange(64, dtype=np.float32)), device.empty(64, np.float32)
    device.launch(cuda("reverse_dynamic"), 1, 64, x, y, shared=256)
    assert device.get(y).tolist() == [float(64 - i) for i in range(64)]
    with pytest.raises(
        Fault, match=r"outside the block's \d+ bytes of shared memory \(block 0, thr"
    ):
        device.launch(cuda("reverse_dynamic"), 1, 64, x, y, shared=252)


@pytest.mark.parametrize("position", [0, 31, 63])
def test_a_compare_and_swap_loop_ends_on_nan(cuda: Callable[[str], Kernel], position: int) -> None:
    device = EmulatedDevice()
    values = np.arange(64, dtype=np.float32)
    values[position] = np.nan
    for first in (0.0, np.nan):
        best = device.put(np.array([first], np.float32).view(np.uint32))
        device.launch(cuda("atomic_largest"), 1, 64, best, device.put(values))
        found = device.get(best).view(np.float32)[0]
        assert np.isnan(found) if np.isnan(first) else found == np.nanmax(values)


def test_the_lanes_that_run_together_may_add_as_one(cuda: Callable[[str], Kernel]) -> None:
    device = EmulatedDevice()
    total = device.put(np.zeros(1, np.int32))
    device.launch(cuda("count_odd"), 40, 256, total, 10_000)
    assert device.get(total).tolist() == [5000]


def test_a_record_is_read_with_its_padding(cuda: Callable[[str], Kernel]) -> None:
    """The compiler's layout: value at byte 8 of 16."""
    layout = np.dtype({"names": ["key", "value"], "formats": ["<i4", "<f4"], "offsets": [0, 8],
                       "itemsize": 16})  # fmt: skip
    records = np.zeros(32, layout)
    records["key"], records["value"] = 10, np.arange(32)
    device = EmulatedDevice()
    y = device.empty(32, np.float32)
    device.launch(cuda("values_of"), 1, 32, device.put(records), y)
    assert device.get(y).tolist() == [*range(32)]


def test_a_chain_of_pointers_is_followed(cuda: Callable[[str], Kernel]) -> None:
    device = EmulatedDevice()
    after = np.random.default_rng(0).permutation(64).astype(np.int32)
    out = device.empty(64, np.int32)
    device.launch(cuda("chase"), 1, 64, device.put(after), out, 10)
    place = after[np.arange(64)]
    for _ in range(9):
        place = after[place]
    assert device.get(out).tolist() == place.tolist()


def test_an_unknown_instruction_is_refused_before_memory_changes(
    cuda: Callable[[str], Kernel],
) -> None:
    device = EmulatedDevice()
    y = device.put(np.zeros(32, np.float32))
    with pytest.raises(
        Unsupported, match=r"does not know `ex2\.approx\.ftz\.f32|`ex2\.approx\.f32"
    ):
        device.launch(cuda("write_then_exp"), 1, 32, y)
    assert not device.get(y).any()


def test_wrong_arguments_are_refused_by_name(cuda: Callable[[str], Kernel]) -> None:
    device = EmulatedDevice()
    x = device.put(np.zeros(4, np.float32))
    with pytest.raises(ArgumentError, match="argument 'a' of scale is a Python float"):
        device.launch(cuda("scale"), 1, 32, x, x, 2.0, 4)
    with pytest.raises(ArgumentError, match=r"scale takes .* got 3 arguments"):
        device.launch(cuda("scale"), 1, 32, x, x, np.float32(2))


class Wrong:
    """One block's atomic, whose result a check finds wrong."""

    name = "wrong"

    def prepare(self, device: Device) -> Launch:
        def check() -> None:
            raise AssertionError("the result is wrong")

        return replace(AtomicAlone(1).prepare(device), check=check)


def test_a_workload_is_counted_once_it_is_right() -> None:
    """What its check launches is not counted; of a wrong one nothing is."""
    counters = EmulatedDevice().count_checked(AtomicAlone(5))
    assert list(counters.atomics.values()) == [5]
    with pytest.raises(AssertionError, match="the result is wrong"):
        EmulatedDevice().count_checked(Wrong())
