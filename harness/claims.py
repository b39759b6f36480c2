"""What a claim says, the evidence a test brings for it, and the verdict that follows."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Literal, Protocol

from harness.devices import Workload
from harness.timing import Bound, Interval, Outcome

Kind = Literal["counted", "timed", "cause", "recorded"]
ID: Final = re.compile(r"[a-z0-9]+\.[a-z0-9-]+")


class Verdict(StrEnum):
    """What is known about a claim; only `BROKEN` fails a run."""

    HOLDS = "holds"
    REFUTED = "refuted"  # the sentence as written is wrong; the test asserts what is right instead
    UNDECIDED = "undecided"
    BROKEN = "broken"


@dataclass(frozen=True)
class Evidence:
    """One number, where it comes from, and the bound it is held against.

    `value` equals `bound` for a count. For a ratio of times, `bound` is [at_least, at_most] and
    `interval` the 99 % interval of the value; both are None if nothing was measured or recorded.
    `of` is what a recording recorded: "timed" or "cause".
    """

    kind: Kind
    device: str
    clock: str | None
    what: str
    value: Any
    bound: Any
    interval: tuple[float, float] | None = None
    of: Literal["timed", "cause"] | None = None

    @property
    def outcome(self) -> Outcome:
        """Where the evidence lies; too few samples are never inside or outside."""
        if self.kind == "counted":
            return "inside" if self.value == self.bound else "outside"
        if self.interval is None:
            return "straddles"
        return Interval(self.value, *self.interval).against(self.bound)

    def as_json(self) -> dict[str, Any]:
        """Return the evidence as it stands in build/claims.json."""
        keys = ("kind", "device", "clock", "what", "value", "bound", "interval")
        document = {key: _finite(getattr(self, key)) for key in keys}
        return document | ({"of": self.of} if self.of == "cause" else {})


@dataclass(frozen=True)
class Statement:
    """A claim as its mark states it: id, sentence, published figure, expected verdict by GPU."""

    id: str
    says: str
    published: str | None = None
    expects: Mapping[str, Verdict] = field(default_factory=lambda: {"default": Verdict.HOLDS})

    @property
    def section(self) -> str:
        """The part of the id before the dot."""
        return self.id.partition(".")[0]

    def expected(self, gpu: str | None) -> Verdict:
        """Return the verdict to expect on the GPU with this slug."""
        return self.expects.get(gpu or "default", self.expects["default"])


def statement(
    id: str, says: str, *, published: str | None = None, expects: str | Mapping[str, str] = "holds"
) -> Statement:
    """Read the arguments of a `claim` mark.

    Raises
    ------
    ValueError
        The id is not "section.name", or an expected verdict is neither "holds" nor "refuted".
    """
    if not ID.fullmatch(id):
        raise ValueError(
            f"the claim id {id!r} is not section.name in lower case, such as reduce.v3-cause"
        )
    table = {"default": expects} if isinstance(expects, str) else dict(expects)
    table.setdefault("default", "holds")
    for device, verdict in table.items():
        if verdict not in ("holds", "refuted"):
            raise ValueError(
                f"claim {id} expects {verdict!r} on {device}: say 'holds' or 'refuted'"
            )
    return Statement(id, says, published, {gpu: Verdict(name) for gpu, name in table.items()})


def verdict(evidence: Iterable[Evidence], expected: Verdict) -> Verdict:
    """Judge: anything outside its bound breaks the claim, anything straddling leaves it open."""
    outcomes = {each.outcome for each in evidence}
    if "outside" in outcomes:
        return Verdict.BROKEN
    return Verdict.UNDECIDED if "straddles" in outcomes else expected


class Ratios(Protocol):
    """Where ratios of times come from: measured now, or recorded earlier."""

    gpu: str | None

    def evidence(
        self,
        claim: str,
        kind: Literal["timed", "cause"],
        what: str,
        numerator: Workload,
        denominator: Workload,
        bound: Bound,
    ) -> Evidence:
        """Return the evidence for numerator / denominator against `bound`."""


class Claim:
    """What a test brings evidence with; evidence that breaks the claim fails the test at once."""

    def __init__(self, statement: Statement, ratios: Callable[[], Ratios], counted_on: str) -> None:
        self.statement = statement
        self.evidence: list[Evidence] = []
        self.notes: list[str] = []
        self._ratios = ratios
        self._counted_on = counted_on

    @property
    def expected(self) -> Verdict:
        """The verdict expected on the GPU whose times are judged: live, or else recorded."""
        return self.statement.expected(self._ratios().gpu)

    @property
    def verdict(self) -> Verdict:
        """What the evidence so far says."""
        return verdict(self.evidence, self.expected)

    @property
    def broken(self) -> bool:
        """Whether a piece of evidence lies outside its bound."""
        return any(evidence.outcome == "outside" for evidence in self.evidence)

    def counted(self, what: str, value: Any, bound: Any, device: str | None = None) -> None:
        """Assert an exact count: `value == bound`."""
        __tracebackhide__ = True
        on = device or self._counted_on
        self._add(Evidence("counted", on, None, what, plain(value), plain(bound)))

    def timed(
        self,
        what: str,
        numerator: Workload,
        denominator: Workload,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
    ) -> None:
        """Assert time(numerator) / time(denominator) between `at_least` and `at_most`."""
        __tracebackhide__ = True
        self._ratio("timed", what, numerator, denominator, (at_least, at_most))

    def cause(
        self,
        what: str,
        numerator: Workload,
        denominator: Workload,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
    ) -> None:
        """Like `timed`, for kernels that differ only in what the seminar names as the cause."""
        __tracebackhide__ = True
        self._ratio("cause", what, numerator, denominator, (at_least, at_most))

    def note(self, text: str) -> None:
        """Add a sentence to the claim's row in the reports."""
        self.notes.append(text)

    def _ratio(
        self,
        kind: Literal["timed", "cause"],
        what: str,
        one: Workload,
        other: Workload,
        bound: Bound,
    ) -> None:
        __tracebackhide__ = True
        if bound == (None, None):
            raise ValueError(
                f"{self.statement.id}: {what} has no bound; give at_least, at_most or both"
            )
        self._add(self._ratios().evidence(self.statement.id, kind, what, one, other, bound))

    def _add(self, evidence: Evidence) -> None:
        __tracebackhide__ = True
        self.evidence.append(evidence)
        assert evidence.outcome != "outside", f"{self.statement.id}: {described(evidence)}"


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
        f"{evidence.what} is {evidence.value:.3g}, 99 % interval {low:.3g}..{high:.3g}, "
        f"outside {spelled(evidence.bound)}; "
        f"{evidence.kind} on {evidence.device} ({evidence.clock})"
    )


def spelled(bound: Bound) -> str:
    """Return a bound in words a table can hold.

    >>> spelled((1.3, None)), spelled((None, 1.05)), spelled((0.95, 1.05))
    ('>= 1.3', '<= 1.05', '0.95..1.05')
    """
    least, most = bound
    if least is None:
        return f"<= {most:g}"
    return f">= {least:g}" if most is None else f"{least:g}..{most:g}"
