"""How numbers are spelled, alike in every report, message and picture."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

SHORTEST, LONGEST = 1e-12, 1e6  # seconds, beyond which digits are noise


def printable(text: str, encoding: str | None) -> str:
    """Return text with a question mark for what a terminal cannot show: no traceback for a µ.

    >>> printable("62 µs", "ascii")
    '62 ?s'
    """
    known = encoding or "utf-8"
    return text.encode(known, "replace").decode(known)


def ratio(value: float | str) -> str:
    """Return four digits of a ratio; one that is not finite is a word in JSON.

    >>> ratio(1.54231), ratio(4 / 3), ratio(1869.2), ratio("inf")
    ('1.542', '1.333', '1869', 'inf')
    """
    return f"{float(value):.4g}"


def interval(value: float | str, ends: Sequence[float | str] | None) -> str:
    """Return a ratio and the interval it lies in, which too few pairs do not give.

    >>> interval(1.10612, (1.1, 1.112)), interval(1.5, None)
    ('1.106 [1.1, 1.112]', '1.5 (too few pairs)')
    """
    between = f"[{', '.join(map(ratio, ends))}]" if ends else "(too few pairs)"
    return f"{ratio(value)} {between}"


def bound(ends: tuple[float | None, float | None]) -> str:
    """Return at_least and at_most in words a table can hold.

    >>> bound((1.3, None)), bound((None, 1.05)), bound((3 / 4, 4 / 3))
    ('>= 1.3', '<= 1.05', '0.75..1.333')
    """
    least, most = ends
    if least is None:
        return f"<= {most:.4g}"
    return f">= {ratio(least)}" if most is None else f"{ratio(least)}..{ratio(most)}"


def digits(value: float) -> str:
    """Return three digits of a time or a bandwidth.

    >>> digits(2.4968), digits(236.4), digits(3718.8), digits(0.0016)
    ('2.50', '236', '3,719', '0.00160')
    """
    return f"{value:,.{_places(value)}f}"


def _places(value: float) -> int:
    """Return the places after the point that make three digits of a value."""
    return max(0, 2 - math.floor(math.log10(value)))


def duration(seconds: float) -> str:
    """Return a time with three digits, or the number itself where it is none.

    >>> duration(0.1974), duration(62.6e-6)
    ('197 ms', '62.6 µs')
    """
    if not SHORTEST < seconds < LONGEST:
        return f"{seconds} s"
    value, unit = (seconds * 1e3, "ms") if seconds >= 1e-3 else (seconds * 1e6, "µs")
    return f"{value:.{_places(value)}f} {unit}"


def gigabytes(rate: float) -> str:
    """Return a bandwidth in GB/s.

    >>> gigabytes(2.27), gigabytes(4814.3)
    ('2.3', '4,814')
    """
    return f"{rate:,.{rate < 10:d}f}"


def shown(value: Any) -> str:
    """Return a count, a list of them or a word as tables show it.

    >>> shown([2, 4, 8.0]), shown([])
    ('2 4 8', 'none')
    """
    if isinstance(value, (list, tuple)):
        return " ".join(map(shown, value)) or "none"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def sentences(notes: Iterable[str]) -> str:
    """Return notes as one line, each set off from the next.

    >>> sentences(["V2 / V3: a sample was dropped", "One sentence.", "Another."])
    'V2 / V3: a sample was dropped; One sentence. Another.'
    """
    return "; ".join(notes).replace(".; ", ". ")
