"""README speaks of what is there: its table has every claim that a test states, and no other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
ROW: Final = re.compile(r"^\| `([a-z0-9]+\.[a-z0-9-]+)` \|", re.MULTILINE)
MARK: Final = re.compile(r'@pytest\.mark\.claim\(\s*"([a-z0-9]+\.[a-z0-9-]+)"')


def test_every_claim_has_a_row_and_every_row_a_test() -> None:
    """`python -m harness.report.readme` renews the table after a run."""
    rows = ROW.findall((ROOT / "README.md").read_text("utf-8"))
    suites = sorted((ROOT / "suites").glob("test_*.py"))
    stated = [id for suite in suites for id in MARK.findall(suite.read_text("utf-8"))]
    assert sorted(rows) == sorted(stated)


def test_every_kernel_file_has_its_suite() -> None:
    """A reader guesses the path: kernels/X.cu, suites/test_X.py."""
    stems = {path.stem for path in (ROOT / "kernels").glob("*.cu")}
    suites = {path.stem.removeprefix("test_") for path in (ROOT / "suites").glob("test_*.py")}
    assert stems <= suites
