"""The files that pytest-benchmark reads before a run and writes after it, looked at beforehand.

It reads them without a look and writes them after the last test: either way its error would end the
run, and take the table of claims with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.baselines import NUMBERED, BaselineError, read
from harness.baselines.shape import table_complaint
from harness.rig import Rig

INSTEAD = "record with --benchmark-json=build/baseline.json, then promote instead"


def choose(config: pytest.Config, rig: Rig) -> bool:
    """Let a bare --benchmark-compare read the newest whole baseline; False if there is none."""
    if config.getoption("benchmark_compare") is not True:
        return True
    found = rig.baseline
    wrong = table_complaint(found.document) if found else ""
    if found and wrong:
        rig.problems.append(f"{found.path} is not compared ({wrong}): promote a recording again")
    if not found or wrong:
        return False
    config.option.benchmark_compare = str(found.path.resolve())
    return True


def refuse_damaged(config: pytest.Config) -> None:
    """End the run if a file that it is to compare with is damaged."""
    for path in _compared(config):
        try:
            wrong = table_complaint(read(path).document)
        except BaselineError as error:
            raise pytest.UsageError(f"cannot compare: {error}") from None
        if wrong:
            raise pytest.UsageError(f"cannot compare: {path} is not pytest-benchmark's ({wrong})")


def _compared(config: pytest.Config) -> list[Path]:
    chosen: str | bool | None = config.getoption("benchmark_compare")
    if not chosen:
        return []
    if isinstance(chosen, str) and (Path(chosen).is_dir() or Path(chosen).suffix == ".py"):
        raise pytest.UsageError(
            f"cannot compare with {chosen}: --benchmark-compare takes a path that follows it for a "
            "recording, so put the option last"
        )
    if isinstance(chosen, str) and Path(chosen).is_file():
        return [Path(chosen)]
    folder = _storage(config)
    name = f"{Path(chosen).name.rstrip('*')}*.json" if isinstance(chosen, str) else NUMBERED
    return sorted(folder.rglob(name)) if folder else []


def prepare_targets(config: pytest.Config) -> None:
    """Make the folders that will be written to, and remove the JSON file of the run before.

    A run that measures nothing must not leave it.
    """
    json: str | None = config.getoption("benchmark_json")
    if json:
        _refuse_baselines(config, "--benchmark-json", Path(json))
        with _writable(f"--benchmark-json={json}"):
            Path(json).parent.mkdir(parents=True, exist_ok=True)
            Path(json).touch()
            Path(json).unlink()
    storage = _storage(config)
    for name in ("save", "autosave"):
        if config.getoption(f"benchmark_{name}") and storage:
            _refuse_baselines(config, f"--benchmark-{name}", storage)
            with _writable(f"--benchmark-{name}"):
                storage.mkdir(parents=True, exist_ok=True)


@contextmanager
def _writable(option: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise pytest.UsageError(
            f"{option} cannot be written ({error}): name a place that can"
        ) from None


def _refuse_baselines(config: pytest.Config, option: str, target: Path) -> None:
    if target.resolve().is_relative_to((config.rootpath / "baselines").resolve()):
        raise pytest.UsageError(
            f"{option} would write to {target}, and a run never writes a baseline: {INSTEAD}"
        )


def _storage(config: pytest.Config) -> Path | None:
    """Return the folder of pytest-benchmark's storage, None if it is no folder."""
    where: str = config.getoption("benchmark_storage")
    return None if where.startswith("elasticsearch+") else Path(where.removeprefix("file://"))
