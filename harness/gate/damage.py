"""What a file must hold before the gate judges it, beyond what every reader of baselines asks.

A value of another kind is a damaged file, exit 2. As a traceback it would be exit 1, a slow-down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from harness.baselines.settings import Document
from harness.baselines.shape import NOT_COMPARABLE, Kind, a, either, list_of, within
from harness.claims import Verdict
from harness.gate.samples import CLOCKS

LEAST, MOST = 1e-3, 999_999  # MHz
TEXT: Final = a(str)
FREQUENCY: Final = within(LEAST, MOST)


def _verdict(value: Any) -> bool:
    return value in list(Verdict)


def _readings(value: Any) -> bool:
    return bool(value) and list_of(FREQUENCY)(value)


FACTS: Final = {"clock": TEXT, **dict.fromkeys(CLOCKS, either(FREQUENCY, a(type(None))))}
DURING: Final = dict.fromkeys(CLOCKS, _readings)


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
        yield f"{NOT_COMPARABLE!r} of {name}", why, TEXT
    for benchmark in document["benchmarks"]:
        name, facts = benchmark["fullname"], benchmark.get("extra_info", {})
        places = ((FACTS, facts, "of"), (DURING, facts.get("telemetry", {}), "in the telemetry of"))
        for kinds, found, where in places:
            for key in kinds.keys() & found.keys():
                yield f"{key!r} {where} {name}", found[key], kinds[key]
