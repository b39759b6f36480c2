"""The HTML page stands alone, and a closed card says what decides a claim and where it is from."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from harness.report import Ledger
from harness.report.page import briefs, page, plot
from harness.report.readme import summary
from harness.report.terminal import decisive
from harness.tests.test_report import CAUSE, EFFECT, LEDGER, RECORDED, SECTORS, UNKNOWN, row


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]


def test_the_page_is_self_contained_and_escaped() -> None:
    """No link, no script; a claim's text is text."""
    text = page(LEDGER)
    tags = _Tags()
    tags.feed(text)
    assert tags.links == []
    assert not {"c", "script", "link", "img"} & set(tags.found)
    assert tags.found.count("details") == len(LEDGER.claims)
    assert "a | b &lt;c&gt; &amp; d" in text
    assert text.index("<h3>effect</h3>") < text.index("<h3>cause</h3>")


def test_every_line_of_a_closed_card_says_where_it_is_from() -> None:
    """A recorded time must not be taken for a measurement of this run."""
    text = page(LEDGER)
    lines = [line for line in text.splitlines() if 'class="brief"><b>' in line]
    lines = [line for line in lines if "<b>instead" not in line]
    assert len(lines) == 5
    for line in lines:
        assert re.search(r"<small>(counted on|timed on|recorded on|not recorded)", line), line
    assert "<small>recorded on NVIDIA H200, 2026-12-01</small></span>" in text


def test_the_title_says_where_counts_and_times_are_from() -> None:
    """The device of the run alone would claim the times for it."""
    ledger = Ledger(LEDGER.device, [row("a.b", "holds", SECTORS, RECORDED)])
    origin = "counted on emulated sm_90; times recorded on NVIDIA H200, 2026-12-01"
    assert f"<title>Claims: {origin}</title>" in page(ledger)
    assert f'<p class="origin">{origin}</p>' in page(ledger)
    assert "run on NVIDIA H200" in page(Ledger(LEDGER.device, [row("a.b", "undecided")]))


def test_cards_show_that_they_open_and_open_on_paper() -> None:
    """A list without markers looks like all there is."""
    text = page(LEDGER)
    assert 'summary .verdict::before { content: "\\25B8"' in text
    assert "details[open] > summary .verdict::before" in text
    printed = text.partition("@media print {")[2].partition("@media")[0]
    assert "details::details-content { display: block; content-visibility: visible" in printed


def test_what_the_test_calls_decisive_comes_first() -> None:
    """Before times and causes, in every report; what failed comes before it."""
    chosen = SECTORS | {"decisive": True}
    one = row("a.b", "holds", EFFECT, EFFECT | {"what": "V1 / V2"}, CAUSE, SECTORS, chosen)
    assert decisive(one["evidence"])[0] is chosen
    assert list(briefs(one)) == ["counted", "effect", "cause"]
    assert list(briefs(one | {"evidence": [EFFECT, CAUSE, SECTORS]})) == ["effect", "cause"]
    second = EFFECT | {"what": "V1 / V2", "decisive": True}
    assert briefs(row("a.b", "holds", EFFECT, second))["effect"] is second
    failed = SECTORS | {"value": 5}
    assert decisive([chosen, failed])[0] is failed
    assert "| `a.b` | a \\| b &lt;c&gt; &amp; d | holds | load sectors" in summary(
        Ledger({}, [one])
    )


def test_an_interval_is_drawn_inside_its_bound() -> None:
    """A logarithmic axis in percent; an open end reaches the edge."""
    drawn = plot(EFFECT)
    assert drawn
    assert 0 < drawn.bound_low < drawn.low < drawn.value < drawn.high < drawn.bound_high == 100
    assert plot(UNKNOWN) is None
