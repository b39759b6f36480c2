"""A folder as the gate finds it: baselines, a night and build/."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness.gate import __main__ as command


class Folder:
    """Baselines, a night and build/ in a temporary folder."""

    def __init__(self, path: Path) -> None:
        self.path, self.build = path, path / "build"

    def write(self, name: str, content: dict[str, Any] | str) -> Path:
        """Write a recording."""
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content))
        return file

    def gate(self, *options: str) -> int:
        """Judge night.json."""
        places = ("--root", str(self.path / "baselines"), "--out", str(self.build))
        return command.main([str(self.path / "night.json"), *places, *options])

    def found(self) -> dict[str, Any]:
        """Return build/gate.json."""
        document: dict[str, Any] = json.loads((self.build / "gate.json").read_text())
        return document
