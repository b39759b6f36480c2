"""The root of everything pytest: options, hypothesis profiles, which device, the fixtures."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis.database import DirectoryBasedExampleDatabase

from harness import pytest_benchmarks, pytest_claims
from harness.claims import Claim
from harness.devices import Device, Workload
from harness.pytest_claims import CLAIM, RIG, STATEMENT
from harness.rig import Rig

collect_ignore = ["harness/workloads/peer_triton.py"]  # imports Triton, which need not be here
pytest_plugins = ("harness.pytest_workers",)  # xdist asks it before anything is configured

# Under CI=true hypothesis starts from its "ci" profile (the same inputs every night, no database),
# and a profile inherits from the active one unless it names its parent.
_plain = settings(
    settings.get_profile("default"),
    deadline=None,  # a first launch compiles
    print_blob=True,
    derandomize=False,
    # explaining launches a failing kernel a hundred times more
    phases=[phase for phase in Phase if phase is not Phase.explain],
)
settings.register_profile("default", _plain, max_examples=30)
_kept = DirectoryBasedExampleDatabase(
    os.environ.get("HYPOTHESIS_STORAGE_DIRECTORY", ".hypothesis/nightly")
)
settings.register_profile("nightly", _plain, max_examples=100, database=_kept)
settings.register_profile("fuzz", _plain, max_examples=500, database=_kept)
settings.load_profile("default")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the choice of device and of recording."""
    group = parser.getgroup("claims")
    group.addoption(
        "--gpu",
        choices=("auto", "require", "emulate"),
        default="auto",
        help="the GPU if there is one (default); fail without one; or never look for one",
    )
    group.addoption(
        "--baseline-gpu",
        metavar="SLUG",
        default=os.environ.get("CLAIMS_BASELINE_GPU") or None,
        help="judge from the newest recording of baselines/SLUG instead of the newest of any GPU",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Set up the session's rig; only a required GPU is opened here."""
    if not __debug__:
        raise pytest.UsageError(
            "python -O drops every assertion, so nothing would be checked: leave out -O and "
            "PYTHONOPTIMIZE"
        )
    parallel = hasattr(config, "workerinput") or config.getoption("dist", "no") != "no"
    rig = config.stash[RIG] = Rig(
        config.getoption("gpu"),
        config.rootpath / "baselines",
        baseline_gpu=config.getoption("baseline_gpu"),
        timing=not parallel and not config.getoption("benchmark_disable", False),
    )
    if config.getoption("gpu") == "require" and not config.getoption("collectonly"):
        pytest_claims.opened(config)
    if rig.baseline_gpu is not None:
        pytest_claims.chosen(config)
    for plugin in (pytest_claims, pytest_benchmarks):
        config.pluginmanager.register(plugin)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say which device this run is on, and which recording it reads."""
    if config.getoption("collectonly"):
        return []
    pytest_claims.opened(config)
    return config.stash[RIG].header()


@pytest.fixture(scope="session")
def device(pytestconfig: pytest.Config) -> Device:
    """The GPU, or the emulated device if there is none."""
    return pytestconfig.stash[RIG].device


@pytest.fixture(scope="session")
def emulator(pytestconfig: pytest.Config) -> Device:
    """The emulated device, which counts, also where there is a GPU."""
    return pytestconfig.stash[RIG].emulator


@pytest.fixture
def claim(request: pytest.FixtureRequest) -> Claim:
    """The recorder of this test's evidence; the mark says what is claimed."""
    node, rig = request.node, request.config.stash[RIG]
    if STATEMENT not in node.stash:
        pytest.fail(f'{node.nodeid} uses claim without @pytest.mark.claim("section.name", "...")')
    counting = rig.emulator if "emulator" in request.fixturenames else rig.device
    found = node.stash[CLAIM] = Claim(node.stash[STATEMENT], lambda: rig.ratios, counting.name)
    return found


@pytest.fixture
def bench(pytestconfig: pytest.Config, benchmark: Any) -> Callable[[Workload], list[float]]:
    """Time a workload for the table and the baseline: bench(workload) -> seconds.

    It fails on a wrong result, and on a time that no memory can do.
    """
    return lambda workload: pytest_benchmarks.time_workload(
        pytestconfig.stash[RIG], benchmark, workload
    )
