"""Promotion of repeated runs, and what it would change."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from harness.baselines import BaselineError, newest, read
from harness.baselines.__main__ import difference, main
from harness.baselines.shape import RUNS
from harness.gate.compare import compare
from harness.gate.promotion import promote
from harness.gate.samples import timings
from harness.gate.tests.nights import NAMES, all_by, night, only, samples
from harness.gate.verdicts import Status
from harness.tests.fakes import ENTRY


def written(folder: Path, *documents: dict[str, Any]) -> list[Path]:
    """Write recordings run1.json, run2.json ..."""
    paths = [folder / f"run{number}.json" for number in range(1, len(documents) + 1)]
    for path, document in zip(paths, documents, strict=True):
        path.write_text(json.dumps(document))
    return paths


RUNS_OF_THREE = [night(), all_by(1.002), all_by(0.999)]


def test_runs_are_merged_with_the_medians_of_all(tmp_path: Path) -> None:
    """The run in the middle stands for the benchmark; its limit comes from all three."""
    first, *repeats = written(tmp_path, *RUNS_OF_THREE)
    path = promote(first, tmp_path / "baselines", repeats)
    assert path.name == "0001_2026-12-01.json"
    stored = timings(read(path).document)[NAMES[0]]
    alone = [timings(document)[NAMES[0]].median for document in RUNS_OF_THREE]
    assert stored.runs == tuple(alone)
    assert stored.median == sorted(alone)[1]
    row = compare(read(path).document, night()).rows[0]
    assert row.limit == pytest.approx(0.018, abs=0.002)
    assert "3 runs" in row.why


def test_more_runs_join_a_promoted_baseline(tmp_path: Path) -> None:
    """A new file of all of them; the old one stays."""
    first, *repeats, later = written(tmp_path, *RUNS_OF_THREE, all_by(1.001))
    promoted = promote(first, tmp_path / "baselines", repeats)
    before = promoted.read_text()
    both = promote(promoted, tmp_path / "baselines", [later])
    assert both.name == "0002_2026-12-01.json"
    assert len(timings(read(both).document)[NAMES[0]].runs) == 4
    assert len(read(both).document["device"]["copy GB/s of runs"]) == 4
    assert promoted.read_text() == before


def test_a_benchmark_that_one_run_lacks(tmp_path: Path) -> None:
    """It has the runs that saw it."""
    partial = night({name: samples() for name in NAMES[1:]})
    first, second = written(tmp_path, partial, night())
    stored = timings(read(promote(first, tmp_path / "baselines", [second])).document)
    assert [len(stored[name].runs) for name in NAMES[:2]] == [1, 2]


def dated(day: int, document: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """Return a recording of that day of December."""
    return document | {"datetime": f"2026-12-{day:02}T02:00:00+00:00"} | changed


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_claims_and_pairs_are_those_of_the_newest_run_that_has_them(
    tmp_path: Path, order: tuple[int, ...]
) -> None:
    """Whichever file is named first, also one of times alone; two sessions are not mixed."""
    one, two = ({"x / y": ENTRY | {"seconds": [[seconds, 1e-4]]}} for seconds in (1e-4, 2e-4))
    before = {"claims": {"a.b": "broken", "a.c": "holds"}, "pairs": {"a.b": one, "a.c": one}}
    after = {"claims": {"a.b": "holds"}, "pairs": {"a.b": two}}
    alone = {"claims": {}, "pairs": {}, "no claims": "--benchmark-only"}
    facts: list[dict[str, Any]] = [before, after, alone]
    days = zip((1, 2, 3), RUNS_OF_THREE, facts, strict=True)
    files = written(tmp_path, *(dated(day, run, **more) for day, run, more in days))
    first, *others = (files[place] for place in order)
    path = promote(first, tmp_path / "baselines", others)
    stored = read(path).document
    assert stored["claims"] == {"a.b": "holds", "a.c": "holds"}
    assert stored["pairs"] == {"a.b": two, "a.c": one}
    assert path.name == "0001_2026-12-03.json"
    lacking = compare(stored, dated(4, night(), claims={"a.b": "holds"}))
    assert lacking.missing_claims == ["a.c"]


def test_times_alone_are_no_baseline(tmp_path: Path) -> None:
    """Without the claims in it, one that vanishes would be missed by nobody."""
    alone = [run | {"claims": {}, "no claims": "--benchmark-only"} for run in RUNS_OF_THREE]
    first, *others = written(tmp_path, *alone)
    with pytest.raises(
        BaselineError, match=r"run3\.json: --benchmark-only left out the claims; add"
    ):
        promote(first, tmp_path / "baselines", others)


def test_a_baseline_names_all_cards_that_it_was_recorded_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One recording, older than that, does not say; a promoted baseline has several."""
    known: list[dict[str, Any]] = [{"cards": ["GPU-b"]}, {}, {"cards": ["GPU-b", "GPU-a"]}]
    runs = zip(RUNS_OF_THREE, known, strict=True)
    first, *others = written(
        tmp_path, *(run | {"device": run.get("device", {}) | own} for run, own in runs)
    )
    root = tmp_path / "baselines"
    path = promote(first, root, others)
    assert read(path).document["device"]["cards"] == ["GPU-a", "GPU-b"]
    for files, said in (
        ([first, *others], "recorded on 2 cards: GPU-a, GPU-b"),
        ([first], "recorded on 1 card: GPU-b"),
        (others[:1], "recorded on a card without a UUID, or on several"),
    ):
        assert main(["diff", *map(str, files), "--root", str(root)]) == 0
        assert said in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (night(gpu="NVIDIA B200"), "differ in GPU NVIDIA H200 -> NVIDIA B200: merge only runs"),
        (night(power_cap_w=500.0), r"differ in power cap in W 700.0 -> 500.0"),
        (only(samples(), grid=264), r"test\[a\] differs between .* in grid 132 -> 264"),
        (only(samples(), source="bb"), "kernel source aa -> bb: merge only runs of the same code"),
        (night({}), "holds no benchmark"),
        (night(), r"run1.json and .*run2.json hold the same run"),
        (all_by(1.1), r"run1.json: its 8 benchmarks moved together"),
        (only([0.0] * 20), r"run2.json: benchmark .*\[a\] cannot be stored"),
    ],
    ids=["gpu", "cap", "grid", "source", "empty", "copy", "disturbed", "untrue"],
)
def test_what_must_not_be_merged(tmp_path: Path, other: dict[str, Any], message: str) -> None:
    """Nothing is written; what is refused cannot be looked at as if it were not."""
    first, second = written(tmp_path, night(), other)
    with pytest.raises(BaselineError, match=message):
        promote(first, tmp_path / "baselines", [second])
    with pytest.raises(BaselineError, match=message):
        difference([first, second], tmp_path / "baselines")
    assert not (tmp_path / "baselines").exists()


def test_the_command_line_merges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`promote run1.json run2.json run3.json`."""
    files = [str(path) for path in written(tmp_path, *RUNS_OF_THREE)]
    root = tmp_path / "baselines"
    assert main(["promote", *files, "--root", str(root)]) == 0
    assert "review it, then commit" in capsys.readouterr().out
    found = newest(root / "nvidia-h200", [])
    assert found
    assert len(found.document["benchmarks"][0]["extra_info"][RUNS]) == 3


def test_what_a_promotion_would_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The gate's table against the newest baseline; nothing is written."""
    (old,) = written(tmp_path, night())
    root = tmp_path / "baselines"
    promote(old, root)
    times = {name: samples(seed=seed) for seed, name in enumerate([*NAMES[1:], "new"], 1)}
    (new,) = written(tmp_path, night(times | {NAMES[1]: samples(8e-5)}))
    assert main(["diff", str(new), "--root", str(root)]) == 0
    out = capsys.readouterr().out
    assert "0001_2026-12-01.json" in out
    for line in (
        f"missing         {NAMES[0]}",
        f"faster          {NAMES[1]}",
        "new             new",
    ):
        assert line in out
    assert "6 same" in out
    assert len(list(root.rglob("*.json"))) == 1


@pytest.mark.parametrize("action", ["diff", "promote"])
def test_the_limits_that_come_of_the_runs_are_shown(
    tmp_path: Path, action: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Widest first: whoever promotes sees which slow-downs will pass."""
    noisy = [only(samples(seconds)) for seconds in (1.03e-4, 1e-4, 0.98e-4)]
    files = written(tmp_path, *noisy)
    for run, path in enumerate(files):
        document = json.loads(path.read_text())
        for benchmark in document["benchmarks"][1:]:
            benchmark["stats"]["median"] *= 1 + run / 1000
        path.write_text(json.dumps(document))
    assert main([action, *map(str, files), "--root", str(tmp_path / "baselines")]) == 0
    shown = capsys.readouterr().out.splitlines()
    at = shown.index("limits, the widest of 8:")
    widest = [float(line.split()[0]) for line in shown[at + 1 : at + 6]]
    assert shown[at + 1].endswith(f"% (3 runs)  {NAMES[0]}")
    assert widest == sorted(widest, reverse=True)
    assert widest[0] > 20 > 2 > widest[1]


def test_the_first_promotion_differs_from_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All is new."""
    (new,) = written(tmp_path, night())
    assert main(["diff", str(new), "--root", str(tmp_path / "baselines")]) == 0
    assert "8 new" in capsys.readouterr().out
    assert main(["diff", str(tmp_path / "none.json")]) == 1


def test_disturbed_benchmarks_are_not_stored(tmp_path: Path) -> None:
    """Why a benchmark was not comparable concerns one night only."""
    (new,) = written(tmp_path, night() | {"not comparable": {"x": "shared"}})
    assert "not comparable" not in read(promote(new, tmp_path / "baselines")).document


def test_nothing_in_a_baseline_is_executed(tmp_path: Path) -> None:
    """Names and facts are text: they are printed, and nothing else."""
    hostile = only(samples(), kernel="__import__('os').system('touch hostile')")
    hostile["benchmarks"][0]["fullname"] = "$(touch hostile)"
    (path,) = written(tmp_path, hostile)
    promote(path, tmp_path / "baselines")
    found = compare(read(path).document, night())
    assert found.of(Status.MISSING)[0].name == "$(touch hostile)"
    assert not Path("hostile").exists()
