"""What a baseline must look like before anything is read from it; each complaint says where."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

Kind = Callable[[Any], bool]  # whether a value is of it


def a(kind: type) -> Kind:
    """A value of this type."""
    return lambda value: isinstance(value, kind)


def within(least: float, most: float) -> Kind:
    """A number, ends included; no boolean is one."""
    numbers = either(a(int), a(float))
    return lambda value: numbers(value) and not isinstance(value, bool) and least <= value <= most


def _of(characters: str) -> Kind:
    """A text of nothing but these."""
    found = re.compile(f"[{characters}]*")
    return lambda value: isinstance(value, str) and bool(found.fullmatch(value))


def list_of(kind: Kind) -> Kind:
    """A list of nothing else, which may be empty."""
    return lambda value: isinstance(value, list) and all(map(kind, value))


def either(*kinds: Kind) -> Kind:
    """A value of one of these."""
    return lambda value: any(kind(value) for kind in kinds)


def _object(kinds: Mapping[str, Kind]) -> Kind:
    return lambda value: isinstance(value, dict) and not _wrong(value, kinds)


SHORTEST, LONGEST = 1e-9, 1e3  # seconds; a clock tick, and a kernel that nobody waits for
TIME: Final = within(SHORTEST, LONGEST)
RATE: Final = within(1e-3, 1e6)  # GB/s; no GPU copies slower or faster
AMOUNT: Final = within(0, 1e18)  # bytes, FLOP, GB/s
# A float may be infinite: the gate says which sample, and why it is no time. An integer may be too
# large to be one.
NUMBER: Final = either(a(float), within(-sys.float_info.max, sys.float_info.max))
WORDS: Final = list_of(a(str))

REQUIRED: Final = {"fullname": a(str), "name": a(str), "stats": a(dict)}
RUNS: Final = "run medians"  # of all runs that a benchmark was merged from
COPY: Final = "copy GB/s"
COPY_RUNS: Final = "copy GB/s of runs"
NOT_COMPARABLE: Final = "not comparable"  # test id -> why its times were not stored
DROPPED: Final = "dropped samples"  # why samples were dropped and taken again
NO_CLAIMS: Final = "no claims"  # the option by which a run left them out
CARDS: Final = "cards"  # UUIDs of those that it was recorded on
SECTIONS: Final = {
    "datetime": _of(r"-+:.\dTZ "),  # names a file when it is promoted
    **dict.fromkeys(("device", "pairs", "claims", NOT_COMPARABLE), a(dict)),
    NO_CLAIMS: a(str),
}
# a driver may not tell why it throttles
REASONS: Final = {"throttle_reasons": either(WORDS, a(type(None)))}
FACTS: Final = {
    **dict.fromkeys(("bytes", "flop", "GB/s", "peak GB/s"), AMOUNT),
    **{COPY: RATE, COPY_RUNS: list_of(RATE), RUNS: list_of(TIME), DROPPED: WORDS},
    CARDS: WORDS,
    **REASONS,
    "telemetry": _object(REASONS),
}
NUMBERS: Final = {"median": NUMBER, "data": list_of(NUMBER)}
ENTRY: Final = {"numerator": a(str), "denominator": a(str), "clock": a(str), "seconds": a(list)}
COLUMNS: Final = ("min", "max", "mean", "stddev", "median", "iqr", "rounds", "iterations")


def complaint(document: Any) -> str:
    """Return what is wrong with a whole document; pairs are looked at when they are asked for."""
    if not isinstance(document, dict) or not isinstance(document.get("benchmarks"), list):
        return 'has no list "benchmarks": it was not written by pytest-benchmark'
    machine = document.get("machine_info")
    if not (isinstance(machine, dict) and machine.get("gpu") and isinstance(machine["gpu"], str)):
        return "does not say which GPU: machine_info.gpu is missing; record with --gpu=require"
    if wrong := _wrong(document, SECTIONS) or _wrong(document.get("device", {}), FACTS):
        return f"is damaged ({wrong})"
    return next(filter(None, map(_benchmark, document["benchmarks"])), "")


def _benchmark(entry: Any) -> str:
    known = isinstance(entry, dict)
    name = entry.get("fullname", "?") if known else "?"
    wrong = _missing(entry, REQUIRED) if known else f"it is {_short(entry)}, no object"
    if not wrong:
        facts = entry.get("extra_info", {})
        wrong = (
            ("" if "median" in entry["stats"] else "'median' is missing")
            or _wrong(entry["stats"], NUMBERS)
            or _wrong(entry, {"extra_info": a(dict)})
            or _wrong(facts, FACTS)
        )
    again = "it was not written by pytest-benchmark; record again"
    return f"is damaged: benchmark {name} cannot be read ({wrong}): {again}" if wrong else ""


def pairs_complaint(entry: Any) -> str:
    """Return what is wrong with what was recorded for one ratio, or nothing."""
    if not isinstance(entry, dict):
        return f"it is {_short(entry)}, no object"
    if wrong := _missing(entry, ENTRY) or _wrong(entry, {DROPPED: WORDS}):
        return wrong
    for number, pair in enumerate(entry["seconds"]):
        if not (isinstance(pair, list) and len(pair) == 2 and all(map(TIME, pair))):
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


def _missing(entry: Mapping[str, Any], kinds: Mapping[str, Kind]) -> str:
    absent = next((f"{key!r} is missing" for key in kinds if key not in entry), "")
    return absent or next(
        (f"{key!r} is {_short(entry[key])}" for key in kinds if not kinds[key](entry[key])), ""
    )


def _wrong(entry: Mapping[str, Any], kinds: Mapping[str, Kind]) -> str:
    """Return which value, if it is there at all, is of another kind."""
    return _missing(entry, {key: kind for key, kind in kinds.items() if key in entry})


def _short(value: Any) -> str:
    return f"{value!r:.40}"
