"""Under xdist each worker gets one GPU of those visible, before anything opens CUDA.

At the end the run says which worker had which.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Mapping, MutableMapping
from typing import Any, Final

import pytest

from harness.devices.errors import OutOfMemory
from harness.pytest_claims import RIG
from harness.visible import VARIABLE, known_gpus, placed, visible_gpus

WORKER_BYTES: Final = 4 << 30  # four prepared workloads of half a GiB, the flush, a context
GPU: Final = "gpu"  # what a worker sends home
WORKERS: Final = pytest.StashKey[dict[str, list[str]]]()  # by GPU


def assign(worker: str | None, environment: MutableMapping[str, str] = os.environ) -> str | None:
    """Leave worker "gw<i>" one GPU of the caller's list, the i-th, round and round; return it.

    Without a worker, and where no GPU is known, the environment stays as it is.
    """
    number = re.search(r"\d+$", worker or "")
    names = visible_gpus(environment) if number else []
    if number is None or not names:
        return None
    name = names[int(number[0]) % len(names)]
    environment[VARIABLE] = name
    return name


def most_workers(environment: Mapping[str, str] = os.environ) -> int | None:
    """Return how many workers the memory of the visible GPUs has room for, None if not known.

    There is at least one for each GPU.
    """
    known = dict(known_gpus())
    # A name that NVML does not list is an index, which it may count otherwise: take the smallest.
    least = min((size or 0 for size in known.values()), default=0)
    sizes = [known.get(name, least) or 0 for name in visible_gpus(environment)]
    if not sizes or 0 in sizes:
        return None
    return max(sum(size // WORKER_BYTES for size in sizes), len(sizes))


@pytest.hookimpl(tryfirst=True)  # before anything looks for a GPU
def pytest_configure(config: pytest.Config) -> None:
    """Pin this worker to its GPU."""
    inputs: dict[str, Any] = getattr(config, "workerinput", {})
    if config.getoption("gpu") != "emulate":
        assign(inputs.get("workerid"))


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> Generator[None, int, int]:
    """Let `-n auto` start no more workers than there is GPU memory for."""
    cpus = yield
    most = None if config.getoption("gpu") == "emulate" else most_workers()
    return cpus if most is None else min(cpus, most)


@pytest.hookimpl
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send home which GPU this worker has opened, if it has."""
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    rig = session.config.stash.get(RIG, None)
    if output is not None and rig and (gpu := placed(vars(rig).get("device"))):
        output[GPU] = f"{gpu} ({VARIABLE}={os.environ.get(VARIABLE)})"


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Keep what a worker sent."""
    if gpu := getattr(node, "workeroutput", {}).get(GPU):
        node.config.stash.setdefault(WORKERS, {}).setdefault(gpu, []).append(node.gateway.id)


@pytest.hookimpl
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say which workers had which GPU."""
    for gpu, workers in sorted(config.stash.get(WORKERS, {}).items()):
        names = " ".join(sorted(workers, key=lambda name: (len(name), name)))
        terminalreporter.write_line(f"{gpu}: {names}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Skip, in a worker, what found no memory left: the others hold it, and no kernel is wrong."""
    try:
        return (yield)
    except OutOfMemory as error:
        if hasattr(item.config, "workerinput"):
            pytest.skip(f"{error} (xdist workers share the GPU: pytest -n with fewer)")
        raise
