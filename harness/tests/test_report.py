"""The four reports say the same, fit their medium, and never crash a run."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

from harness import report
from harness.evidence import Evidence
from harness.report import Ledger, show
from harness.report.ledger import finding, ranked, source
from harness.report.markdown import SHOWN, markdown
from harness.report.page import page
from harness.rows import merged
from harness.spelling import duration

WIDTH = 100


def evidence(kind: str, what: str, value: Any, bound: Any, **changed: Any) -> dict[str, Any]:
    """Return one piece as in build/claims.json."""
    clock = None if kind == "counted" else "cupti"
    piece = {"kind": kind, "device": "NVIDIA H200", "clock": clock, "what": what}
    return piece | {"value": value, "bound": bound, "interval": None} | changed


def row(id: str, verdict: str, *pieces: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """Return one claim as in build/claims.json."""
    claim: dict[str, Any] = {
        "id": id,
        "section": id.partition(".")[0],
        "says": "a | b <c> & d",
        "published": "8x",
    }
    claim |= {"ours": False, "finding": f"What is right of {id}", "why": "In short.\nAt length."}
    return claim | {"verdict": verdict, "evidence": list(pieces)} | changed


SECTORS = evidence("counted", "load sectors, AoS / SoA", 8, 8, device="emulated sm_90")
EFFECT = evidence("timed", "V2 / V3", 1.5423, [1.3, None], interval=[1.53, 1.55])
CAUSE = evidence("cause", "V3 / V2 masked, both with a store", 1.19, [0.9, 2], interval=[1.1, 1.2])
RECORDED = EFFECT | {"kind": "recorded", "device": "NVIDIA H200, 2026-12-01"}
UNKNOWN = evidence("recorded", "V5 / V6", None, [0.95, 1.05], device="no recording", clock=None)
LEDGER = Ledger(
    {"name": "NVIDIA H200", "clock": "cupti", "driver": None},
    [
        row("coalescing.soa-8x", "holds", SECTORS, EFFECT),
        row("reduce.v3-cause", "refuted", RECORDED, CAUSE, note="the modulo was the cost"),
        row("reduce.v6-same-as-v5", "undecided", UNKNOWN),
        row("reduce.v7-over-v6", "broken", *[SECTORS] * 5, SECTORS | {"value": 5}, published=None),
    ],
)


class Screen:
    """A terminal of 100 columns that remembers."""

    _screen_width = WIDTH
    isatty = True

    def __init__(self) -> None:
        self.text = ""
        self.colours: dict[str, set[str]] = {}

    def ensure_newline(self) -> None:
        """Begin a line."""

    def section(self, title: str, sep: str = "=", **markup: bool) -> None:
        """Write a title."""
        self.text += f"{title}\n"

    def write(self, content: str, **markup: bool) -> None:
        """Write, and note the colour."""
        self.text += content
        self.colours[content.strip()] = {name for name, on in markup.items() if on}

    def write_line(self, line: str, **markup: bool) -> None:
        """Write a line."""
        self.text += f"{line}\n"


def shown(problems: list[str] | None = None) -> Screen:
    """Return the screen after the table."""
    screen = Screen()
    report.show(screen, LEDGER, problems or [])
    return screen


def test_the_table_has_every_claim_and_its_decisive_numbers() -> None:
    """Two lines or more a claim; evidence from an unusual source names it."""
    text = shown().text
    assert "holds      soa-8x: a | b <c> & d (published: 8x)" in text
    assert "timed     V2 / V3 = 1.542 [1.53, 1.55], needs >= 1.3" in text
    assert "recorded on NVIDIA H200, 2026-12-01" in " ".join(text.split())
    assert "cause     V3 / V2 masked, both with a store = 1.19 [1.1, 1.2], needs 0.9..2" in text
    assert "V5 / V6: not measured (no recording), needs 0.95..1.05" in text
    assert "the modulo was the cost" in text
    assert "1 holds  1 refuted  1 undecided  1 broken" in text


def test_what_broke_a_claim_is_shown_first() -> None:
    """Six counts, three lines: the wrong one must be among them."""
    lines = shown().text.partition("v7-over-v6")[2].splitlines()
    assert lines[1].strip() == "counted   load sectors, AoS / SoA is not 8 but 5"
    assert lines[4].strip() == "and 3 more in build/report.html"


def test_the_table_fits_the_screen_and_is_coloured_by_verdict() -> None:
    """One colour a verdict."""
    screen = shown()
    assert max(map(len, screen.text.splitlines())) <= WIDTH
    colours = {name: screen.colours[name] for name in ("holds", "refuted", "undecided", "broken")}
    assert colours == {
        "holds": {"green"},
        "refuted": {"cyan"},
        "undecided": {"yellow"},
        "broken": {"red"},
    }


def test_claims_json_is_schema_1() -> None:
    """Its keys are those that readers of build/claims.json rely on."""
    document = json.loads(LEDGER.as_json())
    assert document["schema"] == 1
    assert document["device"]["name"] == "NVIDIA H200"
    claim = document["claims"][0]
    keys = ["id", "section", "says", "ours", "published", "verdict", "finding", "why", "evidence"]
    assert sorted(claim) == sorted(keys)
    keys = ["kind", "device", "clock", "what", "value", "bound", "interval"]
    assert all(list(each) == keys for each in claim["evidence"])


def test_what_clears_its_bound_by_the_least_comes_first() -> None:
    """Of sixty ratios the one that nearly failed is worth showing; a count has no room."""
    roomy = EFFECT | {"what": "roomy", "interval": [1.9, 2.0]}
    near, far = (EFFECT | {"what": f"<= {most}", "bound": [None, most]} for most in (1.6, 5))
    assert [each["what"] for each in ranked([SECTORS, far, roomy, EFFECT, near])] == [
        *("<= 1.6", "V2 / V3", "roomy", "<= 5", "load sectors, AoS / SoA")
    ]


def test_what_failed_leads_whatever_else_is_open() -> None:
    """A broken claim must show what broke it, also where a decisive ratio was not measured."""
    open_ = UNKNOWN | {"decisive": True}
    failed = EFFECT | {"what": "failed", "bound": [2.0, None]}
    assert [each["what"] for each in ranked([open_, EFFECT, failed])] == [
        *("failed", "V5 / V6", "V2 / V3")
    ]


def test_markdown_says_why_and_shows_so_much_evidence() -> None:
    """A cell of sixty ratios hides the first of them; the page has them all."""
    many = row("beyond.every-size", "holds", *[EFFECT] * (SHOWN + 2))
    text = markdown(Ledger({"name": "NVIDIA H200"}, [many]))
    assert "<br>*why:* In short. At length. |" in text
    assert text.count("V2 / V3") == SHOWN
    assert "<br>and 2 more in report.html |" in text
    assert "# Claims\n\ntimes on NVIDIA H200 (cupti)\n" in text
    assert "- **refuted**: not as written; what is right is asserted instead" in text


@pytest.mark.parametrize(("clock", "told"), [(None, True), ("cupti", False)])
def test_whose_times_they_are_is_told_where_nothing_was_timed(
    clock: str | None, told: bool
) -> None:
    """A reader without a GPU must not take them for those of his own card."""
    ledger = Ledger({"name": "emulated sm_90", "clock": clock}, [row("a.b", "holds", RECORDED)])
    assert ("a run on yours judges it" in markdown(ledger)) is told
    assert ("a run on yours judges it" in page(ledger)) is told


def test_markdown_cells_hold_their_text() -> None:
    """A pipe would start a new cell, an angle bracket a tag."""
    text = markdown(LEDGER)
    assert r"a \| b &lt;c&gt; &amp; d" in text
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.replace(r"\|", "").count("|") for line in tables} == {6}


def test_files_are_written_whole_and_the_summary_is_appended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """build/ is made if missing."""
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    assert report.write(LEDGER, tmp_path / "build") == []
    names = sorted(path.name for path in (tmp_path / "build").iterdir())
    assert names == ["claims.json", "claims.md", "report.html"]
    assert summary.read_text() == "before\n" + (tmp_path / "build" / "claims.md").read_text()


def test_an_unwritable_folder_is_a_remark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdicts stand on the screen all the same."""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "missing" / "summary.md"))
    (tmp_path / "build").write_text("a file where the folder should be")
    problems = report.write(LEDGER, tmp_path / "build")
    assert [problem.partition(" not written")[0] for problem in problems] == [
        os.path.join(tmp_path, "build", name)
        for name in ("claims.json", "claims.md", "report.html")
    ] + [str(tmp_path / "missing" / "summary.md")]
    assert problems[0] in shown(problems).text


def test_a_claim_in_several_tests_is_one_row_with_the_worst_verdict() -> None:
    """A parametrized claim."""
    once, again = row("a.b", "holds", SECTORS), row("a.b", "undecided", UNKNOWN, note="why")
    both = merged([once, row("a.c", "holds"), again])
    assert [each["id"] for each in both] == ["a.b", "a.c"]
    assert (both[0]["verdict"], both[0]["note"]) == ("undecided", "why")
    assert both[0]["evidence"] == [SECTORS, UNKNOWN]


@pytest.mark.parametrize(
    ("piece", "words", "where"),
    [
        (SECTORS, "load sectors, AoS / SoA = 8", "counted on emulated sm_90"),
        (EFFECT, "V2 / V3 = 1.542 [1.53, 1.55], needs >= 1.3", "timed on NVIDIA H200 (cupti)"),
        (
            EFFECT | {"interval": None},
            "V2 / V3 = 1.542 (too few pairs), needs >= 1.3",
            "timed on NVIDIA H200 (cupti)",
        ),
        (UNKNOWN, "V5 / V6: not measured (no recording), needs 0.95..1.05", "not recorded"),
    ],
)
def test_evidence_in_words(piece: dict[str, Any], words: str, where: str) -> None:
    """The same phrase in every report."""
    assert (finding(piece), source(piece)) == (words, where)


@pytest.mark.parametrize("value", [0.0, -1.5, 1e-320, 1e308, math.inf, -math.inf, math.nan])
def test_no_number_of_a_ratio_stops_a_report(value: float) -> None:
    """Whatever a damaged clock or file brings."""
    odd = Evidence("recorded", "GPU", "cupti", "a / b", value, (1.3, None), (value, value))
    ledger = Ledger(LEDGER.device, [row("a.b", "undecided", odd.as_json())])
    screen = Screen()
    show(screen, ledger, [])
    assert "a / b = " in screen.text
    assert "a / b = " in markdown(ledger)
    assert "a / b = " in page(ledger)
    assert json.loads(ledger.as_json())["claims"]


@pytest.mark.parametrize("seconds", [0.0, -1.0, 1e-320, 1e308, math.inf, math.nan, 10**400])
def test_a_time_that_is_none_is_shown_as_it_is(seconds: float) -> None:
    """The number itself says more than an error would."""
    assert duration(seconds) == f"{seconds} s"
