"""The GPU device on a GPU: what it copies, refuses and times. Skipped where there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest

from harness.devices import Launch, NoGPU, Routine, TimedDevice, telemetry
from harness.devices.arguments import ArgumentError
from harness.devices.clocks import Clock, ClockError, EventClock
from harness.devices.cuda import CudaDevice, Refused
from harness.devices.guarded import OutOfBounds
from kernels import kernel

ROOT = Path(__file__).parents[3]
SPIN = kernel("../harness/devices/cuda", "spin")
REDUCE = kernel("reduce_ladder", "reduce_v7", BLOCK=256)


@pytest.fixture(scope="module")
def gpu() -> CudaDevice:
    try:
        return CudaDevice()
    except NoGPU as reason:
        pytest.skip(str(reason))


@pytest.fixture(params=["cupti", "events"])
def timer(gpu: CudaDevice, request: pytest.FixtureRequest, monkeypatch: Any) -> CudaDevice:
    """Return the device with each of its clocks in turn."""
    if request.param == "cupti" and gpu.clock != "cupti":
        pytest.skip(gpu.clock_reason)
    if request.param == "events":
        clock: Clock = EventClock(gpu._cupy.cuda, "asked for")
        monkeypatch.setattr(gpu, "_clock", clock)
    return gpu


def spin(gpu: CudaDevice, microseconds: int) -> Launch:
    out = gpu.empty(1, np.uint32)
    return Launch(SPIN, 1, 1, (out, microseconds * 1000), 4, lambda: None)


def test_it_is_a_timed_device(gpu: CudaDevice) -> None:
    device: TimedDevice = gpu
    assert device.architecture.startswith("sm_")
    assert device.multiprocessors > 0
    assert device.clock in {"cupti", "events"}


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4", "u1", "i8"])
@pytest.mark.parametrize("size", [0, 1, 1000])
def test_what_is_put_comes_back(gpu: CudaDevice, dtype: str, size: int) -> None:
    values = np.arange(size).astype(dtype)
    np.testing.assert_array_equal(gpu.get(gpu.put(values)), values)


def test_a_slice_is_a_view(gpu: CudaDevice) -> None:
    array = gpu.put(np.arange(10, dtype=np.float32))
    address = array.__cuda_array_interface__["data"][0]
    assert array[3:7].__cuda_array_interface__["data"][0] == address + 12
    np.testing.assert_array_equal(gpu.get(array[3:7]), np.arange(3, 7, dtype=np.float32))


@pytest.mark.parametrize("size", [0, 1, 1000])
def test_new_memory_is_poisoned(gpu: CudaDevice, size: int) -> None:
    assert np.isnan(gpu.get(gpu.empty(size, np.float32))).all()
    assert (gpu.get(gpu.empty(size, np.uint8)) == 0xA5).all()


def test_a_write_beside_an_array_is_seen(gpu: CudaDevice) -> None:
    x, y = gpu.put(np.ones(1024, np.float32)), gpu.empty(1000, np.float32)
    gpu.verify_canaries()
    gpu.launch(kernel("coalescing", "copy_offset"), 4, 256, x, y, 0)
    with pytest.raises(OutOfBounds, match=r"byte \+1 after float32\[1000\].*argument 'y'"):
        gpu.verify_canaries()
    gpu.verify_canaries()


def test_a_block_of_2048_threads_is_refused_and_the_context_lives_on(gpu: CudaDevice) -> None:
    x, out = gpu.put(np.ones(1024, np.float32)), gpu.put(np.zeros(1, np.float32))
    with pytest.raises(Refused, match=r"reduce_v7\[BLOCK=256\] on 1 x 2048 threads.*at most 1024"):
        gpu.launch(REDUCE, 1, 2048, x, out, 256)
    gpu.launch(REDUCE, 1, 256, x, out, 256)
    assert gpu.get(out)[0] == 1024


def test_dynamic_shared_memory_up_to_the_opt_in_limit(gpu: CudaDevice) -> None:
    launch = spin(gpu, 1)
    gpu.launch(SPIN, 1, 1, *launch.arguments, shared=64 * 1024)
    with pytest.raises(Refused, match=r"1048576 bytes of dynamic shared memory.*bytes$"):
        gpu.launch(SPIN, 1, 1, *launch.arguments, shared=1 << 20)
    assert gpu.get(launch.arguments[0])[0] >= 1000


def test_a_float4_that_is_not_aligned_is_refused_before_the_launch(gpu: CudaDevice) -> None:
    x, out = gpu.put(np.ones(1028, np.float32)), gpu.put(np.zeros(1, np.float32))
    with pytest.raises(ArgumentError, match="not 16-byte aligned"):
        gpu.launch(REDUCE, 1, 256, x[1:1025], out, 256)


def test_the_clock_shows_the_time_a_kernel_is_known_to_take(timer: CudaDevice) -> None:
    """2 ms by the GPU's own timer; begin and end of a kernel cost 1 to 3 us more."""
    launch = spin(timer, 2000)
    seconds = median(timer.seconds(launch) for _ in range(5))
    assert 2e-3 <= seconds <= 2e-3 * 1.05


def test_the_flush_is_not_in_the_sample(timer: CudaDevice) -> None:
    """Reading twice the L2 takes 29 us on an H200; 20 us of spinning stay below 28."""
    launch = spin(timer, 20)
    assert 20e-6 <= median(timer.seconds(launch) for _ in range(9)) <= 28e-6


def test_two_kernels_in_one_sample_are_refused(gpu: CudaDevice) -> None:
    if gpu.clock != "cupti":
        pytest.skip("events cannot tell one kernel from two")
    launch = spin(gpu, 1)

    def twice() -> None:
        launch.on(gpu)
        launch.on(gpu)

    with pytest.raises(ClockError, match="CUPTI recorded spin, spin"):
        gpu._clock.kernel(gpu._flush, twice, "spin")


def test_a_routine_takes_as_long_as_all_its_kernels(timer: CudaDevice) -> None:
    """Twice 1 ms; events also see the gap between the two."""
    launch = spin(timer, 1000)

    def twice() -> None:
        launch.on(timer)
        launch.on(timer)

    routine = Launch(Routine("twice", twice), 0, 0, (), 4, lambda: None)
    seconds = median(timer.seconds(routine) for _ in range(5))
    assert 2e-3 <= seconds <= 2e-3 * 1.05


def test_a_copy_stays_below_the_peak_of_the_memory(timer: CudaDevice) -> None:
    assert 0.6 * timer.peak_bandwidth < timer.copy_bandwidth() < timer.peak_bandwidth


def test_telemetry_speaks_of_this_gpu(gpu: CudaDevice) -> None:
    pytest.importorskip("pynvml")
    state = telemetry.state(gpu.bus_id)
    assert set(state) == set(telemetry.FIELDS)
    assert state["driver"]


def run_apart(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


BROKEN = """
import numpy as np
from harness.devices import Launch
from harness.devices.cuda import CudaDevice, DeadContext
from kernels import kernel
gpu = CudaDevice()
x, y = gpu.put(np.ones(1024, np.float32)), gpu.empty(1024, np.float32)
far = Launch(kernel("coalescing", "copy_offset"), 4, 256, (x, y, 2**30), 0, lambda: None)
for again in range(2):
    try:
        TRY
    except DeadContext as error:
        print(error)
"""


@pytest.mark.parametrize("attempt", ["far.on(gpu); gpu.get(y)", "gpu.seconds(far)"])
@pytest.mark.usefixtures("gpu")
def test_an_illegal_address_ends_the_session(attempt: str) -> None:
    done = run_apart(BROKEN.replace("TRY", attempt))
    first, again = done.stdout.splitlines()
    assert "the GPU's context is dead (cudaError" in first  # which one depends on the address
    assert "the last launch was copy_offset on 4 x 256 threads" in first
    assert again == first


EVERYTHING = """
import numpy as np
from harness.devices.cuda import CudaDevice
from harness.devices import Launch
from kernels import kernel
gpu = CudaDevice()
x, out = gpu.put(np.ones(1024, np.float32)), gpu.empty(1, np.float32)
launch = Launch(kernel("reduce_ladder", "reduce_v7", BLOCK=256), 1, 256, (x, out, 256), 4096, None)
gpu.seconds(launch), gpu.get(out), gpu.copy_bandwidth()
"""


@pytest.mark.usefixtures("gpu")
def test_cupy_compiles_and_caches_nothing(tmp_path: Path) -> None:
    done = run_apart(EVERYTHING, CUPY_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.rglob("*"))


@pytest.mark.usefixtures("gpu")
def test_a_home_that_cannot_be_written_is_no_obstacle() -> None:
    done = run_apart(EVERYTHING, HOME="/proc/none")
    assert done.returncode == 0, done.stderr
