"""`python -m harness.gate`: what it reads, prints, writes and returns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, Final

import pytest

from harness.baselines import __main__ as promotes
from harness.gate.tests.folders import Folder
from harness.gate.tests.nights import NAMES, night, only, samples


def test_a_quiet_night(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 0, one line of totals, both files."""
    assert folder.gate() == 0
    out = capsys.readouterr().out
    assert out.startswith("gate against 0001_a.json (NVIDIA H200, 2026-12-01)\n8 same\nexit 0: ")
    assert folder.found()["totals"] == {"same": 8}
    assert (folder.build / "gate.md").read_text().count("| same |") == 8


def test_a_slow_down(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 1; the table has the benchmark, both times and the limit."""
    folder.write("night.json", only(samples(1.1e-4)))
    assert folder.gate() == 1
    out = capsys.readouterr().out
    assert f"slower          {NAMES[0]}  99.9 µs -> 110 µs" in out
    row = folder.found()["benchmarks"][0]
    assert row["status"] == "slower"
    assert row["interval"][0] > 1 + row["limit"]
    assert "| slower | `suites/test_x.py::test[a]` | 99.9 µs | 110 µs |" in (
        folder.build / "gate.md"
    ).read_text("utf-8")


def test_the_first_night_on_a_card(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 3, neither green nor red, and what to do."""
    folder.write("night.json", night(gpu="NVIDIA B200"))
    assert folder.gate() == 3
    assert "No baseline of this GPU: promote tonight's run" in capsys.readouterr().out
    assert folder.found()["exit"] == 3


def test_a_baseline_of_another_gpu_by_name(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    """Said once, not in every row."""
    other = folder.write("other.json", night(gpu="NVIDIA B200"))
    assert folder.gate("--baseline", str(other)) == 3
    out = capsys.readouterr().out
    assert out.count("GPU NVIDIA B200 -> NVIDIA H200") == 1
    assert "8 not comparable" in out


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("night.json", '{"benchmarks": [', (), "night.json cannot be read"),
        ("night.json", "", (), "night.json cannot be read"),
        ("night.json", json.dumps(only([float("nan")] * 20)), (), "NaN, which is not a time"),
        ("night.json", night() | {"benchmarks": [{"fullname": "a"}]}, (), "benchmark a cannot be"),
        ("night.json", night() | {"benchmarks": ["a"]}, (), "benchmark ? cannot be read"),
        ("night.json", only([10**400]), (), "benchmark suites/test_x.py::test[a] cannot be"),
        ("night.json", night() | {"claims": []}, (), "'claims' is []"),
        ("other.json", "", ("--baseline", ""), "--baseline is empty: name a file"),
        ("other.json", "", ("--baseline", "nowhere.json"), "nowhere.json cannot be read"),
    ],
    ids=[
        "cut",
        "empty",
        "NaN",
        "no-stats",
        "no-object",
        "huge",
        "claims",
        "empty-option",
        "no-file",
    ],
)
def test_what_cannot_be_used_is_exit_2(
    folder: Folder,
    capsys: pytest.CaptureFixture[str],
    name: str,
    content: dict[str, Any] | str,
    options: tuple[str, ...],
    message: str,
) -> None:
    """One line that names the file; last night's verdict does not stay."""
    assert folder.gate() == 0
    path = folder.write(name, content)
    before = path.read_text()
    assert folder.gate(*options) == 2
    assert message in capsys.readouterr().err
    assert not (folder.build / "gate.json").exists()
    assert path.read_text() == before


DAMAGE: Final[list[tuple[str, str, Any]]] = [
    *(("device", "copy GB/s of runs", damage) for damage in ([0, 1, 2], "abc", [-1, 2, 3], [None])),
    *(("device", "copy GB/s", damage) for damage in (0, 10**400, True)),
    ("device", "throttle_reasons", [[1]]),
    *(
        ("extra_info", "run medians", damage)
        for damage in (-1, "x", [None], {"a": 1}, [1e-300, 1e300, 1e300])
    ),
    ("extra_info", "throttle_reasons", [[1]]),
    ("extra_info", "telemetry", {"throttle_reasons": -1}),
    ("extra_info", "dropped samples", [1]),
    ("extra_info", "bytes", -1),
    ("stats", "median", "x"),
    ("stats", "data", [None]),
]


@pytest.mark.parametrize(("where", "key", "damage"), DAMAGE, ids=lambda each: f"{each!s:.20}")
def test_a_damaged_value_is_exit_2_and_is_not_promoted(
    folder: Folder, capsys: pytest.CaptureFixture[str], where: str, key: str, damage: Any
) -> None:
    """In the baseline or in the night: the message names the value and says what to do."""
    damaged = night()
    place = damaged if where == "device" else damaged["benchmarks"][0]
    place[where] |= {key: damage}
    baseline = folder.write("damaged.json", damaged)
    assert folder.gate("--baseline", str(baseline)) == 2
    folder.write("night.json", damaged)
    assert folder.gate() == 2
    assert promotes.main(["promote", str(baseline), "--root", str(folder.path / "new")]) == 1
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 3
    assert all(repr(key) in line for line in said)
    assert all("run `tox -e " in line or "record again" in line for line in said)
    assert not (folder.path / "new").exists()


def in_first(place: str, **values: Any) -> dict[str, Any]:
    """Return a night whose first benchmark holds other values."""
    changed = night()
    changed["benchmarks"][0][place] |= values
    return changed


TWICE: Final = only(samples(3e-4))
TWICE["benchmarks"] += night()["benchmarks"][:1]
UNSOUND: Final = {
    f"benchmark {NAMES[0]} stands there 2 times": TWICE,
    f"'not comparable' of {NAMES[0]} is ['x']": night() | {"not comparable": {NAMES[0]: ["x"]}},
    f"'clock' of {NAMES[0]} is ['cupti']": in_first("extra_info", clock=["cupti"]),
    f"'sm_clock_mhz' of {NAMES[0]} is 0": in_first("extra_info", sm_clock_mhz=0),
    f"'memory_clock_mhz' of {NAMES[0]} is True": in_first("extra_info", memory_clock_mhz=True),
    f"'sm_clock_mhz' in the telemetry of {NAMES[0]} is []": in_first(
        "extra_info", telemetry={"sm_clock_mhz": []}
    ),
    "the verdict on reduce.v3 is 'BROKEN'": night(claims={"reduce.v3": "BROKEN"}),
    "the verdict on reduce.v3 is ['holds']": night() | {"claims": {"reduce.v3": ["holds"]}},
}


@pytest.mark.parametrize("message", UNSOUND)
def test_what_no_verdict_can_rest_on_is_exit_2(
    folder: Folder, capsys: pytest.CaptureFixture[str], message: str
) -> None:
    """In the night, in a baseline that is named, and in the promoted one; the file is told."""
    damaged = UNSOUND[message]
    named = folder.write("named.json", damaged)
    assert folder.gate("--baseline", str(named)) == 2
    assert capsys.readouterr().err == f"{named} is damaged ({message}): record again\n"
    promoted = folder.write("baselines/nvidia-h200/0002_b.json", damaged)
    assert folder.gate() == 2
    assert capsys.readouterr().err == f"{promoted} is damaged ({message}): record again\n"
    night = folder.write("night.json", damaged)
    assert folder.gate() == 2
    assert capsys.readouterr().err == f"{night} is damaged ({message}): record again\n"


def test_a_gpu_whose_only_baseline_is_cut_is_not_one_without_any(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    """To promote tonight's run over it would be the wrong advice."""
    cut = folder.write("baselines/nvidia-h200/0001_a.json", '{"benchmarks": [')
    assert folder.gate() == 2
    assert f"{cut} cannot be read" in capsys.readouterr().err


def test_a_baseline_without_benchmarks_is_no_verdict(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    """All is new, and none of it was compared."""
    assert folder.gate("--baseline", str(folder.write("empty.json", night({})))) == 3
    assert "The baseline holds no benchmark: promote tonight's run" in capsys.readouterr().out


@pytest.mark.parametrize("environment", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "POSIX"}])
def test_a_terminal_that_knows_no_greek_changes_no_exit_code(
    folder: Folder, environment: dict[str, str]
) -> None:
    """Of a row with microseconds in it; the files are whole."""
    folder.write("night.json", only(samples(9e-5)))
    words = (str(folder.path / "night.json"), "--out", str(folder.build))
    plain = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    inherited = {k: v for k, v in os.environ.items() if k != "PYTHONIOENCODING"}  # tox sets it
    found = subprocess.run(
        [sys.executable, "-m", "harness.gate", *words, "--root", str(folder.path / "baselines")],
        env={**inherited, **plain, **environment},
        capture_output=True,
        check=False,
    )
    assert (found.returncode, found.stderr) == (0, b"")
    assert b" ?s" in found.stdout
    assert "µs" in (folder.build / "gate.md").read_text("utf-8")


def test_a_name_that_no_file_can_hold_is_exit_2(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    """Half of a pair of surrogates: JSON may have it, UTF-8 may not."""
    folder.write("night.json", night({"\ud800": samples()}))
    assert folder.gate() == 2
    assert "surrogates not allowed" in capsys.readouterr().err


def test_a_sample_that_no_ratio_can_be_taken_of_is_told_in_its_row(folder: Folder) -> None:
    """Each is a number, and their quotient is none."""
    folder.write("night.json", only([*samples(rounds=19), 1e308]))
    assert folder.gate() == 0
    row = folder.found()["benchmarks"][0]
    assert row["status"] == "not comparable"
    assert "the samples are no times" in row["why"]


def test_a_spoilt_newest_baseline_is_named(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    """The one before it is no anchor: what became faster since may become slow again."""
    folder.write("baselines/nvidia-h200/0002_b.json", '{"ben')
    assert folder.gate() == 2
    assert "0002_b.json cannot be read" in capsys.readouterr().err


def test_the_summary_of_a_job(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Added to what is there."""
    summary = folder.write("summary.md", "# Claims\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    folder.gate()
    assert summary.read_text().startswith("# Claims\n# Gate against 0001_a.json")


def test_a_folder_that_cannot_be_written_is_exit_2(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not 1, which would say that something became slower."""
    folder.build.write_text("")
    assert folder.gate() == 2
    assert "build" in capsys.readouterr().err


def test_a_summary_that_cannot_be_written_changes_no_verdict(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder of that name."""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder.path))
    assert folder.gate() == 0
    assert "not written" in capsys.readouterr().err


def test_a_number_too_large_for_a_float_is_no_time(folder: Folder) -> None:
    """JSON may hold 1e999; the row says so, and the report is still JSON."""
    folder.write("night.json", json.dumps(only([7.0] * 20)).replace("7.0", "1e999"))
    assert folder.gate() == 0
    row = folder.found()["benchmarks"][0]
    assert (row["status"], row["tonight"]) == ("not comparable", None)
    assert "took inf s" in row["why"]
