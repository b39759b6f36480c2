"""Little's law: what is under way is what arrives a second times how long the way takes.

It holds on an escalator as in a memory.
"""

from __future__ import annotations

from harness.devices import Device
from harness.models.datasheet import ANY_DRAM_LATENCY, GPU, of


def under_way(rate: float, latency: float) -> float:
    """Return how much must be under way for `rate` a second to arrive after `latency` seconds."""
    return rate * latency


def rate(under_way: float, latency: float) -> float:
    """Return what arrives a second if so much is always under way for `latency` seconds each."""
    return under_way / latency


def bytes_needed(gpu: GPU) -> float:
    """Return the bytes a GPU must have in flight for its full bandwidth: bandwidth x latency.

    The latency is that of an idle memory. Under load it is two to four times that, and what is
    needed as much more.

    Raises
    ------
    ValueError
        The GPU's latency is not known.
    """
    if gpu.dram_latency is None:
        raise ValueError(f"the DRAM latency of {gpu.name} is in no table: measure it with Chase")
    return under_way(gpu.bandwidth, gpu.dram_latency)


def dram_latency(device: Device) -> float:
    """Return the published DRAM latency in seconds, for an unknown GPU the median of the known."""
    gpu = of(device.name)
    return gpu.dram_latency if gpu and gpu.dram_latency else ANY_DRAM_LATENCY
