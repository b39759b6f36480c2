"""Stored timings, one folder per GPU model, in pytest-benchmark's own format.

A run never writes here. A baseline is promoted: `python -m harness.baselines promote FILE ...`.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from harness.baselines.shape import complaint, pairs_complaint

ROOT: Final = Path(__file__).parents[2] / "baselines"
PUBLISHED: Final = ROOT / "seminar-a100-80gb" / "0001_published.json"  # no recording of ours
NUMBERED: Final = "[0-9][0-9][0-9][0-9]_*.json"


class BaselineError(ValueError):
    """A baseline that cannot be used; the message names the file and what to do."""


@dataclass(frozen=True)
class Baseline:
    """A baseline file that was read and found sound."""

    path: Path
    document: dict[str, Any]

    @property
    def gpu(self) -> str:
        """The device name, as the driver gives it."""
        return str(self.document["machine_info"]["gpu"])

    @property
    def date(self) -> str:
        """The day it was recorded, ISO 8601; empty if unknown."""
        return str(self.document.get("datetime", ""))[:10]

    @property
    def label(self) -> str:
        """GPU and day, as reports show it."""
        return f"{self.gpu}, {self.date}" if self.date else self.gpu

    @property
    def has_pairs(self) -> bool:
        """Whether claims can be judged from it."""
        return bool(self.document.get("pairs"))

    def pairs(self, claim: str, what: str) -> dict[str, Any] | None:
        """Return what was recorded for a claim: numerator, denominator, clock, pairs of seconds.

        Raises
        ------
        BaselineError
            It is damaged; the message names the file, the claim and the pair.
        """
        ratios = self.document.get("pairs", {}).get(claim, {})
        if not isinstance(ratios, dict):
            raise BaselineError(_damaged(self.path, claim, f"it is {ratios!r:.40}, no object"))
        found: dict[str, Any] | None = ratios.get(what)
        if what in ratios and (wrong := pairs_complaint(found)):
            raise BaselineError(_damaged(self.path, f"{claim}, {what}", wrong))
        return found

    def pairs_of(self, numerator: str, denominator: str) -> dict[str, Any] | None:
        """Return what was recorded of two workloads, by their names, for whichever claim.

        Raises
        ------
        BaselineError
            It is damaged.
        """
        wanted = {"numerator": numerator, "denominator": denominator}.items()
        for claim, ratios in self.document.get("pairs", {}).items():
            for what, entry in ratios.items() if isinstance(ratios, dict) else ():
                if isinstance(entry, dict) and wanted <= entry.items():
                    return self.pairs(claim, what)
        return None

    def check_pairs(self) -> None:
        """Look at every pair.

        Raises
        ------
        BaselineError
            One is damaged.
        """
        for claim, ratios in self.document.get("pairs", {}).items():
            for what in ratios if isinstance(ratios, dict) else ("",):
                self.pairs(claim, what)

    def benchmark(self, fullname: str) -> dict[str, Any] | None:
        """Return the benchmark recorded under a test id."""
        return next((b for b in self.document["benchmarks"] if b["fullname"] == fullname), None)


def slug(gpu: str) -> str:
    """Return the folder name of a GPU.

    >>> slug("NVIDIA H200")
    'nvidia-h200'
    """
    return re.sub(r"[^a-z0-9]+", "-", gpu.lower()).strip("-")


def read(path: Path, made_by: str = "tox -e record") -> Baseline:
    """Read one baseline, or a recording that `made_by` leaves.

    Raises
    ------
    BaselineError
        Missing, truncated, not JSON, holds NaN, or an entry is not what pytest-benchmark writes.
        The file is left as it is.
    """
    try:
        document = json.loads(path.read_text("utf-8"), parse_constant=_refuse_constant)
    except FileNotFoundError:
        raise BaselineError(
            f"{path} cannot be read (it is not there): {_remedy(path, made_by)} first"
        ) from None
    except (ValueError, OSError, RecursionError) as error:
        raise BaselineError(f"{path} cannot be read ({error}): {_remedy(path, made_by)}") from error
    if wrong := complaint(document):
        again = f": {_remedy(path, made_by)}" if wrong.startswith("is damaged (") else ""
        raise BaselineError(f"{path} {wrong}{again}")
    return Baseline(path, document)


def _damaged(path: Path, where: str, wrong: str) -> str:
    return f"{path}: the pairs of {where} are damaged ({wrong}): {_remedy(path)}"


def _remedy(path: Path, made_by: str = "tox -e record") -> str:
    """Return how to get the file back: only what is promoted is under version control."""
    promoted = path.match(NUMBERED)
    return "restore it with `git checkout`" if promoted else f"run `{made_by}` on a GPU"


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"it holds {name}, which is not a time")


def newest(folder: Path, problems: list[str], *, with_pairs: bool = False) -> Baseline | None:
    """Return the last baseline of a GPU folder by name, or None.

    Unreadable files and those of another GPU are skipped and named in `problems`.
    """
    for path in sorted(folder.glob(NUMBERED), reverse=True):
        try:
            baseline = read(path)
        except BaselineError as error:
            problems.append(str(error))
            continue
        if (with_pairs and not baseline.has_pairs) or not baseline.document["benchmarks"]:
            continue
        if slug(baseline.gpu) == folder.name:
            return baseline
        problems.append(f"{path} is of {baseline.gpu}: move it to baselines/{slug(baseline.gpu)}/")
    return None


def recorded(root: Path, problems: list[str], gpu: str | None = None) -> Baseline | None:
    """Return the newest baseline that holds pairs, of the GPU with slug `gpu` or of any.

    Raises
    ------
    BaselineError
        `gpu` is given and has no baseline with pairs.
    """
    found = [newest(folder, problems, with_pairs=True) for folder in _folders(root, gpu)]
    usable = [baseline for baseline in found if baseline]
    if gpu is not None and not usable:
        whole = (each for each in _folders(root) if newest(each, [], with_pairs=True))
        known = ", ".join(folder.name for folder in whole) or "none"
        raise BaselineError(f"no baseline with pairs for {gpu!r} in {root}; there are: {known}")
    return max(
        usable,
        key=lambda baseline: (baseline.document.get("datetime", ""), baseline.path.name),
        default=None,
    )


def _folders(root: Path, gpu: str | None = None) -> list[Path]:
    found = root.glob("*") if gpu is None else [root / gpu]
    return sorted(folder for folder in found if folder.is_dir())


def write_whole(path: Path, text: str) -> None:
    """Write `text` to `path` so that a reader sees all of it or none."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_text(text, "utf-8")
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
