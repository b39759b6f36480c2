"""Baselines: whole or refused, never overwritten, never of the wrong GPU."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from harness import baselines
from harness.baselines import BaselineError, newest, read, recorded, slug
from harness.baselines.__main__ import main
from harness.gate import promotion
from harness.gate.promotion import dumps, promote
from harness.gate.samples import timings
from harness.tests.fakes import PAIRS, STATS, document


def stored(root: Path, name: str, content: dict[str, Any] | str) -> Path:
    """Write a baseline below `root`."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.mark.parametrize("tenth", range(10))
def test_a_truncated_baseline_is_named_kept_and_skipped(tmp_path: Path, tenth: int) -> None:
    """Cut at every tenth, down to an empty file; the one before it is used."""
    whole = json.dumps(document())
    before = stored(tmp_path, "nvidia-h200/0001_a.json", whole)
    cut = stored(tmp_path, "nvidia-h200/0002_b.json", whole[: len(whole) * tenth // 10])
    problems: list[str] = []
    found = newest(tmp_path / "nvidia-h200", problems)
    assert found
    assert found.path == before
    assert len(problems) == 1
    assert f"{cut} cannot be read" in problems[0]
    assert "git checkout" in problems[0]
    assert cut.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", 'has no list "benchmarks"'),
        ('{"benchmarks": 3}', 'has no list "benchmarks"'),
        ('{"benchmarks": []}', "machine_info.gpu is missing"),
        ('{"benchmarks": [], "machine_info": {}}', "machine_info.gpu is missing"),
        ('{"benchmarks": [NaN], "machine_info": {"gpu": "x"}}', "NaN, which is not a time"),
        ('{"benchmarks": []} trailing', "Extra data"),
        ("null", 'has no list "benchmarks"'),
        ("\x00\x01", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        (json.dumps(document(datetime=5)), "'datetime' is 5"),
        (json.dumps(document(datetime="2026/../x")), "'datetime' is '2026/../x'"),
        (json.dumps(document(datetime="\x00")), "'datetime' is "),
        (json.dumps(document(pairs=[])), r"'pairs' is \[\]"),
        (json.dumps(document(claims=None)), "'claims' is None"),
        (json.dumps(document(device={"copy GB/s": "x"})), "'copy GB/s' is 'x'"),
        (json.dumps(document(benchmarks=["x"])), r"benchmark \? cannot be read \(it is 'x'"),
        (json.dumps(document(benchmarks=[{"fullname": "a"}])), "benchmark a cannot be read"),
        (json.dumps(document(machine_info={"gpu": 5})), "machine_info.gpu is missing"),
        (json.dumps(document(device={"cards": "x"})), "'cards' is 'x'"),
    ],
)
def test_what_is_no_baseline_is_refused(tmp_path: Path, content: str, message: str) -> None:
    """Each error names the file."""
    path = stored(tmp_path, "0001_x.json", content)
    with pytest.raises(BaselineError, match=message) as refused:
        read(path)
    assert str(path) in str(refused.value)


def test_what_a_driver_does_not_tell_is_no_damage(tmp_path: Path) -> None:
    """It lowers its clocks and keeps the reason to itself, in the device's facts and in a row's."""
    silent = document(device={"throttle_reasons": None})
    silent["benchmarks"][0]["extra_info"] = {"throttle_reasons": None}
    (timing,) = timings(read(stored(tmp_path, "0001_x.json", silent)).document).values()
    assert timing.throttled == frozenset()


def test_the_newest_is_the_last_by_name_that_holds_anything(tmp_path: Path) -> None:
    """An empty run is not a baseline."""
    stored(tmp_path, "nvidia-h200/0009_a.json", document())
    stored(tmp_path, "nvidia-h200/0010_b.json", document())
    stored(tmp_path, "nvidia-h200/0011_c.json", document(benchmarks=[]))
    problems: list[str] = []
    found = newest(tmp_path / "nvidia-h200", problems)
    assert found
    assert (found.path.name, problems) == ("0010_b.json", [])


def test_a_file_of_another_gpu_is_not_compared(tmp_path: Path) -> None:
    """It lies in the wrong folder; the message says where it belongs."""
    stored(tmp_path, "nvidia-h200/0001_a.json", document("NVIDIA A100-SXM4-80GB"))
    problems: list[str] = []
    assert newest(tmp_path / "nvidia-h200", problems) is None
    assert "is of NVIDIA A100-SXM4-80GB: move it to baselines/nvidia-a100-sxm4-80gb/" in problems[0]


def test_the_recording_used_is_the_newest_with_pairs(tmp_path: Path) -> None:
    """Of any GPU, by day; or that of the GPU asked for."""
    later = "2027-01-01T00:00:00+00:00"
    stored(tmp_path, "nvidia-h200/0001_a.json", document())
    stored(tmp_path, "nvidia-b200/0001_a.json", document("NVIDIA B200", datetime=later))
    stored(tmp_path, "published/0001_a.json", document("A100", datetime="2028", pairs={}))
    problems: list[str] = []
    newest_of_all, asked = recorded(tmp_path, problems), recorded(tmp_path, problems, "nvidia-h200")
    assert newest_of_all
    assert asked
    assert (newest_of_all.label, asked.gpu) == ("NVIDIA B200, 2027-01-01", "NVIDIA H200")
    assert problems == []
    known = r"there are: nvidia-b200, nvidia-h200$"  # the published table cannot judge a claim
    with pytest.raises(BaselineError, match=f"no baseline with pairs for 'rtx' in .*; {known}"):
        recorded(tmp_path, problems, "rtx")


def test_no_recording_is_no_error(tmp_path: Path) -> None:
    """The first run anywhere."""
    assert recorded(tmp_path / "nowhere", []) is None
    assert newest(tmp_path / "nowhere", []) is None


def test_promotion_never_overwrites(tmp_path: Path) -> None:
    """Two recordings have two numbers."""
    source = stored(tmp_path, "build/baseline.json", document())
    other = stored(tmp_path, "build/other.json", document(claims={}))
    root = tmp_path / "baselines"
    assert promote(source, root) == root / "nvidia-h200" / "0001_2026-12-01.json"
    first = (root / "nvidia-h200" / "0001_2026-12-01.json").read_text()
    assert promote(other, root).name == "0002_2026-12-01.json"
    assert (root / "nvidia-h200" / "0001_2026-12-01.json").read_text() == first
    assert sorted(path.name for path in (root / "nvidia-h200").iterdir()) == [
        "0001_2026-12-01.json",
        "0002_2026-12-01.json",
    ]


@pytest.mark.parametrize("again", range(5))
def test_a_number_is_taken_by_one_of_those_that_promote_at_once(
    tmp_path: Path, again: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They ask for one together; each file is somebody's, and whole, also of two days."""
    start = Barrier(4)

    def together(content: dict[str, Any]) -> str:
        start.wait()
        return dumps(content)

    monkeypatch.setattr(promotion, "dumps", together)
    contents = [document(datetime=f"2026-12-0{number % 2 + 1}T02:00:00") for number in range(4)]
    sources = [
        stored(tmp_path, f"build/{number}.json", content | {"claims": {str(number): "holds"}})
        for number, content in enumerate(contents)
    ]
    with ThreadPoolExecutor(4) as pool:
        paths = list(pool.map(lambda source: promote(source, tmp_path), sources))
    assert [list(read(path).document["claims"]) for path in paths] == [["0"], ["1"], ["2"], ["3"]]
    assert len({path.name[:4] for path in paths}) == 4
    assert len(list((tmp_path / "nvidia-h200").iterdir())) == 4


def test_a_number_that_another_promotion_is_writing_is_left_to_it(tmp_path: Path) -> None:
    """Its unfinished file stays; one that was killed costs a number."""
    unfinished = stored(tmp_path, "nvidia-h200/.0001.json", "half")
    source = stored(tmp_path, "build/baseline.json", document())
    assert promote(source, tmp_path).name == "0002_2026-12-01.json"
    assert unfinished.read_text() == "half"


def test_there_is_no_number_after_9999(tmp_path: Path) -> None:
    """A file 10000_ would be overwritten by the next, and found by no gate."""
    last = stored(tmp_path, "nvidia-h200/9999_a.json", document(claims={}))
    source = stored(tmp_path, "build/baseline.json", document())
    with pytest.raises(BaselineError, match="no number left after 9999: give its newest file"):
        promote(source, tmp_path)
    assert list(last.parent.iterdir()) == [last]


def test_what_is_promoted_already_is_refused(tmp_path: Path) -> None:
    """The recording again, or a copy of the newest baseline; an older one may come back."""
    source = stored(tmp_path, "build/baseline.json", document())
    first = promote(source, tmp_path)
    copy = stored(tmp_path, "copy.json", first.read_text())
    for same in (source, copy, first):
        with pytest.raises(BaselineError, match=r"holds nothing new: .*0001_2026-12-01.json is"):
            promote(same, tmp_path)
    promote(stored(tmp_path, "build/other.json", document(claims={})), tmp_path)
    assert promote(copy, tmp_path).name == "0003_2026-12-01.json"


def test_a_promoted_file_is_slim_and_complete(tmp_path: Path) -> None:
    """All statistics, forty samples in nanoseconds, a pair a line, 128 pairs of 30 claims."""
    many = {f"reduce.c{index}": PAIRS["reduce.x"] for index in range(30)}
    source = stored(tmp_path, "build/baseline.json", document(pairs=many))
    path = promote(source, tmp_path / "baselines")
    slim = read(path).document
    stats = slim["benchmarks"][0]["stats"]
    assert {key: stats[key] for key in STATS} == STATS
    assert stats["data"] == [1.23457e-4] * 40
    assert "options" not in slim["benchmarks"][0]
    assert slim["pairs"] == many
    assert path.stat().st_size < 150_000
    assert "[0.00015, 0.0001]" in path.read_text()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (document("emulated sm_90"), "has no clock: record on a GPU"),
        (document(benchmarks=[]), "holds no benchmark: nothing was measured"),
        (document(machine_info={"node": "ci"}), "does not say which GPU"),
        (document(pairs={"x": float("nan")}), "NaN, which is not a time"),
        (document(pairs={"a.b": {"x": {}}}), "pairs of a.b, x are damaged ('numerator' is missing"),
        (document(pairs={"a.b": 1}), "pairs of a.b are damaged (it is 1"),
    ],
    ids=["emulated", "empty", "no-gpu", "nan", "no-numerator", "no-pairs"],
)
def test_what_must_not_be_promoted(
    tmp_path: Path, content: dict[str, Any], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command line exits 1 and leaves no file."""
    source = stored(tmp_path, "build/baseline.json", content)
    root = tmp_path / "baselines"
    assert main(["promote", str(source), "--root", str(root)]) == 1
    assert message in capsys.readouterr().err
    assert not list(root.rglob("*.json"))


@pytest.mark.parametrize("action", ["promote", "diff"])
def test_a_recording_that_was_never_made_is_made_first(
    tmp_path: Path, action: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Version control has never seen it; only what is promoted is restored from there."""
    path = tmp_path / "build" / "baseline.json"
    for content in (None, "{", json.dumps(document(device=5))):
        if content:
            stored(tmp_path, "build/baseline.json", content)
        assert main([action, str(path), "--root", str(tmp_path)]) == 1
        said = capsys.readouterr().err
        assert "run `tox -e record` on a GPU" in said
        assert "git checkout" not in said
    with pytest.raises(BaselineError, match=r"it is not there.*restore it with `git checkout`"):
        read(tmp_path / "nvidia-h200" / "0001_a.json")


def test_a_folder_that_cannot_be_written_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file stands in its place."""
    source, root = stored(tmp_path, "x.json", document()), stored(tmp_path, "baselines", "")
    assert main(["promote", str(source), "--root", str(root)]) == 1
    assert str(root) in capsys.readouterr().err


def test_promotion_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says where, and what next."""
    source = stored(tmp_path, "baseline.json", document())
    assert main(["promote", str(source), "--root", str(tmp_path)]) == 0
    assert "0001_2026-12-01.json: review it, then commit" in capsys.readouterr().out


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    """Readers see the old text or the new, never half of it."""
    target = stored(tmp_path, "x.json", "old")
    with pytest.raises(UnicodeEncodeError):
        baselines.write_whole(target, "new \ud800")
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]
    assert target.read_text() == "old"


@pytest.mark.parametrize(
    ("gpu", "folder"),
    [
        ("NVIDIA H200", "nvidia-h200"),
        ("NVIDIA GeForce RTX 4090", "nvidia-geforce-rtx-4090"),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "nvidia-h100-80gb-hbm3-mig-1g-10gb"),
        ("Tesla V100/PCIE (rev. a)", "tesla-v100-pcie-rev-a"),
    ],
)
def test_a_gpu_has_one_folder(gpu: str, folder: str) -> None:
    """Lower case, anything else a hyphen."""
    assert slug(gpu) == folder


def test_the_published_table_is_a_baseline() -> None:
    """Time x bandwidth is the 2^28 bytes of 2^26 floats, within the table's rounding."""
    published = read(baselines.PUBLISHED)
    assert published.gpu == "A100-80GB (seminar 2.1)"
    for bench in published.document["benchmarks"]:
        moved = bench["stats"]["median"] * bench["extra_info"]["GB/s"] * 1e9
        assert moved == pytest.approx(2**28, rel=0.03), bench["name"]
