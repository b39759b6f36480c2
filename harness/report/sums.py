"""The recorded sums of n floats: how long `reduce_sum` takes, and how much longer each library."""

from __future__ import annotations

import re
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from harness.spelling import interval
from harness.timing import Interval, Pair, ratio

CLAIM: Final = "beyond.every-size"
PAIRS: Final = re.compile(r"(.+) / reduce_sum, n = (\d+)")
FLOAT: Final = 4  # bytes
POWERS: Final = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Library:
    """The sum by a library: its median seconds, and times how long it takes as `reduce_sum`."""

    name: str
    seconds: float
    longer: Interval

    @property
    def times(self) -> str:
        """That ratio with its interval, as claims show it."""
        return interval(self.longer.value, self.longer.ends)


@dataclass(frozen=True)
class Size:
    """The sums of n floats: the median seconds of `reduce_sum`, and the libraries."""

    n: int
    seconds: float
    libraries: tuple[Library, ...]

    @property
    def rate(self) -> float:
        """GB/s of `reduce_sum`."""
        return FLOAT * self.n / self.seconds / 1e9

    @property
    def fastest(self) -> Library:
        """The library that comes closest, or is faster."""
        return min(self.libraries, key=lambda library: library.longer.value)

    def share(self, peak: float | None) -> str:
        """Return the rate as a share of the memory's peak in GB/s, if that is known."""
        if not peak:
            return "–"
        percent = round(100 * self.rate / peak)
        return f"{percent} %" if percent else "<1 %"


def recorded(baseline: dict[str, Any]) -> list[Size]:
    """Return the sums of a baseline by size; libraries in the order they were timed in."""
    found: dict[int, dict[str, list[Pair]]] = {}
    for what, entry in baseline.get("pairs", {}).get(CLAIM, {}).items():
        if (match := PAIRS.fullmatch(what)) and entry["seconds"]:
            pairs = [(a, b) for a, b in entry["seconds"]]
            found.setdefault(int(match[2]), {})[match[1]] = pairs
    return [_size(n, found[n]) for n in sorted(found)]


def _size(n: int, found: dict[str, list[Pair]]) -> Size:
    seconds = median(ours for pairs in found.values() for _, ours in pairs)
    return Size(n, seconds, tuple(_library(name, pairs) for name, pairs in found.items()))


def _library(name: str, pairs: list[Pair]) -> Library:
    return Library(name, median(theirs for theirs, _ in pairs), ratio(pairs))


def power(n: int) -> str:
    """Return n by its power of two.

    >>> power(1), power(1 << 20), power((1 << 31) + 7)
    ('1', '2²⁰', '2³¹ + 7')
    """
    exponent = n.bit_length() - 1
    rest = n - (1 << exponent)
    written = f"2{str(exponent).translate(POWERS)}" if exponent else "1"
    return f"{written} + {rest}" if rest else written
