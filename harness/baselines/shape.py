"""What a baseline must look like before anything is read from it; each complaint says where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

SHORTEST, LONGEST = 1e-9, 1e3  # seconds; a clock tick, and a kernel that nobody waits for
REQUIRED: Final = {"fullname": str, "name": str, "stats": dict}
NOT_COMPARABLE: Final = "not comparable"  # test id -> why its times were not stored
DROPPED: Final = "dropped samples"  # why samples were dropped and taken again
NO_CLAIMS: Final = "no claims"  # the option by which a run left them out
SECTIONS: Final[dict[str, type]] = {
    **{"datetime": str, "device": dict, "pairs": dict, "claims": dict, NOT_COMPARABLE: dict},
    NO_CLAIMS: str,
}
NUMBER: Final = (int, float)
FACTS: Final[dict[str, type | tuple[type, ...]]] = {
    **dict.fromkeys(("bytes", "flop", "GB/s", "peak GB/s", "copy GB/s"), NUMBER),
    # a driver may not tell why it throttles
    **{"telemetry": dict, "throttle_reasons": (list, type(None)), DROPPED: list},
}
ENTRY: Final = {"numerator": str, "denominator": str, "clock": str, "seconds": list}
COLUMNS: Final = ("min", "max", "mean", "stddev", "median", "iqr", "rounds", "iterations")


def complaint(document: Any) -> str:
    """Return what is wrong with a whole document; pairs are looked at when they are asked for."""
    if not isinstance(document, dict) or not isinstance(document.get("benchmarks"), list):
        return 'has no list "benchmarks": it was not written by pytest-benchmark'
    machine = document.get("machine_info")
    if not (isinstance(machine, dict) and machine.get("gpu") and isinstance(machine["gpu"], str)):
        return "does not say which GPU: machine_info.gpu is missing; record with --gpu=require"
    wrong = _wrong(document, SECTIONS) or _wrong(document.get("device", {}), FACTS)
    if wrong:
        return f"is damaged ({wrong})"
    return next(filter(None, map(_benchmark, document["benchmarks"])), "")


def _benchmark(entry: Any) -> str:
    known = isinstance(entry, dict)
    name = entry.get("fullname", "?") if known else "?"
    wrong = _missing(entry, REQUIRED) if known else f"it is {_short(entry)}, no object"
    if not wrong:
        numbers: dict[str, Any] = {"median": NUMBER, "data": list}
        facts = entry.get("extra_info", {})
        wrong = (
            ("" if "median" in entry["stats"] else "'median' is missing")
            or _wrong(entry["stats"], numbers)
            or _wrong(entry, {"extra_info": dict})
            or _wrong(facts, FACTS)
        )
    again = "it was not written by pytest-benchmark; record again"
    return f"is damaged: benchmark {name} cannot be read ({wrong}): {again}" if wrong else ""


def pairs_complaint(entry: Any) -> str:
    """Return what is wrong with what was recorded for one ratio, or nothing."""
    if not isinstance(entry, dict):
        return f"it is {_short(entry)}, no object"
    if wrong := _missing(entry, ENTRY) or _wrong(entry, {DROPPED: list}):
        return wrong
    for number, pair in enumerate(entry["seconds"]):
        if not (isinstance(pair, list) and len(pair) == 2 and all(map(_is_time, pair))):
            return (
                f"pair {number} is {_short(pair)}, not two times of {SHORTEST:g} to {LONGEST:g} s"
            )
    return ""


def table_complaint(document: Mapping[str, Any]) -> str:
    """Return which benchmark lacks what pytest-benchmark's table shows, or nothing."""
    for entry in document["benchmarks"]:
        if wrong := _missing(entry["stats"], dict.fromkeys(COLUMNS, NUMBER)):
            return f"benchmark {entry['fullname']}: {wrong}"
    return ""


def _is_time(value: Any) -> bool:
    return _is(value, NUMBER) and SHORTEST <= value <= LONGEST


def _missing(entry: Mapping[str, Any], kinds: Mapping[str, Any]) -> str:
    absent = next((f"{key!r} is missing" for key in kinds if key not in entry), "")
    return absent or next(
        (f"{key!r} is {_short(entry[key])}" for key in kinds if not _is(entry[key], kinds[key])), ""
    )


def _wrong(entry: Mapping[str, Any], kinds: Mapping[str, Any]) -> str:
    """Return which value, if it is there at all, is of another kind."""
    return _missing(entry, {key: kind for key, kind in kinds.items() if key in entry})


def _is(value: Any, kind: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _short(value: Any) -> str:
    return f"{value!r:.40}"
