"""The fixture for runs within a run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy  # noqa: F401  a run within a run must not be the one to import it
import pytest
import scipy.stats  # noqa: F401
from hypothesis import settings

from harness.tests.rehearsal import ROOT, Run


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """A run within this one; the hypothesis profile of this one is restored."""
    for name in ("PYTEST_XDIST_WORKER", "GITHUB_STEP_SUMMARY", "CLAIMS_BASELINE_GPU"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    profile = settings.get_current_profile_name()
    yield Run(pytester, monkeypatch)
    settings.load_profile(profile)
