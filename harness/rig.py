"""What one run works with: the device, the emulated device, the recordings; each opened on first use."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

from harness import baselines, devices
from harness.baselines import Baseline, BaselineError
from harness.devices import Device, NoGPU, TimedDevice
from harness.ratios import Measured, Recorded
from harness.workbench import Workbench


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
        self.no_gpu = "--gpu=emulate" if wanted == "emulate" else ""
        self._wanted = wanted
        self._baseline_gpu = baseline_gpu
        self._timing = timing

    @cached_property
    def device(self) -> Device:
        """The GPU, or the emulated device; `no_gpu` then says why.

        Raises
        ------
        NoGPU
            A GPU is required and there is none.
        """
        if self._wanted == "emulate":
            return devices.open_device("emulate")
        try:
            return devices.open_device("require")
        except NoGPU as why:
            if self._wanted == "require":
                raise
            self.no_gpu = str(why)
            return devices.open_device("emulate")

    @cached_property
    def emulator(self) -> Device:
        """The emulated device, wherever the run takes place: it does the counting."""
        return devices.open_device("emulate") if self.timed else self.device

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
        """The recording to judge from: of --baseline-gpu, else of this GPU, else the newest of any."""
        if self._baseline_gpu:
            return baselines.recorded(self.stored, self.problems, self._baseline_gpu)
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

    def described(self) -> dict[str, Any]:
        """Return what the reports say of the device: name, clock, telemetry, which recording."""
        source = self.baseline if self.times else self.recorded
        facts: dict[str, Any] = {
            "name": self.device.name,
            "architecture": self.device.architecture,
            "clock": self.timed.clock if self.timed else None,
            "baseline": str(source.path.relative_to(self.stored)) if source else None,
        }
        return facts | ({"no_gpu": self.no_gpu} if self.no_gpu else {}) | self.telemetry()

    def telemetry(self) -> dict[str, Any]:
        """Return driver, clocks, power and temperature as the driver reports them now; {} without a GPU."""
        if not self.timed:
            return {}
        from harness.devices import telemetry

        return dict(telemetry.state())


__all__ = ["BaselineError", "Rig"]
