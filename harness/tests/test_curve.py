"""The picture of bandwidth against bytes in flight: where things stand, and what is missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from harness.models.datasheet import KIB, of
from harness.models.little import bytes_needed
from harness.report import curve
from harness.report.curve import LEFT, RIGHT, Axes, curve_svg, fitting
from harness.tests.fakes import document

SVG = "{http://www.w3.org/2000/svg}"
RATES = {
    **{(1, 1): 350, (1, 2): 690, (1, 4): 1340, (1, 8): 2502, (2, 4): 2353, (4, 2): 2130},
    **{(8, 1): 1795, (2, 8): 3839, (4, 8): 4549, (8, 8): 4637},
}


def measured(
    *reads: tuple[int, int], chase: bool = True, gpu: str = "NVIDIA Prototype"
) -> dict[str, Any]:
    """Return a baseline with these reads of 132 SMs, and a latency of 351 ns."""
    benchmarks: list[dict[str, Any]] = [
        {
            "fullname": f"read-{loads}-{blocks}",
            "name": f"test_bytes_in_flight_are_timed[read-{loads}-{blocks}]",
            "stats": {"median": 1e-4},
            "extra_info": {"bytes": RATES[loads, blocks] * 1e5, "grid": 132 * blocks, "block": 256},
        }
        for loads, blocks in reads
    ]
    for lines, nanoseconds in (("4096", 351), ("8192-32", 146)) if chase else ():
        name = f"test_bytes_in_flight_are_timed[chase-{lines}]"
        stats = {"median": nanoseconds * 1e-9 * 4096}
        benchmarks.append({"fullname": name, "name": name, "stats": stats, "extra_info": {}})
    return document(gpu, benchmarks=benchmarks, device={"clock": "cupti", "peak GB/s": 4813.8})


def texts(svg: str) -> set[str]:
    """Return what is written in the picture."""
    return {text.text or "" for text in ElementTree.fromstring(svg).iter(f"{SVG}text")}


def test_the_reads_stand_below_what_littles_law_allows() -> None:
    """The slowest and the fastest of each number of bytes, and where the knee is from."""
    written = texts(curve_svg(measured(*RATES)))
    assert {"350", "1,795 – 2,502", "4,637", "peak 4,814"} <= written
    assert "an SM needs 12.5 KiB = 4,814 GB/s × 351 ns / 132" in written
    assert "Little's law: bytes in flight / 351 ns" in written
    assert any(text.endswith(" · latency as recorded") for text in written)


def test_a_law_that_is_published_is_drawn_as_the_claims_have_it() -> None:
    """One number for what an H200 needs, whatever its latency was on one day."""
    written = texts(curve_svg(measured(*RATES, gpu="NVIDIA H200")))
    h200 = of("NVIDIA H200")
    assert h200
    needed = bytes_needed(h200) / KIB / h200.multiprocessors
    assert f"an SM needs {needed:.1f} KiB = 4,814 GB/s × 348 ns / 132" in written
    assert any(text.endswith(" · latency as published") for text in written)


def test_a_point_says_its_loads_and_threads() -> None:
    """To whoever points at it."""
    titles = {each.text for each in ElementTree.fromstring(curve_svg(measured((4, 2)))).iter()}
    assert "8 KiB: 4 loads × 512 threads, 2,130 GB/s" in titles


def test_everything_is_inside_the_frame_and_the_same_every_time() -> None:
    """Regenerating it must not make a diff."""
    svg = curve_svg(measured(*RATES))
    assert svg == curve_svg(measured(*reversed(RATES)))
    frame = ElementTree.fromstring(svg)
    _, _, width, height = map(float, frame.attrib["viewBox"].split())
    circles = list(frame.iter(f"{SVG}circle"))
    assert len(circles) == len(RATES) + 4 + 4  # and the two legends
    for circle in circles:
        assert 0 < float(circle.attrib["cx"]) < width
        assert 0 < float(circle.attrib["cy"]) < height


def test_without_a_latency_no_law_is_drawn() -> None:
    """The reads alone are a picture too; without them there is none."""
    svg = curve_svg(measured((1, 1), chase=False))
    assert "Little's law: bytes" not in " ".join(texts(svg))
    with pytest.raises(ValueError, match="no read"):
        curve_svg(measured())


def test_the_axes_are_logarithmic_and_fit_the_rates() -> None:
    """Twice the KiB and twice the rate are as far everywhere; slow GPUs get lower octaves."""
    axes = fitting([350.0, 4637.0], 4814.0)
    assert axes.slowest == 250
    assert axes.y(500) - axes.y(1000) == pytest.approx(axes.y(1000) - axes.y(2000), abs=0.2)
    assert LEFT < axes.x(1) < axes.x(128) < RIGHT
    assert fitting([226.0], 898.0).slowest == 125
    assert [label for _, label in Axes(250, 1100).rows()] == ["250", "500", "1,000"]


def test_each_recorded_gpu_gets_its_picture(tmp_path: Path) -> None:
    """Beside its baselines; a folder without reads gets none."""
    without = measured() | {"machine_info": {"gpu": "NVIDIA B200"}}
    h200 = measured(*RATES, gpu="NVIDIA H200")
    for folder, content in (("nvidia-h200", h200), ("nvidia-b200", without)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "0001_a.json").write_text(json.dumps(content))
    assert curve.main(tmp_path) == 0
    assert [path.parent.name for path in tmp_path.rglob("bytes-in-flight.svg")] == ["nvidia-h200"]
