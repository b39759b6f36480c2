"""Sums of every size, drawn and told: what is read of a recording, and that nothing is lost."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import pytest

from harness.baselines import BaselineError, slug
from harness.report import readme, sizes
from harness.report.sizes import BOTTOM, COLUMN, FILE, LINE, OURS, TOP, sums_svg
from harness.report.sizes_table import MISSING, every_size
from harness.report.sums import recorded
from harness.tests.fakes import ENTRY, PAIRS, document
from harness.workloads.peers import LIBRARIES

ROOT: Final = Path(__file__).parents[2]
SVG: Final = "{http://www.w3.org/2000/svg}"
SECONDS: Final = {1: 2.5e-6, 1 << 16: 3.75e-6, 1 << 30: 932e-6, (1 << 31) + 7: 1.86e-3}
LONGER: Final = {
    "cupy.sum": (1.1, 1.5, 1.013, 1.64),
    "torch.sum": (1.24, 4.3, 1.05, 1.08),
    "CUB": (1.09, 1.52, 1.016, 1.013),
    "CUB in any order": (1.55, 1.16, 1.012, 1.009),
    "Triton": (1.04, 1.5, 1.01, 1.014),
}


def measured(longer: Mapping[str, Sequence[float]] = LONGER, **changed: Any) -> dict[str, Any]:
    """Return a baseline in which each library takes so many times as long at each size."""
    pairs = {
        f"{library} / reduce_sum, n = {n}": {**ENTRY, "seconds": sample(SECONDS[n], times)}
        for library, ratios in longer.items()
        for n, times in zip(SECONDS, ratios, strict=False)
    }
    device = {"clock": "cupti", "peak GB/s": 4814.3}
    return document(pairs=PAIRS | {"beyond.every-size": pairs}, device=device) | changed


def sample(seconds: float, longer: float) -> list[list[float]]:
    """Return nine pairs within a hundredth of `longer`, the median among them."""
    return [[seconds * longer * (1 + step / 400), seconds] for step in range(-4, 5)]


def texts(root: ElementTree.Element) -> dict[str, tuple[float, float]]:
    """Return where each text of the picture stands."""
    found = root.iter(f"{SVG}text")
    return {t.text or "": (float(t.attrib["x"]), float(t.attrib["y"])) for t in found}


def says(root: ElementTree.Element, beginning: str) -> tuple[ElementTree.Element, str]:
    """Return the mark that tells a pointer something that begins so, and all it tells."""
    told = ((each, each.findtext(f"{SVG}title", "")) for each in root.iter())
    return next((each, text) for each, text in told if text.startswith(beginning))


def test_a_recording_is_read_by_size() -> None:
    """Smallest first, of this claim alone; a library without pairs is none."""
    baseline = measured()
    ours = baseline["pairs"]["beyond.every-size"]
    ours["numpy / reduce_sum, n = 1"] = {**ENTRY, "seconds": []}
    ours["numpy / reduce_sum, n = 1, as float64"] = ours["CUB / reduce_sum, n = 1"]
    baseline["pairs"]["beyond.every-size"] = dict(reversed(ours.items()))
    found = recorded(baseline)
    assert [size.n for size in found] == list(SECONDS)
    assert [size.seconds for size in found] == list(SECONDS.values())
    assert all({library.name for library in size.libraries} == LONGER.keys() for size in found)
    assert recorded(document()) == []


def test_a_size_knows_its_rate_and_what_comes_closest() -> None:
    """Bytes over the median time of the sum; the library with the least ratio."""
    small, _, large, _ = recorded(measured())
    assert small.fastest.name == "Triton"
    assert small.fastest.seconds == pytest.approx(1.04 * 2.5e-6)
    assert small.fastest.longer.value == pytest.approx(1.04)
    assert large.rate == pytest.approx(4 * 2**30 / 932e-6 / 1e9)
    assert [small.share(4814.3), large.share(4814.3), large.share(None)] == ["<1 %", "96 %", "–"]


def test_the_picture_names_every_library_and_tells_time_and_share() -> None:
    """Of the GPU and the day; a pointer gets the size in full, the time and the interval."""
    root = ElementTree.fromstring(sums_svg(measured()))
    assert {OURS, *LONGER, "2³¹ + 7", "2.50", "1,860", "96 %", "<1 %"} < texts(root).keys()
    assert "NVIDIA H200, recorded 2026-12-01 (cupti, cold L2)" in texts(root)
    mark, text = says(root, "cupy.sum, n = 2,147,483,655")
    assert text.endswith(": 3,050 µs, 1.64 [1.624, 1.656] times as long as reduce_sum")
    assert mark.tag == f"{SVG}circle"


def test_what_takes_far_longer_is_cut_off_and_marked() -> None:
    """How much longer stands at the upper edge; two of them below each other."""
    far = LONGER | {"CUB": (1.09, 7.0)}
    root = ElementTree.fromstring(sums_svg(measured(far)))
    marks = [says(root, f"{library}, n = 65,536")[0] for library in ("torch.sum", "CUB")]
    assert [mark.tag for mark in marks] == [f"{SVG}path"] * 2
    assert [mark.attrib["class"] for mark in marks] == ["point"] * 2
    (x, first), (below, second) = texts(root)["4.3"], texts(root)["7"]
    assert x == below
    assert TOP < first <= second - LINE
    for line in root.iter(f"{SVG}polyline"):
        if line.attrib["class"] == "line":
            assert line.attrib["clip-path"] == "url(#sums-inside)"


def test_a_library_that_is_faster_shows_below_ours() -> None:
    """However much: it is not cut off."""
    root = ElementTree.fromstring(sums_svg(measured(LONGER | {"Triton": (1.04, 0.5)})))
    (ours,) = (each for each in root.iter(f"{SVG}line") if each.attrib["class"] == "ours")
    mark, _ = says(root, "Triton, n = 65,536")
    assert float(ours.attrib["y1"]) + LINE < float(mark.attrib["cy"]) < BOTTOM


def test_names_and_columns_do_not_overlap() -> None:
    """Libraries that start alike get a line each; 2^30 has no room beside 2^31."""
    alike = dict.fromkeys(LONGER, (1.0, 1.5, 1.01, 1.02))
    placed = texts(ElementTree.fromstring(sums_svg(measured(alike))))
    heights = sorted(placed[name][1] for name in (OURS, *LONGER))
    assert all(high - low >= LINE for low, high in pairwise(heights))
    columns = [placed[text][0] for text in ("1", "2¹⁶", "2³¹ + 7")]
    assert all(right - left >= COLUMN for left, right in pairwise(columns))
    assert "2³⁰" not in placed


def test_the_picture_is_the_same_every_time_and_inside_its_frame() -> None:
    """Regenerating it must not make a diff."""
    svg = sums_svg(measured())
    assert svg == sums_svg(measured())
    root = ElementTree.fromstring(svg)
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    circles = list(root.iter(f"{SVG}circle"))
    assert len(circles) == len(LONGER) * len(SECONDS) - 1
    for circle in circles:
        assert 0 < float(circle.attrib["cx"]) < width
        assert TOP <= float(circle.attrib["cy"]) <= BOTTOM < height
    assert all(0 < x < width and 0 < y < height for x, y in texts(root).values())


def test_one_size_is_a_picture_and_none_is_not() -> None:
    """A GPU with little memory has fewer; a library may be missing at some."""
    one = measured({"CUB": (1.2,)}, device={})
    assert "CUB" in texts(ElementTree.fromstring(sums_svg(one)))
    with pytest.raises(ValueError, match="no pairs LIBRARY / reduce_sum"):
        sums_svg(document())


def test_every_library_has_a_colour_in_light_and_in_dark() -> None:
    """One without would be grey as an unknown one."""
    style = re.search(r"<style>(.*?)</style>", sums_svg(measured()), re.DOTALL)
    assert style
    light, _, dark = style[1].partition("@media (prefers-color-scheme: dark)")
    for colours in (light, dark):
        coloured = set(re.findall(r"\.([a-z-]+)(?=[^{}]*{ color:)", colours))
        assert {slug(library) for library in LIBRARIES} < coloured


def stored(root: Path, **folders: dict[str, Any]) -> None:
    """Write baselines, one a folder."""
    for name, content in folders.items():
        (root / name.replace("_", "-")).mkdir()
        (root / name.replace("_", "-") / "0001_a.json").write_text(json.dumps(content))


def test_each_recorded_gpu_gets_its_picture(tmp_path: Path) -> None:
    """Beside its baselines; a folder without such pairs gets none."""
    without = document("NVIDIA B200")
    stored(tmp_path, nvidia_h200=measured(), nvidia_b200=without, seminar_a100_80gb=measured())
    assert sizes.main(tmp_path) == 0
    assert [path.parent.name for path in tmp_path.rglob(FILE)] == ["nvidia-h200"]


def test_the_table_tells_each_size_and_shows_the_picture_that_is_there(tmp_path: Path) -> None:
    """Time, bandwidth and share of ours; time and ratio of what comes closest."""
    stored(tmp_path, nvidia_h200=measured())
    table = every_size(tmp_path)
    assert table.startswith("| n floats |")
    assert "\n| 1 | 2.50 | 0.00160 | &lt;1 % | Triton | 2.60 | 1.04 [1.03, 1.05] |\n" in table
    assert "\n| 2³⁰ | 932 | 4,608 | 96 % | Triton | 941 | 1.01 [0.9999, 1.02] |\n" in table
    assert f"NVIDIA H200, 2026-12-01, against {', '.join(LONGER)}:" in table
    sizes.main(tmp_path)
    assert every_size(tmp_path).startswith("![A sum of n floats on NVIDIA H200")
    assert f"](baselines/nvidia-h200/{FILE})\n\n| n floats |" in every_size(tmp_path)


def test_without_a_recording_the_table_says_how_to_get_one(tmp_path: Path) -> None:
    """A damaged file is another matter: what it holds would silently go."""
    stored(tmp_path, nvidia_h200=document())
    assert every_size(tmp_path) == MISSING
    (tmp_path / "nvidia-h200" / "0002_b.json").write_text("{")
    with pytest.raises(BaselineError, match=r"0002_b\.json cannot be read"):
        every_size(tmp_path)


def test_readme_tells_what_is_recorded() -> None:
    """A new recording shows only once somebody draws it and renews README."""
    assert f"<!-- sizes -->\n{every_size()}<!-- /sizes -->" in (ROOT / "README.md").read_text(
        "utf-8"
    ), (
        "README.md and baselines/ differ: run `python -m harness.report.sizes`, `tox -e claims`, "
        "then `python -m harness.report.readme`"
    )


def test_readme_is_renewed_between_the_marks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nowhere else."""
    claims = {"schema": 1, "device": {"name": "x"}, "claims": []}
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "claims.json").write_text(json.dumps(claims))
    (tmp_path / "README.md").write_text("before\n<!-- sizes -->\nold\n<!-- /sizes -->\nafter\n")
    monkeypatch.setattr(readme, "ROOT", tmp_path)
    monkeypatch.setattr(readme, "every_size", lambda: "new\n")
    readme.main()
    renewed = (tmp_path / "README.md").read_text("utf-8")
    assert renewed == "before\n<!-- sizes -->\nnew\n<!-- /sizes -->\nafter\n"


def test_every_picture_of_readme_is_there() -> None:
    """Whoever reads it elsewhere sees a broken image else."""
    shown = re.findall(r"!\[[^]]*\]\(([^)]*)\)", (ROOT / "README.md").read_text("utf-8"))
    assert shown
    assert [path for path in shown if not (ROOT / path).is_file()] == []


def test_the_example_of_readme_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    """It needs no GPU."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    (example,) = (block for block in blocks if "reduce_sum(" in block)
    exec(compile(example, "README.md", "exec"), {})
    assert capsys.readouterr().out.strip() == example.rpartition("# ")[2].strip()
