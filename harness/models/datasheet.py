"""What is known of a GPU before anything runs: every hardware figure once, with its source.

Figures are given, everything that follows from them is derived: bandwidth from bus and clock, peaks
from lanes and clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from statistics import median
from typing import Final

from harness.baselines import slug
from harness.devices import TimedDevice

KIB: Final = 1024
WARP: Final = 32  # threads
SMSPS: Final = 4  # an SM, from compute capability 7.0 on; `cuda_occupancy.h`
REGISTERS: Final = 65536  # of 32 bits an SM
REGISTERS_PER_SM: Final = 82  # CUDA's number of that attribute
REGISTER_UNIT: Final = 256  # registers a warp gets at a time
MAX_BLOCK: Final = 1024  # threads

GUIDE: Final = "CUDA C++ Programming Guide, specifications by compute capability"
DATA_SHEET: Final = "NVIDIA's data sheet"
DRIVER: Final = "the driver's device attributes"
CHASE: Final = "pointer chase of RRZE-HPC/gpu-benches, cycles over the boost clock"
BUS: Final = "bus and clock as the driver reports them"


@dataclass(frozen=True)
class Multiprocessor:
    """One SM, as its compute capability fixes it.

    Attributes
    ----------
    warps, blocks
        Resident at most.
    shared, shared_per_block, reserved
        Bytes of shared memory: of the SM, of a block that opts in, and taken by CUDA from each
        block.
    fp32_lanes, fp64_lanes
        Fused multiply-adds a clock; None if unknown.
    """

    capability: tuple[int, int]
    warps: int
    blocks: int
    shared: int
    shared_per_block: int
    reserved: int
    fp32_lanes: int | None
    fp64_lanes: int | None
    source: str = GUIDE

    @property
    def warps_per_smsp(self) -> int:
        """Warps that share one scheduler."""
        return self.warps // SMSPS

    @property
    def shared_unit(self) -> int:
        """Bytes that shared memory is given out in; `cuda_occupancy.h`."""
        return 128 if self.capability >= (8, 0) else 256


def _sm(
    major: int, minor: int, warps: int, blocks: int, shared_kib: int, fp32: int, fp64: int
) -> Multiprocessor:
    """Return a row of the guide: from 8.0 on CUDA takes 1 KiB of each block for itself."""
    reserved = KIB if major >= 8 else 0
    shared = shared_kib * KIB
    return Multiprocessor(
        (major, minor), warps, blocks, shared, shared - reserved, reserved, fp32, fp64
    )


MULTIPROCESSORS: Final = {
    sm.capability: sm
    for sm in (
        _sm(7, 0, 64, 32, 96, 64, 32),
        _sm(7, 5, 32, 16, 64, 64, 2),
        _sm(8, 0, 64, 32, 164, 64, 32),
        _sm(8, 6, 48, 16, 100, 128, 2),
        _sm(8, 9, 48, 24, 100, 128, 2),
        _sm(9, 0, 64, 32, 228, 128, 64),
        _sm(10, 0, 64, 32, 228, 128, 64),
        _sm(12, 0, 48, 24, 100, 128, 2),
    )
}

SOURCES: Final[Mapping[str, str]] = {
    "names": "the driver's device name",
    "sm": GUIDE,
    "multiprocessors": DATA_SHEET,
    "boost_mhz": DATA_SHEET,
    "l2_mb": DATA_SHEET,
    "bus_bits": DATA_SHEET,
    "memory_mhz": DATA_SHEET,
    "dram_ns": CHASE,
    "tensor_tflops": f"{DATA_SHEET}, dense",
    "in_flight_kib": "CUB, tuning_transform.cuh, cc_to_min_bytes_in_flight",
}


@dataclass(frozen=True)
class GPU:
    """One GPU model.

    Attributes
    ----------
    names
        As drivers call it.
    l2_mb, dram_ns
        Size of L2; latency of one load that DRAM answers, nothing else running.
    bus_bits, memory_mhz
        Width and clock of DRAM, two transfers a clock.
    tensor_tflops
        Dense peak of fp16 tensor cores. The data sheets of H100, H200 and B200 rate it below the
        boost clock, so it does not follow from lanes.
    in_flight_kib
        KiB that CUB keeps in flight an SM, at least.
    cited
        Sources of figures that are not from where SOURCES says.
    """

    names: tuple[str, ...]
    sm: Multiprocessor
    multiprocessors: int
    boost_mhz: float
    l2_mb: float
    bus_bits: int
    memory_mhz: float
    dram_ns: float | None = None
    tensor_tflops: float | None = None
    in_flight_kib: int | None = None
    cited: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The first of its names."""
        return self.names[0]

    @property
    def bandwidth(self) -> float:
        """Bytes per second that the memory's pins can move."""
        return self.bus_bits / 8 * 2 * self.memory_mhz * 1e6

    @property
    def dram_latency(self) -> float | None:
        """Seconds of one load that DRAM answers."""
        return self.dram_ns * 1e-9 if self.dram_ns else None

    @property
    def fp32_peak(self) -> float | None:
        """FLOP per second, a fused multiply-add counted as two."""
        return self._peak(self.sm.fp32_lanes)

    @property
    def fp64_peak(self) -> float | None:
        """FLOP per second, a fused multiply-add counted as two."""
        return self._peak(self.sm.fp64_lanes)

    @property
    def tensor_peak(self) -> float | None:
        """FLOP per second of fp16 on tensor cores."""
        return self.tensor_tflops * 1e12 if self.tensor_tflops else None

    def _peak(self, lanes: int | None) -> float | None:
        return self.multiprocessors * lanes * 2 * self.boost_mhz * 1e6 if lanes else None

    def source(self, figure: str) -> str:
        """Return where a field's value comes from."""
        return self.cited.get(figure, SOURCES[figure])


GPUS: Final = (
    GPU(
        ("Tesla V100-SXM2-16GB", "Tesla V100-SXM2-32GB"),
        MULTIPROCESSORS[7, 0],
        *(80, 1530, 6, 4096, 877, 314, 125, 12),
        {"dram_ns": f"{CHASE} of the PCIe card"},
    ),
    GPU(
        ("NVIDIA A100-SXM4-40GB",),
        MULTIPROCESSORS[8, 0],
        *(108, 1410, 40, 5120, 1215, 391, 312, 16),
    ),
    GPU(
        ("NVIDIA A100-SXM4-80GB",),
        MULTIPROCESSORS[8, 0],
        *(108, 1410, 40, 5120, 1593, 391, 312, 16),
    ),
    GPU(
        ("NVIDIA H100 80GB HBM3",),
        MULTIPROCESSORS[9, 0],
        *(132, 1980, 50, 5120, 2619, 354, 989, 32),
    ),
    GPU(
        ("NVIDIA H200",),
        MULTIPROCESSORS[9, 0],
        *(132, 1980, 50, 6016, 3201, 348, 989, 48),
        {"bus_bits": BUS, "memory_mhz": BUS, "dram_ns": f"{CHASE} of the GH200"},
    ),
    GPU(
        ("NVIDIA B200",),
        MULTIPROCESSORS[10, 0],
        *(148, 1965, 126.5, 7680, 3996, 436, 2250, 64),
        {
            "boost_mhz": "openxla, cuda_core_info_table.cc",
            **dict.fromkeys(("multiprocessors", "l2_mb", "bus_bits", "memory_mhz"), BUS),
        },
    ),
    GPU(
        ("NVIDIA GeForce RTX 4090",),
        MULTIPROCESSORS[8, 9],
        *(128, 2520, 72, 384, 10501, 252, 165, 16),
        {"memory_mhz": BUS},
    ),
)
ANY_DRAM_LATENCY: Final = median(gpu.dram_ns * 1e-9 for gpu in GPUS if gpu.dram_ns)


def expected(of: Callable[[GPU], str]) -> str:
    """Return what the figures of each GPU here let expect, as a sentence that is no measurement.

    >>> expected(lambda gpu: "much" if gpu.bandwidth > 7e12 else "less").rpartition("; ")[2]
    'much: NVIDIA B200.'
    """
    groups: dict[str, list[str]] = {}
    for gpu in GPUS:
        groups.setdefault(of(gpu), []).append(gpu.name)
    listed = "; ".join(f"{word}: {', '.join(names)}" for word, names in groups.items())
    return f"Expected by the data sheets, not measured: {listed}."


def of(device_name: str) -> GPU | None:
    """Return the GPU that the driver calls so, or None."""
    wanted = slug(device_name)
    return next((gpu for gpu in GPUS if wanted in map(slug, gpu.names)), None)


def multiprocessor(architecture: str) -> Multiprocessor:
    """Return the SM of an architecture such as "sm_90".

    Raises
    ------
    LookupError
        Its compute capability has no row in MULTIPROCESSORS.
    """
    digits = architecture.removeprefix("sm_").rstrip("af")
    capability = int(digits[:-1]), int(digits[-1])
    if capability not in MULTIPROCESSORS:
        known = ", ".join(f"{major}.{minor}" for major, minor in MULTIPROCESSORS)
        raise LookupError(
            f"nothing is known of the SM of {architecture}, only of {known}: "
            "add its row of the CUDA C++ Programming Guide to MULTIPROCESSORS in "
            "harness/models/datasheet.py"
        )
    return MULTIPROCESSORS[capability]


ATTRIBUTES: Final = {  # CUDA's numbers
    "clock_khz": 13,
    "multiprocessors": 16,
    "memory_khz": 36,
    "bus_bits": 37,
    "l2": 38,
    "threads": 39,
    "major": 75,
    "minor": 76,
    "shared": 81,
    "shared_per_block": 97,
    "blocks": 106,
    "reserved": 111,
}


def from_driver(device: TimedDevice) -> GPU:
    """Return what the driver says of a GPU; figures that it does not give are None."""
    read = {key: device.attribute(number) for key, number in ATTRIBUTES.items()}
    capability = read["major"], read["minor"]
    known = MULTIPROCESSORS.get(capability)
    shared = read["shared"], read["shared_per_block"], read["reserved"]
    lanes = (known.fp32_lanes, known.fp64_lanes) if known else (None, None)
    sm = Multiprocessor(
        capability, read["threads"] // WARP, read["blocks"], *shared, *lanes, source=DRIVER
    )
    figures = dict.fromkeys((each.name for each in fields(GPU)), DRIVER)
    return GPU(
        (device.name,),
        sm,
        read["multiprocessors"],
        read["clock_khz"] / 1e3,
        read["l2"] / 1e6,
        read["bus_bits"],
        read["memory_khz"] / 1e3,
        cited=figures,
    )
