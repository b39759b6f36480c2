"""Runs within a run: a checkout in a temporary folder, on a fake GPU or without one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from harness.devices import NoGPU, opening
from harness.tests.fakes import FakeGPU, document

ROOT = Path(__file__).parent.parent.parent
CLAIMS = """
import pytest
from harness.tests.fakes import FakeWorkload

SLOW, FAST = FakeWorkload("slow", 1.5e-4), FakeWorkload("fast", 1e-4)

@pytest.mark.claim("reduce.v3-over-v2", "V3 is faster", published="1.92x")
def test_faster(claim):
    claim.counted("loads", 4, 4)
    claim.timed("V2 / V3", SLOW, FAST, at_least=1.3)
"""
LADDER = """
import pytest
from harness.tests.fakes import FakeWorkload

@pytest.mark.parametrize("rung", ["reduce_v1", "reduce_v2"])
def test_the_ladder_is_timed(bench, rung):
    bench(FakeWorkload(rung))
"""
BROKEN = """
import pytest

@pytest.mark.claim("reduce.wrong", "five is four")
def test_wrong(claim):
    claim.counted("loads", 5, 4)
"""


class Emulated(FakeGPU):
    """The emulated device as the harness sees it: no clock."""

    clock = None  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__("emulated sm_90")


class Run:
    """A checkout in a temporary folder, and what a run in it left."""

    def __init__(self, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pytester, self._monkeypatch = pytester, monkeypatch
        for name in ("conftest.py", "tox.ini"):
            shutil.copy(ROOT / name, pytester.path)
        self.write(claims=CLAIMS)

    def write(self, **suites: str) -> None:
        """Write suites/test_<name>.py."""
        (self.pytester.path / "suites").mkdir(exist_ok=True)
        for name, text in suites.items():
            (self.pytester.path / "suites" / f"test_{name}.py").write_text(text)

    def store(self, content: dict[str, Any], name: str = "nvidia-h200/0001_a.json") -> None:
        """Write a baseline."""
        path = self.pytester.path / "baselines" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))

    def on(self, gpu: FakeGPU | None, *options: str) -> pytest.RunResult:
        """Run on this GPU, or on a machine without one."""

        def open_device(wanted: str) -> FakeGPU:
            if wanted == "emulate":
                return Emulated()
            if gpu is None:
                raise NoGPU("no driver here\nsecond line")
            return gpu

        self._monkeypatch.setattr(opening, "open_device", open_device)
        return self.pytester.runpytest_inprocess("-p", "no:cacheprovider", *options)

    def claims(self) -> dict[str, dict[str, Any]]:
        """Return build/claims.json by id."""
        text = (self.pytester.path / "build" / "claims.json").read_text()
        return {claim["id"]: claim for claim in json.loads(text)["claims"]}


def recording(ratio: float = 1.5) -> dict[str, Any]:
    """Return a baseline with pairs for the claim, and both rungs."""
    pairs: dict[str, Any] = {"numerator": "slow", "denominator": "fast", "clock": "cupti"}
    pairs |= {"seconds": [[ratio * 1e-4, 1e-4]] * 20}
    content = document(pairs={"reduce.v3-over-v2": {"V2 / V3": pairs}})
    (bench,) = content["benchmarks"]
    test = "test_the_ladder_is_timed[reduce_v1]"
    bench |= {"name": test, "fullname": f"suites/test_ladder.py::{test}"}
    bench["extra_info"] = {"bytes": 1 << 28, "GB/s": 2684.4}
    return content
