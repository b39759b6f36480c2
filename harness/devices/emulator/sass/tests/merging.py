"""The tempting rule of divergence, to be told from ours: lanes at one place issue together."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from harness.devices.emulator import EmulatedDevice, SassCount
from harness.devices.emulator.sass import machine
from harness.devices.emulator.sass.groups import Groups, Ids
from harness.devices.emulator.threads import DONE, Lanes
from harness.draws import Draw


class Merged(Groups):
    """The lowest program counter runs, with all lanes that stand there; so no barrier is needed."""

    def count(self, lanes: Lanes) -> NDArray[np.int64]:
        """One issue for all lanes of a warp, wherever they come from."""
        issues: NDArray[np.int64] = lanes.any(axis=-1).sum(axis=1)
        return issues

    def next(self) -> tuple[int, Lanes] | None:
        """The others are on their way: they stand at a lower place."""
        lowest = int(self.pc.min())
        return None if lowest == DONE else (lowest, self.pc == lowest)

    def wait(self, barrier: str, lanes: Lanes, after: int) -> None:
        """Nobody waits."""
        self.go(after, lanes)

    def wait_for(self, mask: Ids, lanes: Lanes, after: int) -> None:
        """As at a barrier."""
        self.go(after, lanes)


def split(launch: Draw, architecture: str) -> SassCount:
    """Count a launch by our rule."""
    device = EmulatedDevice(architecture)
    return device.count_sass(launch.kernel, launch.grid, launch.block, *launch.counted)


def merged(launch: Draw, architecture: str) -> SassCount:
    """Count a launch by the other rule."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine, "Groups", Merged)
        return split(launch, architecture)
