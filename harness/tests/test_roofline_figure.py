"""The picture of the roofline: the same bytes for the same baseline, nothing outside its frame."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from harness.report import roofline
from harness.report.roofline import LINE, roofline_svg
from harness.tests.fakes import document

SVG = "{http://www.w3.org/2000/svg}"
N = 1 << 26


def bench(name: str, flop: int, size: int, seconds: float) -> dict[str, Any]:
    """Return one recorded kernel."""
    test = f"test_the_roofline_is_timed[{name}]"
    return {
        "fullname": test,
        "name": test,
        "stats": {"median": seconds},
        "extra_info": {"flop": flop, "bytes": size},
    }


def recorded(gpu: str = "NVIDIA H200") -> dict[str, Any]:
    """Return chains of a memory of 4 TB/s and lanes of 60 TFLOP/s, and kernels below them."""
    lengths = (1, 4, 16, 64, 256)
    times = {k: max(8 * N / 4e12, 2 * k * N / 60e12) for k in lengths}
    chains = [bench(f"chain-{k}", 2 * k * N, 8 * N, times[k]) for k in lengths]
    common = [
        bench("axpy", 2 * N, 12 * N, 12 * N / 3.37e12),
        bench("relu", 3 * N, 8 * N, 8 * N / 3.37e12),
        bench("layer_norm", 7 * N, 8 * N, 8 * N / 3.37e12),
    ]
    gemm = bench("gemm-fp16", 2 * 8192**3, 6 * 8192**2, 2 * 8192**3 / 800e12)
    device = {"clock": "cupti", "peak GB/s": 4814.3}
    return document(gpu, benchmarks=[*chains, *common, gemm], device=device)


def texts(svg: str) -> list[str]:
    """Return what is written in the picture."""
    found = ElementTree.fromstring(svg).iter(f"{SVG}text")
    return [" ".join("".join(text.itertext()).split()) for text in found]


def test_every_kernel_stands_under_the_roof_with_its_share() -> None:
    """70 % of 4814 GB/s, 81 % of 989 TFLOP/s; the ridge is that of the two plateaus."""
    written = texts(roofline_svg(recorded()))
    assert "measured ridge 15.0 FLOP/B" in written
    assert "60.0 TFLOP/s, 4,000 GB/s" in written
    assert "layer norm 3,370 GB/s, 70 %" in written
    assert "GEMM fp16 800 TFLOP/s, 81 %" in written
    assert {"memory's peak 4,814 GB/s", "fp32 peak 67 TFLOP/s"} < set(written)


def test_what_a_copy_reaches_is_one_number_in_all_pictures() -> None:
    """As beside the ladder, and what claims call a copy; the best chain where there is none."""
    copied = recorded() | {"device": {"peak GB/s": 4814.3, "copy GB/s": 4100.4}}
    assert "60.0 TFLOP/s, copy 4,100 GB/s" in texts(roofline_svg(copied))
    assert "measured ridge 14.6 FLOP/B" in texts(roofline_svg(copied))


def test_a_gpu_without_a_data_sheet_has_its_measured_roof_alone() -> None:
    """Shares are then of that."""
    svg = roofline_svg(recorded("NVIDIA Prototype"))
    assert "axpy 3,370 GB/s, 84 %" in texts(svg)
    assert 'class="limit"' not in svg


def test_the_picture_is_deterministic_and_inside_its_frame() -> None:
    """Regenerating it must not make a diff; names do not stand on each other."""
    svg = roofline_svg(recorded())
    assert svg == roofline_svg(recorded())
    frame = ElementTree.fromstring(svg)
    _, _, width, height = map(float, frame.attrib["viewBox"].split())
    for circle in frame.iter(f"{SVG}circle"):
        assert 0 < float(circle.attrib["cx"]) < width
        assert 0 < float(circle.attrib["cy"]) < height
    names = [t for t in frame.iter(f"{SVG}text") if "GB/s, " in "".join(t.itertext())]
    heights = sorted(float(t.attrib["y"]) for t in names if t.attrib["class"] == "name")
    assert len(heights) == 3
    assert min(b - a for a, b in pairwise(heights)) >= LINE - 0.11


def test_each_recorded_gpu_gets_its_picture(tmp_path: Path) -> None:
    """Beside its baselines; a folder without chains gets none."""
    for folder, content in (("nvidia-h200", recorded()), ("seminar-a100-80gb", document())):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "0001_a.json").write_text(json.dumps(content))
    roofline.main(tmp_path)
    assert [path.parent.name for path in tmp_path.rglob("roofline.svg")] == ["nvidia-h200"]
    with pytest.raises(ValueError, match="no chain test_the_roofline"):
        roofline_svg(document())
