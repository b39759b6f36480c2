"""What a file must hold before the gate judges it, beyond what every reader of baselines asks.

A value of another kind is a damaged file, exit 2. As a traceback it would be exit 1, a slow-down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

from harness.baselines.settings import Document
from harness.baselines.shape import NOT_COMPARABLE
from harness.claims import Verdict
from harness.gate.samples import CLOCKS

Kind = Callable[[Any], bool]  # whether a value is of it
LARGEST: Final = 1e6  # MHz


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _frequency(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 < value < LARGEST


def _verdict(value: Any) -> bool:
    return value in list(Verdict)


def _list_of(kind: Kind) -> Kind:
    return lambda value: isinstance(value, list) and bool(value) and all(map(kind, value))


def _unless_unknown(kind: Kind) -> Kind:
    return lambda value: value is None or kind(value)


FACTS: Final = {"clock": _text, **dict.fromkeys(CLOCKS, _unless_unknown(_frequency))}
DURING: Final = dict.fromkeys(CLOCKS, _list_of(_frequency))


def damage(document: Document) -> str:
    """Return what is wrong with a recording that was read, or nothing."""
    counts = Counter(each["fullname"] for each in document["benchmarks"])
    twice = (f"benchmark {name} stands there {n} times" for name, n in counts.items() if n > 1)
    read = _read(document)
    wrong = (f"{where} is {value!r:.40}" for where, value, sound in read if not sound(value))
    return next(twice, "") or next(wrong, "")


def _read(document: Document) -> Iterator[tuple[str, Any, Kind]]:
    """Yield where each value stands, the value, and of what kind it must be."""
    for name, verdict in document.get("claims", {}).items():
        yield f"the verdict on {name}", verdict, _verdict
    for name, why in document.get(NOT_COMPARABLE, {}).items():
        yield f"{NOT_COMPARABLE!r} of {name}", why, _text
    for benchmark in document["benchmarks"]:
        name, facts = benchmark["fullname"], benchmark.get("extra_info", {})
        places = ((FACTS, facts, "of"), (DURING, facts.get("telemetry", {}), "in the telemetry of"))
        for kinds, found, where in places:
            for key in kinds.keys() & found.keys():
                yield f"{key!r} {where} {name}", found[key], kinds[key]
