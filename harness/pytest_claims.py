"""The claims of a run: which tests state one, what became of it, and the reports at the end.

What a test found travels in the report's user_properties, the one thing that xdist brings home.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, Final

import pytest

from harness import report
from harness.baselines import Baseline, BaselineError
from harness.claims import Claim, Statement, paragraphs, sentence, statement
from harness.devices import Device
from harness.devices.cuda import DeadContext
from harness.report.pictures import drawn
from harness.rig import Rig
from harness.rows import entry, merged, part, stated

RIG: Final = pytest.StashKey[Rig]()
STATEMENT: Final = pytest.StashKey[Statement]()
CLAIM: Final = pytest.StashKey[Claim]()
PHASES: Final = pytest.StashKey[dict[str, pytest.TestReport]]()
PROPERTY: Final = "claim"
COLLECTOR: Final = "claims-collector"


def opened(config: pytest.Config) -> Device:
    """Return the device of the session; what is missing or broken is a usage error."""
    if find_spec("scipy") is None:
        raise pytest.UsageError(
            "SciPy cannot be imported, which judges every ratio: `pip install scipy`, or run "
            "`tox -e claims`"
        )
    try:
        return config.stash[RIG].device
    except RuntimeError as error:  # nothing here, CUDA, the driver and the compiler all say so
        raise pytest.UsageError(str(error)) from None


def chosen(config: pytest.Config) -> Baseline | None:
    """Return the recording to judge from; a name that has none is a usage error."""
    try:
        return config.stash[RIG].recorded
    except BaselineError as error:
        raise pytest.UsageError(str(error)) from None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Read each claim's mark, so that -k knows its id; no two tests may state the same claim."""
    tests: dict[str, str] = {}
    for item in items:
        mark = item.get_closest_marker("claim")
        if mark is None:
            continue
        test = item.nodeid.partition("[")[0]
        try:
            found = statement(*mark.args, **mark.kwargs)
        except (TypeError, ValueError) as error:
            raise pytest.UsageError(f"{test}: {error}") from None
        if tests.setdefault(found.id, test) != test:
            raise pytest.UsageError(
                f"claim {found.id} is stated twice: by {tests[found.id]} and by {test}"
            )
        name = getattr(item, "originalname", item.name)
        why = paragraphs(getattr(item, "obj", None).__doc__ or "")
        item.stash[STATEMENT] = replace(found, finding=sentence(name), why=why)
        item.extra_keyword_matches.add(found.id)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Open the device before the first test, so that what is missing ends the run at once."""
    if not session.config.getoption("collectonly"):
        opened(session.config)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Conclude the claim once its test is through; one without evidence fails."""
    result = yield
    failure = _failure(item)
    if failure:
        pytest.fail(failure, pytrace=False)
    return result


def _failure(item: pytest.Item) -> str:
    if STATEMENT not in item.stash:
        return ""
    if CLAIM not in item.stash:
        return f"{item.stash[STATEMENT].id} brings no evidence: use the claim fixture"
    try:
        item.stash[CLAIM].conclude()
    except AssertionError as error:
        return str(error)
    return ""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach what became of the claim to the last report of its test."""
    phase = yield
    if call.excinfo and isinstance(call.excinfo.value, DeadContext):
        item.session.shouldstop = f"{item.nodeid}: {call.excinfo.value}"
    phases = item.stash.setdefault(PHASES, {})
    phases[phase.when] = phase
    if phase.when == "teardown" and STATEMENT in item.stash:
        found = entry(item.stash[STATEMENT], item.stash.get(CLAIM, None), phases)
        if found and not (_only_benchmarks(item.config) and phases.keys() == {"setup", "teardown"}):
            phase.user_properties.append((PROPERTY, json.dumps(found)))
    return phase


def _only_benchmarks(config: pytest.Config) -> bool:
    return bool(config.getoption("benchmark_only", False))


class Collector:
    """Gathers the claims' entries in the process that reports, from wherever the tests ran."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.entries: list[tuple[tuple[str, int], dict[str, Any]]] = []
        self.deselected = False

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """Note that a case of a claim was left out."""
        self.deselected |= any(STATEMENT in item.stash for item in items)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the entry of a finished test."""
        if report.when == "teardown":
            file, line, _ = report.location
            found = [json.loads(str(v)) for name, v in report.user_properties if name == PROPERTY]
            self.entries += [((file, line or 0), entry) for entry in found]

    @pytest.hookimpl(tryfirst=True)  # before pytest-benchmark, whose regression check may raise
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the table and write build/."""
        if not self.entries:
            return
        rig = self.config.stash[RIG]
        # xdist brings them in any order; the source has the one to read them in
        rows = [row for _, row in sorted(self.entries, key=lambda entry: entry[0])]
        partial = part(rows, stated(self.config.rootpath / "suites"), self._selected())
        pictures = drawn(rig.source.document) if rig.source else {}
        ledger = report.Ledger(rig.described(), merged(rows), partial, pictures)
        problems = report.write(ledger, self.config.rootpath / "build")
        report.show(terminalreporter, ledger, [*dict.fromkeys(rig.problems), *problems])

    def _selected(self) -> bool:
        """Whether cases were left out, by an option or by naming others."""
        return self.deselected or any("::" in each for each in self.config.args)


@pytest.hookimpl
def pytest_configure(config: pytest.Config) -> None:
    """Collect entries unless this process only runs tests for another."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Collector(config), COLLECTOR)
