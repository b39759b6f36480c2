"""Whole runs with the real conftest: what becomes of a claim, and what ends a run."""

from __future__ import annotations

import json

import pytest

from harness.tests.fakes import FakeGPU
from harness.tests.rehearsal import BROKEN, CLAIMS, Run

pytest_plugins = ["pytester"]


def test_a_broken_claim_fails_the_run(run: Run) -> None:
    """The others still get their verdict."""
    run.write(broken=BROKEN)
    result = run.on(FakeGPU())
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "reduce.wrong: loads is 5, not 4, on NVIDIA H200" in result.stdout.str()
    verdicts = {name: claim["verdict"] for name, claim in run.claims().items()}
    assert verdicts == {"reduce.wrong": "broken", "reduce.v3-over-v2": "holds"}
    assert "note" not in run.claims()["reduce.wrong"]


def test_an_error_in_a_fixture_breaks_the_claim(run: Run) -> None:
    """The table says what happened."""
    fixture = """
import pytest

@pytest.fixture
def array():
    raise MemoryError("out of memory")

@pytest.mark.claim("reduce.unset", "a sentence")
def test_unset(claim, array):
    claim.counted("loads", 4, 4)
"""
    run.write(claims=fixture)
    result = run.on(FakeGPU())
    result.assert_outcomes(errors=1)
    claim = run.claims()["reduce.unset"]
    assert (claim["verdict"], claim["note"]) == ("broken", "MemoryError: out of memory")


@pytest.mark.parametrize(
    ("body", "verdict", "note"),
    [
        ("pytest.skip('no library')", "undecided", "Skipped: no library"),
        ("assert 1 == 2", "broken", "assert 1 == 2"),
        ("pass", "broken", "a.b brings no evidence: use claim.counted"),
        ("claim.note('so'); claim.counted('x', 1, 1)", "refuted", "so"),
        ("claim.timed('x', W, W, at_least=1)", "undecided", None),
    ],
)
def test_what_becomes_of_a_claim(run: Run, body: str, verdict: str, note: str | None) -> None:
    """One test, one row; only broken fails."""
    head = "import pytest\nfrom harness.tests.fakes import FakeWorkload\nW = FakeWorkload('w')\n"
    mark = "@pytest.mark.claim('a.b', 'says', expects='refuted')\n"
    run.write(claims=f"{head}{mark}def test_it(claim):\n    {body}\n")
    result = run.on(None)
    assert result.ret == (1 if verdict == "broken" else 0)
    claim = run.claims()["a.b"]
    assert claim["verdict"] == verdict
    assert (note or "") in claim.get("note", "")


def test_a_mark_without_the_fixture_is_no_evidence(run: Run) -> None:
    """Passing proves nothing then."""
    run.write(claims="import pytest\n@pytest.mark.claim('a.b', 'says')\ndef test_it(): pass\n")
    assert run.on(None).ret == 1
    assert run.claims()["a.b"]["note"] == "a.b brings no evidence: use the claim fixture"


def test_deselected_claims_are_absent(run: Run) -> None:
    """A report is of what ran."""
    run.write(broken=BROKEN)
    assert run.on(FakeGPU(), "-k", "faster").ret == 0
    assert list(run.claims()) == ["reduce.v3-over-v2"]


CASES = """
import pytest

@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.claim("reduce.cases", "n is n")
def test_cases(claim, n):
    claim.counted("n", n, n)
"""


@pytest.mark.parametrize(
    "options",
    [
        ("-k", "faster"),
        ("suites/test_claims.py",),
        ("suites/test_claims.py::test_faster",),
        ("--deselect", "suites/test_broken.py::test_wrong"),
        ("--deselect", "suites/test_cases.py::test_cases[2]", "suites"),
    ],
)
def test_a_selection_is_a_part_of_the_claims(run: Run, options: tuple[str, ...]) -> None:
    """It replaces the report of all of them, so every form of it says so."""
    run.write(broken=BROKEN, cases=CASES)
    result = run.on(FakeGPU(), *options)
    build = run.pytester.path / "build"
    assert json.loads((build / "claims.json").read_text())["partial"] is True
    says = f"a part of the claims: {len(run.claims())} of this run, 3 are stated"
    assert says in result.stdout.str()
    assert all(says in (build / name).read_text() for name in ("report.html", "claims.md"))


@pytest.mark.parametrize("options", [(), ("suites",), ("-k", "not nothing")])
def test_a_whole_run_is_no_part(run: Run, options: tuple[str, ...]) -> None:
    """Whatever else is named or deselected."""
    run.write(cases=CASES, other="def test_nothing(): pass")
    assert "a part of" not in run.on(FakeGPU(), *options).stdout.str()
    document = json.loads((run.pytester.path / "build" / "claims.json").read_text())
    assert "partial" not in document


def test_a_claim_is_selected_by_the_id_that_is_printed(run: Run) -> None:
    """Nobody has to know what its test is called."""
    run.write(broken=BROKEN, cases=CASES)
    run.on(FakeGPU(), "-k", "reduce.v3-over-v2").assert_outcomes(passed=1, deselected=3)
    assert list(run.claims()) == ["reduce.v3-over-v2"]
    run.on(FakeGPU(), "-k", "reduce.cases or reduce.v3-over-v2").assert_outcomes(
        passed=3, deselected=1
    )


def test_decisive_evidence_is_said_in_the_json(run: Run) -> None:
    """Only where it is set, counted, timed and recorded alike."""
    run.write(
        claims=CLAIMS.replace(
            "4, 4)", "4, 4, decisive=True)\n    claim.counted('x', 1, 1)"
        ).replace("at_least=1.3)", "at_least=1.3, decisive=True)")
    )
    for gpu in (FakeGPU(), None):
        run.on(gpu)
        found = run.claims()["reduce.v3-over-v2"]["evidence"]
        assert [each.get("decisive") for each in found] == [True, None, True]


@pytest.mark.parametrize(
    ("suites", "message"),
    [
        ({"again": CLAIMS}, "claim reduce.v3-over-v2 is stated twice: by suites/test_again.py"),
        ({"bad": BROKEN.replace("reduce.wrong", "Wrong")}, "'Wrong' is not section.name"),
        ({"bad": BROKEN.replace('"five', 'expect="five')}, "unexpected keyword argument"),
    ],
)
def test_marks_are_checked_at_collection(run: Run, suites: dict[str, str], message: str) -> None:
    """A usage error that names the test."""
    run.write(**suites)
    result = run.on(FakeGPU())
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in result.stderr.str()


def test_a_dead_context_ends_the_session(run: Run) -> None:
    """Every later CUDA call would fail: a thousand errors with one cause."""
    dead = """
from harness.devices.cuda import DeadContext

def test_dies():
    raise DeadContext("the GPU's context is dead")

def test_later():
    pass
"""
    run.write(claims=dead)
    result = run.on(FakeGPU())
    result.assert_outcomes(failed=1)
    assert "Interrupted: suites/test_claims.py::test_dies: the GPU's" in result.stdout.str()


def test_ci_does_not_fix_the_inputs(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """With CI=true hypothesis' own profile would give the same inputs every night."""
    monkeypatch.setenv("CI", "true")
    text = """
from hypothesis import settings

def test_profile():
    print(settings().derandomize, settings().deadline, type(settings().database).__name__)
"""
    run.write(claims=text)
    options = ("-s", "--gpu=emulate", "--hypothesis-profile=nightly")
    result = run.pytester.runpytest_subprocess(*options)
    assert "False None DirectoryBasedExampleDatabase" in result.stdout.str()
