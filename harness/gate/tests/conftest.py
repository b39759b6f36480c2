"""The folder that the command's tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.gate.tests.folders import Folder
from harness.gate.tests.nights import night, promoted


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """A promoted baseline and a night like it."""
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    made = Folder(tmp_path)
    made.write("baselines/nvidia-h200/0001_a.json", promoted())
    made.write("night.json", night())
    return made
