"""Prove the verdicts on this GPU: `python -m harness.selftest`.

Writes baselines/<gpu>/selftest.json. Exit 0: all targets are reached; 1: one is not; 2: no GPU.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from harness.baselines import ROOT, slug, write_whole
from harness.devices import NoGPU, TimedDevice
from harness.selftest import fleet
from harness.selftest.repeats import exit_codes
from harness.selftest.session import plan, run
from harness.selftest.targets import lines, missed
from harness.visible import visible_gpus
from harness.workbench import Workbench

NOTHING: Final = {
    "aa": {"trials": 0, "slower": 0, "faster": 0, "broken": 0},
    "sabotage": [],
    "repeat_runs": [],
}
KEPT: Final = 16  # all of them stay prepared


def main(arguments: list[str] | None = None) -> int:
    """Run what was asked for, write the document, and return the exit code."""
    chosen = _parser().parse_args(arguments)
    if chosen.all_gpus:
        return fleet.main(chosen.limit)
    if chosen.probe:
        print(json.dumps(fleet.probe(_gpu())))
        return 0
    try:
        codes = _repeated(*chosen.repeat) if chosen.repeat else None
        gpu = _gpu()
    except NoGPU as why:
        print(why, file=sys.stderr)
        return 2
    path = chosen.output or ROOT / slug(gpu.name) / "selftest.json"
    document = _stored(path) if chosen.only_repeat else _measured(gpu, chosen)
    if codes is not None:
        document["repeat_runs"] = codes
    return _concluded(document, path)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m harness.selftest", description=__doc__)
    parser.add_argument("--trials", type=int, default=200, help="comparisons of A with A")
    parser.add_argument("--sabotage-trials", type=int, default=50, help="per planted slow-down")
    parser.add_argument("--seconds", type=float, default=300.0, help="stop comparing after that")
    parser.add_argument(
        "--repeat", nargs=2, metavar=("COMMAND", "N"), help="run it N times, keep the exit codes"
    )
    parser.add_argument(
        "--only-repeat", action="store_true", help="leave the rest of the stored document as it is"
    )
    parser.add_argument("--output", type=Path, help="instead of baselines/<gpu>/selftest.json")
    parser.add_argument(
        "--all-gpus", action="store_true", help="time every visible GPU and name the odd one out"
    )
    parser.add_argument(
        "--limit", type=float, default=fleet.LIMIT, help="of a GPU's distance from the median"
    )
    parser.add_argument("--probe", action="store_true", help=argparse.SUPPRESS)
    return parser


def _repeated(command: str, times: str) -> list[int]:
    """Repeat first, with no context of our own: two processes on one GPU disturb each other."""
    if not visible_gpus():
        _gpu()  # says why there is none, before each run does
    return exit_codes(command, int(times))


def _gpu() -> TimedDevice:
    from harness.devices.cuda import CudaDevice

    return CudaDevice()


def _measured(gpu: TimedDevice, chosen: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        what = plan(Path(folder), chosen.trials, chosen.sabotage_trials)
        return run(Workbench(gpu, KEPT), what, chosen.seconds, _say)


def _say(text: str) -> None:
    print(text, flush=True)


def _stored(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else dict(NOTHING)
    return found


def _concluded(document: dict[str, Any], path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(document, indent=1) + "\n")
    problems = missed(document)
    for line in (*lines(document), *problems, f"written to {path}"):
        print(line)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
