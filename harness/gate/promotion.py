"""A recording, or several of one card, becomes the next numbered file, never over another."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from harness.baselines import NUMBERED, ROOT, Baseline, BaselineError, read, slug
from harness.baselines.merging import merged
from harness.baselines.shape import NO_CLAIMS, NOT_COMPARABLE
from harness.gate.admission import refuse_copies, refuse_disturbed, refuse_untrue

ROUNDS_KEPT: Final = 40
MOST: Final = 9999  # what four digits hold; a file with five is found by nobody
PAIR: Final = re.compile(r"\[\s+([\d.e+-]+),\s+([\d.e+-]+)\s+\]")


def promote(source: Path, root: Path = ROOT, repeats: Sequence[Path] = ()) -> Path:
    """Copy a recording into its GPU's folder under the next free number, slimmed.

    `repeats` are more runs of the same code and model: their medians stay beside those of
    `source`, and the gate takes its limits from how far they lie apart.

    Raises
    ------
    BaselineError
        Unreadable, empty, without a GPU, or of the emulated device, whose times mean nothing; the
        runs are of different cards, settings or kernels; the newest baseline is no other; or there
        is no number left.
    """
    new = together([source, *repeats])
    folder = root / slug(new.gpu)
    text = dumps(slimmed(new.document))
    _refuse_nothing_new(source, text, folder)
    folder.mkdir(parents=True, exist_ok=True)
    return _numbered(folder, new.date or "undated", text)


def together(sources: Sequence[Path]) -> Baseline:
    """Return the one baseline that recordings make, under the path of the first.

    Raises
    ------
    BaselineError
        One may not be promoted, or not with the others: of another card or code, the same run, or
        a disturbed one. Or none has claims, as each was told to leave them out: a baseline of times
        alone would let every claim vanish unseen.
    """
    runs = [candidate(path) for path in sources]
    document = merged(runs)
    options = [run.document.get(NO_CLAIMS) for run in runs]
    if all(options):
        raise BaselineError(
            f"{', '.join(map(str, sources))}: {options[0]} left out the claims; "
            "add a recording of `tox -e record`, or the promoted baseline"
        )
    refuse_copies(runs)
    refuse_disturbed(runs)
    return Baseline(sources[0], document)


def _refuse_nothing_new(source: Path, text: str, folder: Path) -> None:
    last = max(folder.glob(NUMBERED), default=None)
    if last and last.read_bytes() == text.encode():
        raise BaselineError(f"{source} holds nothing new: {last} is the same; record again")


def candidate(source: Path) -> Baseline:
    """Read a recording that may be promoted.

    Raises
    ------
    BaselineError
        Unreadable, empty, without a GPU, of the emulated device, or with pairs or samples that are
        no times.
    """
    baseline = read(source)
    if baseline.gpu.startswith("emulated"):
        raise BaselineError(
            f"{source} is of the {baseline.gpu}, which has no clock: record on a GPU"
        )
    if not baseline.document["benchmarks"]:
        raise BaselineError(
            f"{source} holds no benchmark: nothing was measured; run `tox -e record`"
        )
    baseline.check_pairs()
    refuse_untrue(baseline)
    return baseline


def _numbered(folder: Path, day: str, text: str) -> Path:
    """Write under the next number that nobody has, nor is about to take."""
    last = max((int(path.name[:4]) for path in folder.glob(NUMBERED)), default=0)
    taken = (_taken(folder, f"{number:04}", day, text) for number in range(last + 1, MOST + 1))
    if target := next(filter(None, taken), None):
        return target
    raise BaselineError(
        f"{folder} has no number left after {MOST}: give its newest file the number 0001, and "
        "remove the others, which version control keeps"
    )


def _taken(folder: Path, number: str, day: str, text: str) -> Path | None:
    """Write the file of one number whole; None if it is another's.

    The unfinished file is the claim to the number, made by one process alone. Whoever makes it next
    finds the finished one, whatever its day.
    """
    unfinished = folder / f".{number}.json"
    try:
        unfinished.touch(exist_ok=False)
    except FileExistsError:
        return None
    try:
        if any(folder.glob(f"{number}_*")):
            return None
        unfinished.write_text(text, "utf-8")
        return unfinished.replace(folder / f"{number}_{day}.json")
    finally:
        unfinished.unlink(missing_ok=True)


def slimmed(document: dict[str, Any]) -> dict[str, Any]:
    """Return what a comparison needs: all statistics, few samples in nanoseconds, the pairs."""
    dropped = ("benchmarks", NOT_COMPARABLE, NO_CLAIMS)
    kept = {key: value for key, value in document.items() if key not in dropped}
    return {**kept, "benchmarks": [_slimmed(each) for each in document["benchmarks"]]}


def _slimmed(benchmark: dict[str, Any]) -> dict[str, Any]:
    stats = dict(benchmark["stats"])
    if "data" in stats:
        stats["data"] = [round(seconds, 9) for seconds in stats["data"][:ROUNDS_KEPT]]
    kept = {key: value for key, value in benchmark.items() if key not in ("options", "params")}
    # the comparison CLI reads params; what they hold beyond the test id is not needed
    return {**kept, "params": None, "stats": stats}


def dumps(document: dict[str, Any]) -> str:
    """Return the JSON of a baseline, one pair of seconds a line."""
    text = json.dumps(document, indent=1, sort_keys=True, allow_nan=False)
    return PAIR.sub(r"[\1, \2]", text) + "\n"
