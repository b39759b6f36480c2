"""The pictures of a recording in the page of a run: each by its claims, and each to itself."""

from __future__ import annotations

import re
from typing import Any, Final

from harness.report import Ledger
from harness.report.page import page
from harness.report.pictures import PICTURES, drawn
from harness.tests.fakes import document
from harness.tests.test_curve import RATES, measured
from harness.tests.test_figure import TIMES, ladder
from harness.tests.test_report import LEDGER, SECTORS, row
from harness.tests.test_roofline_figure import recorded
from harness.tests.test_sizes import measured as sums

RECORDING: Final = document(
    benchmarks=[
        *ladder(*TIMES)["benchmarks"],
        *recorded()["benchmarks"],
        *measured(*RATES)["benchmarks"],
    ],
    pairs=sums()["pairs"],
)
CLAIMS: Final = ("reduce.a", "roofline.a", "little.a", "beyond.a", "vector.a")


def with_pictures(recording: dict[str, Any]) -> str:
    """Return the page of claims of five sections."""
    claims = [row(id, "holds", SECTORS) for id in CLAIMS]
    return page(Ledger(LEDGER.device, claims, pictures=drawn(recording)))


def test_the_pictures_of_the_recording_stand_below_the_claims_they_are_about() -> None:
    """The same as beside the baselines; none of what a recording has not."""
    text = with_pictures(RECORDING)
    for picture in PICTURES:
        below = text.index(f'id="{picture.section}.a"'), text.index(picture.svg(RECORDING))
        assert below == tuple(sorted(below))
    some = RECORDING, ladder(*TIMES), document()
    assert [with_pictures(each).count("<figure>") for each in some] == [4, 1, 0]


def test_a_picture_keeps_its_styles_and_names_to_itself() -> None:
    """Inside a page a style reaches all of it."""
    text = with_pictures(RECORDING)
    for picture in PICTURES:
        svg = picture.svg(RECORDING)
        (own,) = re.findall(r'<svg [^>]*class="(\w+)"', svg)
        style = re.sub(r"@media[^{]*{", "", svg.partition("<style>")[2].partition("</style>")[0])
        selectors = [each for rule in re.findall(r"([^{}]+){", style) for each in rule.split(",")]
        assert selectors
        assert {each.split()[0] for each in selectors} == {f".{own}"}
    names = re.findall(r'\bid="([^"]*)"', text)
    assert len(names) == len(set(names))


def test_a_recording_that_lacks_a_fact_costs_a_picture_and_no_report() -> None:
    """Baselines outlive the code that wrote them."""
    damaged = measured(*RATES)
    del damaged["benchmarks"][0]["extra_info"]["grid"]
    said = "bytes-in-flight.svg cannot be drawn of the recording (KeyError(&#39;grid&#39;)): record"
    assert f"<figure>{said} again</figure>" in with_pictures(damaged)
