"""How fast the emulated device is on one core, alone and against Oclgrind on the same reduction.

Run it with `python -m harness.devices.emulator.speed`. Oclgrind (Debian package `oclgrind`) runs on
one thread and is asked for the sum only; here the counters are on and hazards are watched.
"""

from __future__ import annotations

import re
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np

from harness.devices.emulator import EmulatedDevice
from kernels import kernel

BLOCK: Final = 256
REPEATS: Final = 5

# reduce_v4 with a plain store per block, in OpenCL C.
OPENCL: Final = """
kernel void reduce_v4(global const float* x, global float* out, int n, local float* s)
{
    int tid = get_local_id(0);
    int i = get_global_id(0);

    s[tid] = (i < n) ? x[i] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);

    for (int stride = get_local_size(0) / 2; stride > 0; stride >>= 1) {
        if (tid < stride) s[tid] += s[tid + stride];
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    if (tid == 0) out[get_group_id(0)] = s[0];
}
"""
# Program, kernel, sizes, then the arguments in order; all elements are ones.
SIMULATION: Final = """reduce.cl
reduce_v4
{n} 1 1
{block} 1 1

<size={input_bytes} float fill=1>
<size={output_bytes} float fill=0 dump>
<size=4 int>
{n}
<size={shared_bytes}>
"""


def emulate(n: int, *, store: bool = False) -> tuple[float, int]:
    """Sum n ones by reduce_v4; return the median CPU seconds and the PTX warp instructions."""
    device, blocks = EmulatedDevice(), n // BLOCK
    reduction = kernel("reduce_ladder", "reduce_v4", BLOCK=BLOCK, **({"STORE": 1} if store else {}))
    x, out = device.put(np.ones(n, np.float32)), device.put(np.zeros(blocks, np.float32))
    device.launch(reduction, blocks, BLOCK, x, out, n)  # compiles
    _check(float(device.get(out).sum()), n)
    seconds, issued = [], 0
    for _ in range(REPEATS):
        begin = own_seconds()
        counters = device.count(lambda: device.launch(reduction, blocks, BLOCK, x, out, n))
        seconds.append(own_seconds() - begin)
        issued = counters.warp_instructions
    return median(seconds), issued


def oclgrind(n: int) -> float:
    """Sum n ones by the same reduction under Oclgrind; return the CPU seconds of its process."""
    sizes = {"input_bytes": 4 * n, "output_bytes": 4 * n // BLOCK, "shared_bytes": 4 * BLOCK}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "reduce.cl").write_text(OPENCL)
        Path(folder, "reduce.sim").write_text(SIMULATION.format(n=n, block=BLOCK, **sizes))
        command = ["oclgrind-kernel", "--num-threads", "1", "reduce.sim"]
        begin = children_seconds()
        done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
        seconds = children_seconds() - begin
    _check(sum(map(float, re.findall(r"out\[\d+\] = (\S+)", done.stdout))), n)
    return seconds


def own_seconds() -> float:
    """Return the CPU time of this process."""
    return time.process_time()


def children_seconds() -> float:
    """Return the CPU time of all processes that this one has started and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def nanoseconds_per_element(seconds: Callable[[int], float], n: int) -> float:
    """Return the slope between one block and n elements: start-up and compilation drop out.

    As long as n elements take less than twice as long as one block, n is doubled: a smaller
    difference may be noise, even a negative one.
    """
    start_up = seconds(BLOCK)
    while (whole := seconds(n)) <= 2 * start_up:
        n *= 2
    return (whole - start_up) / (n - BLOCK) * 1e9


def _check(found: float, expected: int) -> None:
    if found != expected:
        raise ArithmeticError(f"{expected} ones summed to {found}")


def main(n: int = 1 << 20, n_oclgrind: int = 1 << 16) -> None:
    """Print the speed and, if Oclgrind is installed, the ratio."""
    seconds, issued = emulate(n)
    print(
        f"reduce_v4, n = {n}, block {BLOCK}, counters on, one core: "
        f"{issued / seconds / 1e6:.1f} million PTX warp instructions/s (median of {REPEATS})"
    )
    if shutil.which("oclgrind-kernel") is None:
        print("no comparison: oclgrind-kernel is not on the PATH (apt-get install oclgrind)")
        return
    here = nanoseconds_per_element(lambda size: emulate(size, store=True)[0], n)
    there = nanoseconds_per_element(oclgrind, n_oclgrind)
    print(
        f"the same with a plain store: {here:.0f} ns an element here, {there:.0f} ns under "
        f"Oclgrind (n from {n_oclgrind} up): {there / here:.0f} times as fast"
    )


if __name__ == "__main__":
    main()
