"""README speaks of what is there: its table has every claim that a test states, and no other."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from harness.draws import DIVERGENT, draw
from harness.instructions import NONE_PARTED, Measured, Record, stored
from harness.report import Ledger, readme
from harness.report.effects import effects
from harness.rows import MARK
from harness.tests.fakes import document

ROOT: Final = Path(__file__).parents[2]
ROW: Final = re.compile(r"^\| `([a-z0-9]+\.[a-z0-9-]+)` \|", re.MULTILINE)


def test_every_claim_has_a_row_and_every_row_a_test() -> None:
    """A new claim has no row before somebody renews the table."""
    rows = ROW.findall((ROOT / "README.md").read_text("utf-8"))
    suites = sorted((ROOT / "suites").glob("test_*.py"))
    stated = [id for suite in suites for id in MARK.findall(suite.read_text("utf-8"))]
    differ = sorted(set(rows) ^ set(stated)) or sorted(rows)
    assert sorted(rows) == sorted(stated), (
        f"README.md's table and the suites differ in {', '.join(differ)}: "
        "run `tox -e claims`, then `python -m harness.report.readme`"
    )


def test_what_the_hardware_counted_is_told_as_recorded() -> None:
    """A new record shows only once somebody renews the list."""
    assert readme.executed(stored()) in (ROOT / "README.md").read_text("utf-8"), (
        "README.md and baselines/*/instructions.json differ: "
        "run `tox -e claims`, then `python -m harness.report.readme`"
    )


def test_the_effects_are_told_as_recorded() -> None:
    """A new baseline shows only once somebody renews the table."""
    assert "V2 with a store and a mask: " in effects()
    assert effects() in (ROOT / "README.md").read_text("utf-8"), (
        "README.md and baselines/ differ: "
        "run `tox -e claims`, then `python -m harness.report.readme`"
    )


def test_an_effect_that_lacks_a_time_is_not_told(tmp_path: Path) -> None:
    """Half a comparison says nothing."""
    (tmp_path / "nvidia-h200").mkdir()
    (tmp_path / "nvidia-h200" / "0001_a.json").write_text(json.dumps(document()))
    assert effects(tmp_path) == ""


def test_a_record_is_told_by_what_it_holds() -> None:
    """Drawn launches by their number, those whose lanes part by name; none is hidden."""
    parted = tuple(Measured(each, 10, 10, "") for each in DIVERGENT[:2])
    drawn = (*(Measured(each, 5, 5, "") for each in draw(0, 2)), Measured(draw(0, 1)[0], 5, 6, ""))
    line = readme.executed([Record("a GPU", "sm_90", (13, 0), (*parted, *drawn))])
    assert line == (
        "- a GPU: 2 of 3 launches drawn at random; 2 of 2 whose lanes part: "
        "`nested_loops<<<3, 96>>>()` 10, `break_continue<<<3, 128>>>(12)` 10\n"
    )
    line = readme.executed([Record("a GPU", "sm_90", (13, 0), drawn)])
    assert line == f"- a GPU: 2 of 3 launches drawn at random; {NONE_PARTED}\n"


CLAIM: Final[dict[str, Any]] = {
    **{"id": "a.b", "section": "a", "says": "says", "ours": False, "published": None, "why": ""},
}
FACTS: Final[dict[str, Any]] = {
    "kind": "counted",
    "device": "sm_90",
    "clock": None,
    "interval": None,
}


def checkout(root: Path, **changed: Any) -> None:
    """Write README.md and build/claims.json with one claim."""
    (root / "README.md").write_text(
        "before\n<!-- claims -->\nold\n<!-- /claims -->\nbetween\n"
        "<!-- executed -->\nold\n<!-- /executed -->\nafter\n"
    )
    evidence = [{**FACTS, "what": what, "value": 1, "bound": 1} for what in ("first", "second")]
    row = CLAIM | {"verdict": "holds", "finding": "", "evidence": evidence}
    (root / "build").mkdir()
    (root / "suites").mkdir()
    (root / "suites" / "test_a.py").write_text('@pytest.mark.claim("a.b", "says")\n')
    document = {"schema": 1, "device": {"name": "x"}, "claims": [row]} | changed
    (root / "build" / "claims.json").write_text(json.dumps(document))


def test_the_table_is_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the marks, and nowhere else."""
    monkeypatch.setattr(readme, "ROOT", tmp_path)
    checkout(tmp_path)
    readme.main()
    text = (tmp_path / "README.md").read_text()
    assert text.startswith("before\n<!-- claims -->\n| claim |")
    assert "| `a.b` | says | holds | first = 1 |" in text
    assert f"<!-- /claims -->\nbetween\n<!-- executed -->\n{readme.executed(stored())}" in text
    assert text.endswith("<!-- /executed -->\nafter\n")


def test_what_is_not_recorded_has_no_source_and_what_is_ours_says_so() -> None:
    """A ratio without a recording is no time of any GPU."""
    known = FACTS | {"kind": "recorded", "device": "a GPU, a day", "what": "x / y"}
    known |= {"value": 2.0, "interval": [1.9, 2.1], "bound": [1.1, None]}
    unknown = known | {"device": "no recording", "value": None, "interval": None}
    theirs = CLAIM | {"verdict": "undecided", "finding": "", "evidence": [unknown]}
    ours = theirs | {"id": "a.c", "ours": True, "evidence": [known]}
    table = readme.summary(Ledger({}, [theirs, ours]))
    assert "| `a.b` | says |" in table
    assert "| `a.c` | says (ours) |" in table
    assert table.endswith("\n\nTimes recorded on a GPU, a day.\n")
    assert "Times" not in readme.summary(Ledger({}, [theirs]))


def test_a_part_of_the_claims_does_not_replace_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows of all others would be gone."""
    monkeypatch.setattr(readme, "ROOT", tmp_path)
    checkout(tmp_path, partial=True)
    before = (tmp_path / "README.md").read_text()
    with pytest.raises(SystemExit, match="a part of the claims: run `tox -e claims` without a sel"):
        readme.main()
    (tmp_path / "build" / "claims.json").unlink()
    with pytest.raises(SystemExit, match="is not there: run `tox -e claims` without a selection"):
        readme.main()
    assert (tmp_path / "README.md").read_text() == before


def test_a_claim_that_is_gone_does_not_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is a new one left out: the run is older than the suites."""
    monkeypatch.setattr(readme, "ROOT", tmp_path)
    checkout(tmp_path)
    (tmp_path / "suites" / "test_a.py").write_text('@pytest.mark.claim("a.c", "says")\n')
    with pytest.raises(SystemExit, match=r"other claims than suites/ \(a.b, a.c\): run `tox"):
        readme.main()


def test_every_kernel_file_has_its_suite() -> None:
    """A reader guesses the path: kernels/X.cu, suites/test_X.py."""
    stems = {path.stem for path in (ROOT / "kernels").glob("*.cu")}
    suites = {path.stem.removeprefix("test_") for path in (ROOT / "suites").glob("test_*.py")}
    assert stems <= suites
