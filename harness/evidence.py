"""One number of a test, where it comes from, and where it lies against its bound."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

from harness import spelling
from harness.devices import Workload
from harness.timing import Bound, Ideal, Interval, Outcome

Kind = Literal["counted", "timed", "cause", "recorded"]


@dataclass(frozen=True)
class TimeRatio:
    """What a claim asks of the clock: time(numerator) / time(denominator) against a bound.

    Raises
    ------
    ValueError
        There is no bound, or no ratio of times can ever lie within it.
    """

    claim: str
    kind: Literal["timed", "cause"]
    what: str
    numerator: Workload | Ideal
    denominator: Workload | Ideal
    bound: Bound

    def __post_init__(self) -> None:
        """Refuse a bound that makes no test."""
        ends = [end for end in self.bound if end is not None]
        if not ends:
            raise ValueError(
                f"{self.claim}: {self.what} has no bound; give at_least, at_most or both"
            )
        for end in ends:
            if not (isinstance(end, Real) and 0 < end < math.inf):
                raise ValueError(
                    f"{self.claim}: {self.what} is bounded by {end!r}; a ratio of times is "
                    "positive: give a finite number above zero"
                )
        if ends != sorted(ends):
            raise ValueError(
                f"{self.claim}: {self.what} has at_least={ends[0]} above at_most={ends[1]}; "
                "exchange them"
            )


@dataclass(frozen=True)
class Evidence:
    """One number, where it comes from, and the bound it is held against.

    `value` equals `bound` for a count. For a ratio of times, `bound` is [at_least, at_most] and
    `interval` the 99 % interval of the value; both are None if nothing was measured or recorded.
    `of` is what a recording recorded: "timed" or "cause"; `note` is what the claim's row adds;
    `decisive` evidence is shown before any other.
    """

    kind: Kind
    device: str
    clock: str | None
    what: str
    value: Any
    bound: Any
    interval: tuple[float, float] | None = None
    of: Literal["timed", "cause"] | None = None
    note: str = ""
    decisive: bool = False

    @property
    def outcome(self) -> Outcome:
        """Where the evidence lies; too few samples are never inside or outside."""
        if self.kind == "counted":
            return "inside" if self.value == self.bound else "outside"
        if self.interval is None:
            return "straddles"
        return Interval(self.value, *self.interval).against(self.bound)

    @property
    def room(self) -> float:
        """The factor by which the interval clears its bound; infinite where there is none."""
        if self.kind == "counted" or self.interval is None:
            return math.inf
        (low, high), (least, most) = self.interval, self.bound
        return min(low / least if least else math.inf, most / high if most else math.inf)

    def as_json(self) -> dict[str, Any]:
        """Return the evidence as it stands in build/claims.json."""
        keys = ("kind", "device", "clock", "what", "value", "bound", "interval")
        document = {key: _finite(plain(getattr(self, key))) for key in keys}
        document |= {"of": self.of} if self.of == "cause" else {}
        return document | ({"decisive": True} if self.decisive else {})


def plain(value: Any) -> Any:
    """Return `value` as JSON holds it: no NumPy arrays or scalars, no tuples, no fractions."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    return value if value is None or isinstance(value, (bool, int, float, str)) else float(value)


def _finite(value: Any) -> Any:
    """Return `value` with NaN and infinities spelled out, which JSON cannot hold."""
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def described(evidence: Evidence) -> str:
    """Say what was found, what it is held against, and where.

    >>> described(Evidence("counted", "emulated sm_90", None, "sectors", 5, 4))
    'sectors is 5, not 4, on emulated sm_90'
    """
    found = f"{evidence.what} is {evidence.value}"
    if evidence.kind == "counted":
        return f"{found}, not {evidence.bound}, on {evidence.device}"
    low, high = evidence.interval or (0.0, 0.0)
    return (
        f"{evidence.what} is {spelling.ratio(evidence.value)}, "
        f"99 % interval {spelling.ratio(low)}..{spelling.ratio(high)}, "
        f"outside {spelling.bound(evidence.bound)}; "
        f"{evidence.kind} on {evidence.device} ({evidence.clock})"
    )
