"""The picture of the ladder: the same bytes for the same baseline, nothing outside its frame."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from harness.report import figure
from harness.report.figure import LEFT, RIGHT, ladder_svg, place
from harness.spelling import duration
from harness.tests.fakes import document

SVG = "{http://www.w3.org/2000/svg}"
TIMES = dict(zip(range(1, 8), (0.118, 761e-6, 476e-6, 475e-6, 107e-6, 106e-6, 62e-6), strict=True))


def ladder(*rungs: int) -> dict[str, Any]:
    """Return a baseline with these rungs of 2^26 floats."""
    benchmarks = [
        {
            "fullname": f"reduce_v{rung}",
            "name": f"test_the_ladder_is_timed[reduce_v{rung}]",
            "stats": {"median": TIMES[rung]},
            "extra_info": {"bytes": 2**28, "GB/s": 4300.0},
        }
        for rung in rungs
    ]
    device = {"clock": "cupti", "peak GB/s": 4813.8, "copy GB/s": 4109.0}
    return document(benchmarks=benchmarks, device=device)


def texts(svg: str) -> list[str]:
    """Return what is written in the picture."""
    return [text.text or "" for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_all_rungs_stand_beside_the_published_ones() -> None:
    """Time and bandwidth of each, GPU and day, the peak and the copy."""
    written = texts(ladder_svg(ladder(*TIMES)))
    assert [text for text in written if text in ("V1", "V2", "V3", "V4", "V5", "V6", "V7")]
    for text in ("118 ms · 2.3 GB/s", "62.0 µs · 4,330 GB/s", "197 ms · 1.4 GB/s"):
        assert text in written
    assert "170 µs · 1,572 GB/s" in written  # as published: 170 µs would be 1,579
    assert "NVIDIA H200, recorded 2026-12-01 (cupti, cold L2)" in written
    assert {"peak 4,814", "copy 4,109", "A100-80GB as published"} < set(written)


def test_a_time_and_its_bandwidth_are_of_one_median() -> None:
    """A rate that was stored beside it is that of another sample, or of another run."""
    assert "62.0 µs · 4,330 GB/s" in texts(ladder_svg(ladder(7)))


def test_the_picture_is_deterministic_and_inside_its_frame() -> None:
    """Regenerating it must not make a diff."""
    svg = ladder_svg(ladder(*TIMES))
    assert svg == ladder_svg(ladder(*TIMES))
    frame = ElementTree.fromstring(svg)
    _, _, width, height = map(float, frame.attrib["viewBox"].split())
    for bar in frame.iter(f"{SVG}rect"):
        x, y, long, high = (float(bar.attrib[key]) for key in ("x", "y", "width", "height"))
        assert 0 <= x <= x + long <= width
        assert 0 <= y <= y + high <= height


def test_a_missing_rung_leaves_its_published_bar() -> None:
    """A run of -k v7 is a picture too; a run without rungs is none."""
    bars = ElementTree.fromstring(ladder_svg(ladder(7))).findall(f"{SVG}g/{SVG}rect")
    assert [bar.attrib["class"] for bar in bars].count("now") == 1
    assert len(bars) == 8
    with pytest.raises(ValueError, match="no rung"):
        ladder_svg(document())


def test_the_axis_is_logarithmic_and_ends_at_its_edges() -> None:
    """Four decades; what lies outside is drawn at the edge."""
    assert [place(rate) for rate in (0.1, 1, 100, 10_000, 1e5)] == [
        LEFT,
        LEFT,
        (LEFT + RIGHT) / 2,
        RIGHT,
        RIGHT,
    ]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.1974, "197 ms"), (1.67e-3, "1.67 ms"), (0.87e-3, "870 µs"), (62.6e-6, "62.6 µs")],
)
def test_times_have_three_digits(seconds: float, text: str) -> None:
    """Milliseconds from one up."""
    assert duration(seconds) == text


def test_each_recorded_gpu_gets_its_picture(tmp_path: Path) -> None:
    """Beside its baselines; a folder without rungs gets none."""
    rungs = ladder(*TIMES)
    for folder, content in (("nvidia-h200", rungs), ("seminar-a100-80gb", rungs)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "0001_a.json").write_text(json.dumps(content))
    assert figure.main(tmp_path) == 0
    assert [path.parent.name for path in tmp_path.rglob("ladder.svg")] == ["nvidia-h200"]
