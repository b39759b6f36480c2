"""Nights and the verdicts they must get: public cases of wrong timing (T), of baselines and CI (B).

test_cases.py names a public report of each; "own" are further ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from harness.baselines.shape import RUNS
from harness.gate.compare import Exit
from harness.gate.tests.nights import (
    BYTES,
    NAMES,
    all_by,
    night,
    only,
    promoted,
    ramp,
    samples,
)
from harness.gate.verdicts import Status

COPY: Final = {"copy GB/s": 4327.4 / 1.14}
PEAK: Final = 4814.3e9
CAPPED: Final = {"throttle_reasons": ["software power cap"], "sm_clock_mhz": 1700}
AS_FAST: Final = {**CAPPED, "sm_clock_mhz": 1980}
HALF: Final = [1.15e-4, 1.28e-4] * 10  # the limit and the cap explain 21.5 %
UNREAD: Final = {**CAPPED, "sm_clock_mhz": None, "memory_clock_mhz": None}
IDLE: Final = {"throttle_reasons": ["idle"], "sm_clock_mhz": 345}
SLOWED: Final = {"throttle_reasons": ["hardware slowdown"], "sm_clock_mhz": [1500, 1550]}
MOSTLY_LUCKY: Final = [*samples(rounds=8), *[2e-5] * 12]
AT_PEAK: Final = [BYTES / (PEAK * (1 + 5e-5))] * 20  # which is stored with one digit
LUCKY: Final = [*samples(rounds=18), 2e-5, 2.1e-5]  # both at three times the peak
RENAMED: Final = {f"{name}-new": samples() for name in NAMES}
COARSE: Final = {"clock": "wddm"}


@dataclass(frozen=True)
class Case:
    """A night against a baseline, what the first benchmark gets and why, and the exit code."""

    id: str
    what: str
    before: dict[str, Any] | None
    now: dict[str, Any]
    status: Status
    exit: Exit
    why: str


def first(**facts: Any) -> dict[str, Any]:
    """Return a baseline whose first benchmark has these facts."""
    return only(samples(), **facts)


COARSE_ONCE: Final = only([2e-6] * 20, **COARSE)

SAME, SLOWER, FASTER = Status.SAME, Status.SLOWER, Status.FASTER
NEW, MISSING, CHANGED, APART = Status.NEW, Status.MISSING, Status.CHANGED, Status.NOT_COMPARABLE
GREEN, RED, NO_VERDICT = Exit.GREEN, Exit.RED, Exit.NO_VERDICT

CASES: Final = [
    Case("B01", "no baseline yet", None, night(), NEW, NO_VERDICT, "promote"),
    Case("B03", "all renamed", night(), night(RENAMED), MISSING, RED, "renamed, skipped"),
    Case("B05", "n changed", night(), only(samples(4e-4), bytes=4 * BYTES), CHANGED, GREEN, "work"),
    Case("B09", "empty run", night(), night({}), MISSING, RED, "not measured tonight"),
    Case("B13", "clock of the moment", night(), night(sm_clock_mhz=1935), SAME, GREEN, "+0.00 %"),
    Case("B15", "Python", night(python="3.11.9"), night(python="3.12.4"), SAME, GREEN, ""),
    Case("B21", "environment", night(), all_by(1.14, **COPY), APART, NO_VERDICT, "machine: +14"),
    Case(
        "B23",
        "2 us to 3 us, clock of 5 us",
        only([2e-6] * 20, bytes=1, **COARSE),
        only([3e-6] * 20, bytes=1, **COARSE),
        APART,
        GREEN,
        "too short for its clock: limit 500 %",
    ),
    Case(
        "B25",
        "two-level noise",
        promoted(between=0.08),
        only(samples(1.1e-4, 0.003)),
        SAME,
        GREEN,
        "5 runs",
    ),
    Case("B31", "one round", night(), only(samples(rounds=1)), APART, GREEN, "spread is unknown"),
    Case("T09", "in L2", night(), only(samples(3.5e-5)), APART, GREEN, "above the 48"),
    Case("T11", "two lucky samples", night(), only(LUCKY), SAME, GREEN, "2 of 20 samples refused"),
    Case("T13", "falls", night(), only(ramp(1.07e-4, 0.15)), APART, GREEN, "drift by +14.9"),
    Case("T13", "rises", night(), only(ramp(1e-4, -0.15)), APART, GREEN, "drift by -14.9"),
    Case("own", "drift, slow", night(), only(ramp(3e-4, 0.07)), SLOWER, RED, "drift by +6.99"),
    Case("own", "drift, fast", night(), only(ramp(8e-5, 0.07)), FASTER, GREEN, "; promote"),
    Case("own", "half explained", night(), only(ramp(1.1e-4, 0.07)), APART, GREEN, "+10"),
    Case("own", "drift unsure", night(), only(ramp(1e-4, 0.055, 0.01)), SAME, GREEN, "limit 5"),
    Case(
        "T13",
        "throttled from the start",
        night(),
        only(samples(1.15e-4), **CAPPED),
        APART,
        GREEN,
        "throttled tonight by software power cap, whose clocks explain +16.47 %",
    ),
    Case(
        "T13",
        "the baseline was throttled",
        first(telemetry=SLOWED),
        only(samples(8e-5)),
        APART,
        GREEN,
        "throttled in the baseline by hardware slowdown, whose clocks explain +32.00 %",
    ),
    Case("own", "cap, slow", night(), only(samples(3e-4), **CAPPED), SLOWER, RED, "explain +16"),
    Case("own", "half capped", night(), only(HALF, **CAPPED), APART, GREEN, "explain +16.47 %"),
    Case("own", "slowed", first(telemetry=SLOWED), only(samples(6.5e-5)), FASTER, GREEN, "+32"),
    Case("own", "unread", night(), only(samples(1.09e-4), **UNREAD), APART, GREEN, "+5.26 %"),
    Case("own", "unread, slow", night(), only(samples(1.2e-4), **UNREAD), SLOWER, RED, "+5.26 %"),
    # capped both times is how it runs: which clock that leaves is the kernel's own doing
    Case("own", "both capped", first(**AS_FAST), only(samples(1.1e-4), **CAPPED), SLOWER, RED, "+"),
    Case("own", "both, fast", first(**CAPPED), only(samples(9e-5), **AS_FAST), FASTER, GREEN, "-"),
    Case("own", "idle", night(), only(samples(1.1e-4), **IDLE), SLOWER, RED, "+10"),
    Case("T11", "most lucky", night(), only(MOSTLY_LUCKY), SAME, GREEN, "12 of 20 samples refused"),
    Case("own", "at the peak", only(AT_PEAK), only(AT_PEAK), SAME, GREEN, "+0.00 %, limit 5 %"),
    Case("T15", "boost", night(), only(samples(9e-5), flop=10**12), FASTER, GREEN, "promote"),
    Case(
        "T21", "negative", night(), only([-1.78e-3, -1e-6] * 9), APART, GREEN, "before the kernel"
    ),
    Case("T25", "WSL", night(host="Linux"), night(host="WSL"), APART, NO_VERDICT, "host Linux ->"),
    Case("T25", "all zero", night(), only([0.0] * 20), APART, GREEN, "took 0.0 s"),
    Case("T25", "one zero", night(), only([*samples(rounds=19), 0.0]), APART, GREEN, "took 0.0 s"),
    Case("T25", "zero run", first(**{RUNS: [1e-4, 0.0, 1e-4]}), night(), APART, GREEN, "took 0.0"),
    Case("T25", "zero baseline", only([0.0] * 20), night(), APART, GREEN, "the baseline took 0"),
    Case("T27", "a slice", night(host="node"), night(host="1/8"), APART, NO_VERDICT, "-> 1/8"),
    Case("own", "far too short", COARSE_ONCE, only([1e-4] * 20, **COARSE), SLOWER, RED, "steps"),
    Case("own", "wild runs", promoted(0.5, 3), night(), SAME, GREEN, "(3 runs)"),
    Case("T31", "bimodal", only([6.3e-5] * 20), only([6.3e-5, 9.4e-5] * 10), APART, GREEN, "two"),
    Case("own", "identical", promoted(), night(), SAME, GREEN, "limit"),
    Case("own", "speed-up", promoted(), only(samples(9e-5)), FASTER, GREEN, "; promote"),
    Case("own", "slow-down", promoted(), only(samples(1.02e-4)), SLOWER, RED, "+2."),
    Case("own", "outlier night", promoted(), only(samples(1.5e-4)), SLOWER, RED, "+50."),
    Case("own", "everything, not the copy", night(), all_by(1.14), SLOWER, RED, "+14.00 %"),
    Case(
        "own",
        "further than the machine",
        night(),
        {**all_by(1.14, **COPY), "benchmarks": only(samples(2e-4))["benchmarks"][:1]
         + all_by(1.14)["benchmarks"][1:]},
        SLOWER,
        RED,
        "further than the machine (+14.00 %)",
    ),
    Case("own", "source", night(), only(samples(), source="bb"), CHANGED, GREEN, "source aa -> bb"),
    Case("own", "fast source", night(), only(samples(8e-5), source="b"), CHANGED, GREEN, "aa -> b"),
    Case("own", "slow source", night(), only(samples(2e-4), source="b"), SLOWER, RED, "aa -> b"),
    Case("own", "old baseline", first(source=None), night(), SAME, GREEN, "limit"),
    Case("own", "grid", night(), only(samples(2e-4), grid=264), CHANGED, GREEN, "grid 132 -> 264"),
    Case("own", "block", night(), only(samples(), block=64), CHANGED, GREEN, "block 256 -> 64"),
    Case("own", "defines", night(), only(samples(), kernel="v7"), CHANGED, GREEN, "-> v7"),
    Case("own", "other GPU", night(), night(gpu="NVIDIA B200"), APART, NO_VERDICT, "GPU NVIDIA"),
    Case("own", "MIG", night(), night(mig=True), APART, NO_VERDICT, "MIG False -> True"),
    Case("own", "cap", night(), night(power_cap_w=500.0), APART, NO_VERDICT, "700.0 -> 500.0"),
    Case("own", "ECC", night(), night(ecc=False), APART, NO_VERDICT, "ECC True -> False"),
    Case("own", "CUDA", night(), night(nvrtc="14.0"), APART, NO_VERDICT, "CUDA 13 -> 14"),
    Case("own", "CUDA minor", night(), night(nvrtc="13.5"), SAME, GREEN, "+0.00 %"),
    Case("own", "clock", night(), night(clock="events"), APART, NO_VERDICT, "cupti -> events"),
    Case("own", "one clock", night(), only(samples(), clock="events"), APART, GREEN, "-> events"),
    Case("own", "unknown ECC", night(), night(ecc=None), APART, NO_VERDICT, "ECC True -> unknown"),
    Case("own", "old baseline's ECC", night(ecc=None), night(), SAME, GREEN, "+0.00 %"),
    Case("own", "no facts", night(), night() | {"device": {}}, APART, NO_VERDICT, "CUDA 13 -> unk"),
    Case("own", "nothing before", night({}), night(), NEW, NO_VERDICT, "promote"),
    Case("own", "infinite", night(), only([float("inf")] * 20), APART, GREEN, "returned no time"),
    Case(
        "own",
        "disturbed",
        night(),
        night({n: samples() for n in NAMES[1:]}) | {"not comparable": {NAMES[0]: "shared"}},
        APART,
        GREEN,
        "shared",
    ),
]  # fmt: skip
