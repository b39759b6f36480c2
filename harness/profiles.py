"""Recorded profiles: what Nsight Compute said of the launches that the suite times and counts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.baselines import ROOT
from harness.devices import Workload


class ProfileError(ValueError):
    """A profile that cannot be read; the message names the file and what to do."""


@dataclass(frozen=True)
class Profile:
    """What profiler.json of one GPU holds: the launches by the name of their workload.

    `compiler` is the NVRTC that made the code, (13, 0); None if the record does not say.
    """

    path: Path
    label: str
    launches: dict[str, dict[str, Any]]
    compiler: tuple[int, int] | None = None

    def counter(self, workload: Workload, metric: str) -> float:
        """Return a hardware counter of one launch.

        Raises
        ------
        ProfileError
            The launch or the counter was not recorded.
        """
        try:
            return float(self.launches[workload.name]["counters"][metric])
        except (KeyError, TypeError, ValueError) as error:
            raise ProfileError(
                f"{self.path} has no counter {metric} of {workload.name} ({error!r}): "
                "record it anew with `python -m harness.profiler` on that GPU"
            ) from error


def stored(root: Path = ROOT) -> list[Profile]:
    """Return every recorded profile.

    Raises
    ------
    ProfileError
        One of them is damaged; the message names it, the file stays as it is.
    """
    return [read(path) for path in sorted(root.glob("*/profiler.json"))]


def read(path: Path) -> Profile:
    """Return the profile recorded in one file.

    Raises
    ------
    ProfileError
        It is damaged.
    """
    try:
        document = json.loads(path.read_text("utf-8"))
        major, minor = document.get("nvrtc") or (0, 0)
        launches = {launch["workload"]: launch for launch in document["launches"]}
        label = f"{document['device']}, {document['date']}, Nsight Compute"
        compiler = (major, minor) if (major, minor) != (0, 0) else None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ProfileError(
            f"{path} is damaged ({error!r}): restore it with git, or record it anew with "
            "`python -m harness.profiler` on that GPU"
        ) from error
    return Profile(path, label, launches, compiler)
