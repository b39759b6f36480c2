"""The HTML page stands alone, and a closed card says what decides a claim and where it is from."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

from harness.report import Ledger, show
from harness.report.ledger import LEGEND, label
from harness.report.markdown import markdown
from harness.report.page import briefs, page, plot
from harness.report.readme import summary
from harness.report.terminal import decisive
from harness.tests.test_report import (
    CAUSE,
    EFFECT,
    LEDGER,
    RECORDED,
    SECTORS,
    UNKNOWN,
    Screen,
    row,
)


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
    assert text.index("<h3>recorded</h3>") < text.index("<h3>cause</h3>")


def test_every_line_of_a_closed_card_says_where_it_is_from() -> None:
    """A recorded time must not be taken for a measurement of this run."""
    text = page(LEDGER)
    lines = [line for line in text.splitlines() if 'class="brief found"><b>' in line]
    assert len(lines) == 5
    for line in lines:
        assert re.search(rf"<b>({'|'.join(LEGEND)})</b> .*(<small>on |not measured)", line), line
    (recorded,) = [line for line in lines if "V2 / V3" in line and "2026-12-01" in line]
    assert recorded.strip().startswith('<span class="brief found"><b>recorded</b> V2 / V3 = 1.542')
    assert recorded.endswith("<small>on NVIDIA H200, 2026-12-01</small></span>")


def test_a_closed_card_says_why_in_short_and_an_open_one_at_length() -> None:
    """A verdict without its reason is half of what a claim's test knows."""
    summary, _, evidence = page(LEDGER).partition("</summary>")
    assert '<span class="why">In short.</span>' in summary
    assert "At length." not in summary
    assert '<p class="why">At length.</p>' in evidence.partition("</article>")[0]


def test_the_title_says_where_counts_and_times_are_from() -> None:
    """The device of the run alone would claim the times for it."""
    ledger = Ledger(LEDGER.device, [row("a.b", "holds", SECTORS, RECORDED)])
    origin = "counted on emulated sm_90; times recorded on NVIDIA H200, 2026-12-01"
    assert f"<title>Claims: {origin}</title>" in page(ledger)
    assert f'<p class="origin">{origin}</p>' in page(ledger)
    assert "run on NVIDIA H200" in page(Ledger(LEDGER.device, [row("a.b", "undecided")]))


def test_cards_show_that_they_open_and_open_on_paper() -> None:
    """A list without markers looks like all there is.

    Most browsers print a closed <details> closed, whatever a style says of what is inside.
    """
    text = page(LEDGER)
    assert 'summary .verdict::before { content: "\\25B8"' in text
    assert "details[open] > summary .verdict::before" in text
    assert text.count("</summary></details>") == text.count("</details>") == len(LEDGER.claims)
    hidden = re.findall(r".*evidence {[^}]*display: none.*", text)
    assert hidden == ["@media screen { details:not([open]) + .evidence { display: none } }"]
    assert len(re.findall(r'</details>\s*<div class="evidence">', text)) == len(LEDGER.claims)


def test_what_the_test_calls_decisive_comes_first() -> None:
    """Before times and causes, in every report; what failed comes before it."""
    chosen = SECTORS | {"decisive": True}
    one = row("a.b", "holds", EFFECT, EFFECT | {"what": "V1 / V2"}, CAUSE, SECTORS, chosen)
    assert decisive(one["evidence"])[0] is chosen
    assert briefs(one) == [chosen, EFFECT, CAUSE]
    assert briefs(one | {"evidence": [CAUSE, EFFECT, SECTORS]}) == [EFFECT, CAUSE]
    second = EFFECT | {"what": "V1 / V2", "decisive": True}
    assert briefs(row("a.b", "holds", EFFECT, second)) == [second]
    failed = SECTORS | {"value": 5}
    assert decisive([chosen, failed])[0] is failed
    assert "| `a.b` | a \\| b &lt;c&gt; &amp; d | holds | load sectors" in summary(
        Ledger({}, [one])
    )


def test_the_kinds_of_evidence_are_those_of_the_json_in_every_report() -> None:
    """One word for one thing, and a legend that says what it means."""
    pieces = SECTORS, EFFECT, CAUSE, RECORDED, CAUSE | {"kind": "recorded", "of": "cause"}
    ledger = Ledger(LEDGER.device, [row("a.b", "holds", *pieces)])
    kinds = [each["kind"] for each in json.loads(ledger.as_json())["claims"][0]["evidence"]]
    assert set(kinds) == set(LEGEND) == {"counted", "timed", "cause", "recorded"}
    screen = Screen()
    show(screen, ledger, [])
    for kind, means in LEGEND.items():
        assert f"{kind:<8}  {means}" in screen.text
        assert f"- **{kind}**: {means}" in markdown(ledger)
        assert f"<dt>{kind}</dt><dd>{means}</dd>" in page(ledger)
    titles = re.findall(r"<h3>(.*)</h3>", page(ledger))
    assert titles == ["timed", "recorded", "cause", "recorded cause", "counted"]
    assert [label(each) for each in pieces] == [*kinds[:4], "recorded cause"]
    found = "recorded: V2 / V3 = 1.542 [1.53, 1.55], needs &gt;= 1.3 (NVIDIA H200, 2026-12-01)"
    assert found in markdown(ledger)


def test_all_that_decides_a_claim_is_its_headline() -> None:
    """Where one thing and another do something, the number of one of them is half of it."""
    one, other = (EFFECT | {"what": what, "decisive": True} for what in ("V1 / V2", "V1 / V3"))
    claim = row("a.b", "holds", EFFECT, SECTORS, one, other)
    found = "V1 / V2 = 1.542 [1.53, 1.55], needs &gt;= 1.3<br>V1 / V3 = 1.542"
    assert found in summary(Ledger({}, [claim]))
    assert briefs(claim) == [one, other]
    text = markdown(Ledger({"name": "x"}, [claim]))
    assert text.index("V1 / V3") < text.index("V2 / V3")


def test_an_interval_is_drawn_inside_its_bound() -> None:
    """A logarithmic axis in percent; an open end reaches the edge."""
    drawn = plot(EFFECT)
    assert drawn
    assert 0 < drawn.bound_low < drawn.low < drawn.value < drawn.high < drawn.bound_high == 100
    assert plot(UNKNOWN) is None
