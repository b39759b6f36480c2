"""What one run works with: two devices and the recordings, each opened on first use."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

from harness import baselines
from harness.baselines import Baseline
from harness.baselines.shape import CARDS
from harness.devices import Device, NoGPU, TimedDevice, opening
from harness.devices.driver import probe_compiler
from harness.models import peaks
from harness.ratios import Measured, Recorded
from harness.visible import placed, uuid_at
from harness.workbench import Workbench


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


class Rig:
    """The devices and recordings of one session.

    Nothing is opened before it is asked for, so collecting tests needs neither driver nor compiler.
    `timing` is False where nothing may be timed: under xdist, or with --benchmark-disable.
    """

    def __init__(
        self,
        wanted: Literal["auto", "require", "emulate"],
        stored: Path,
        *,
        baseline_gpu: str | None = None,
        timing: bool = True,
    ) -> None:
        self.stored = stored
        self.problems: list[str] = []
        self.not_comparable: dict[str, str] = {}  # benchmarks that were disturbed, and by what
        self.no_gpu = "--gpu=emulate" if wanted == "emulate" else ""
        self._wanted = wanted
        self.baseline_gpu = baseline_gpu
        self._timing = timing

    @cached_property
    def device(self) -> Device:
        """The GPU, or the emulated device; `no_gpu` then says why.

        Raises
        ------
        NoGPU
            A GPU is required and there is none.
        CompilerMissing
            Nothing can be compiled, so neither device can run anything.
        Unusable
            A GPU is there and cannot be opened.
        """
        device = self._opened()
        probe_compiler(device.architecture)
        return device

    def _opened(self) -> Device:
        if self._wanted == "emulate":
            return opening.open_device("emulate")
        try:
            return opening.open_device("require")
        except NoGPU as why:
            if self._wanted == "require":
                raise
            self.no_gpu = str(why)
            return opening.open_device("emulate")

    @cached_property
    def emulator(self) -> Device:
        """The emulated device, wherever the run takes place: it does the counting."""
        return opening.open_device("emulate") if self.timed else self.device

    @property
    def timed(self) -> TimedDevice | None:
        """The device, if it has a clock."""
        return cast(TimedDevice, self.device) if getattr(self.device, "clock", None) else None

    @property
    def times(self) -> bool:
        """Whether this run times kernels itself."""
        return self._timing and self.timed is not None

    @cached_property
    def workbench(self) -> Workbench:
        """Where workloads are prepared and timed; only where `times`."""
        assert self.timed, f"{self.device.name} has no clock"
        return Workbench(self.timed)

    @cached_property
    def ratios(self) -> Measured | Recorded:
        """Live ratios, or recorded ones."""
        return Measured(self.workbench) if self.times else Recorded(self.recorded)

    @cached_property
    def recorded(self) -> Baseline | None:
        """The recording to judge from: --baseline-gpu, else this GPU, else the newest of any."""
        if self.baseline_gpu is not None:
            return baselines.recorded(self.stored, self.problems, self.baseline_gpu)
        own = baselines.newest(self.folder, self.problems, with_pairs=True) if self.folder else None
        return own or baselines.recorded(self.stored, self.problems)

    @property
    def folder(self) -> Path | None:
        """Where the baselines of this GPU are, or would be."""
        return self.stored / baselines.slug(self.device.name) if self.timed else None

    @cached_property
    def baseline(self) -> Baseline | None:
        """The newest baseline of this GPU."""
        return baselines.newest(self.folder, self.problems) if self.folder else None

    @property
    def source(self) -> Baseline | None:
        """The recording that a run is shown with: its GPU's, or that which it is judged from."""
        return self.baseline if self.times else self.recorded

    @property
    def peak(self) -> float | None:
        """The memory's peak in bytes/s, if the device knows it."""
        return getattr(self.timed, "peak_bandwidth", None)

    @property
    def copy_rate(self) -> float | None:
        """What the card's own copy reaches in this session, bytes/s; claims are held against it."""
        return peaks.copy_bandwidth(self.timed) if self.timed else None

    def bandwidths(self) -> dict[str, float]:
        """Return the memory's peak and a copy's bandwidth in GB/s, as far as they are known."""
        known = {"peak GB/s": self.peak, "copy GB/s": self.copy_rate}
        return {name: round(rate / 1e9, 1) for name, rate in known.items() if rate}

    def described(self) -> dict[str, Any]:
        """Return what the reports say of the device: name, clock, telemetry, which recording."""
        source = self.source
        facts: dict[str, Any] = {
            "name": self.device.name,
            "architecture": self.device.architecture,
            "clock": self.timed.clock if self.timed else None,
            "clock_reason": getattr(self.timed, "clock_reason", None),
            "baseline": str(source.path.relative_to(self.stored)) if source else None,
        }
        facts |= {CARDS: self.cards} if self.cards else {}
        return facts | ({"no_gpu": self.no_gpu} if self.no_gpu else {}) | self.telemetry()

    def header(self) -> list[str]:
        """Return the lines on top of a run."""
        facts = self.described()
        name = f"{facts['name']} ({facts['architecture']}, {self.device.multiprocessors} SMs)"
        if self.timed:
            driver = f", driver {facts['driver']}" if facts.get("driver") else ""
            why = f" ({facts['clock_reason']})" if facts.get("clock_reason") else ""
            where = f", {gpu}" if (gpu := placed(self.timed)) else ""
            lines = [f"device: {name}{where}, clock {self.timed.clock}{why}{driver}"]
        else:
            lines = [f"device: {name}: it counts, and has no clock ({_first_line(self.no_gpu)})"]
        lines += [f"baseline: {facts['baseline'] or self._how_to_record()}"]
        return [*lines, *dict.fromkeys(self.problems)]

    def _how_to_record(self) -> str:
        where = f"none for {self.device.name}" if self.timed else "none with pairs"
        return (
            f"{where}; record one on a GPU: `tox -e record`, "
            "then `python -m harness.baselines promote build/baseline.json`"
        )

    @cached_property
    def cards(self) -> list[str]:
        """The UUID of the card, if the driver says it: two of one model differ."""
        bus_id = getattr(self.timed, "bus_id", None)
        card = uuid_at(bus_id) if bus_id else None
        return [card] if card else []

    def telemetry(self) -> dict[str, Any]:
        """Return driver, clocks, power and temperature as they are now; {} without a GPU."""
        if not self.timed:
            return {}
        from harness.devices import telemetry

        return dict(telemetry.state(getattr(self.timed, "bus_id", None)))
