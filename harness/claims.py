"""What a claim says, how a test brings evidence for it, and the verdict that follows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from enum import StrEnum
from functools import cache
from typing import Any, Final, Protocol

from harness.baselines import ROOT, slug
from harness.devices import Workload
from harness.evidence import Evidence, TimeRatio, described, plain
from harness.models.datasheet import GPUS
from harness.timing import Ideal

ID: Final = re.compile(r"[a-z0-9]+\.[a-z0-9-]+")


class Verdict(StrEnum):
    """What is known about a claim; only `BROKEN` fails a run."""

    HOLDS = "holds"
    REFUTED = "refuted"  # the sentence as written is wrong; the test asserts what is right instead
    UNDECIDED = "undecided"
    BROKEN = "broken"


@dataclass(frozen=True)
class Statement:
    """A claim as its mark states it: id, sentence, published figure, expected verdict by GPU.

    `ours` is one that the seminar does not make. `finding` is what the test's name says of it,
    `why` what its docstring does, a line a paragraph.
    """

    id: str
    says: str
    published: str | None = None
    expects: Mapping[str, Verdict] = field(default_factory=lambda: {"default": Verdict.HOLDS})
    ours: bool = False
    finding: str = ""
    why: str = ""

    @property
    def section(self) -> str:
        """The part of the id before the dot."""
        return self.id.partition(".")[0]

    def expected(self, gpu: str | None) -> Verdict:
        """Return the verdict to expect on the GPU with this slug."""
        return self.expects.get(gpu or "default", self.expects["default"])


def statement(
    id: str,
    says: str,
    *,
    published: str | None = None,
    expects: str | Mapping[str, str] = "holds",
    ours: bool = False,
) -> Statement:
    """Read the arguments of a `claim` mark.

    Raises
    ------
    ValueError
        The id is not "section.name", an expected verdict is neither "holds" nor "refuted", or it
        is expected on a GPU that neither the data sheet nor baselines/ knows.
    """
    if not ID.fullmatch(id):
        raise ValueError(
            f"the claim id {id!r} is not section.name in lower case, such as reduce.v3-cause"
        )
    table = {"default": expects} if isinstance(expects, str) else dict(expects)
    table.setdefault("default", "holds")
    for device, verdict in table.items():
        _refuse_unknown(id, device)
        if verdict not in ("holds", "refuted"):
            raise ValueError(
                f"claim {id} expects {verdict!r} on {device}: say 'holds' or 'refuted'"
            )
    expected = {gpu: Verdict(name) for gpu, name in table.items()}
    return Statement(id, says, published, expected, ours)


@cache
def known_gpus() -> frozenset[str]:
    """Return the slugs that a verdict may be expected on, and "default"."""
    sheet = {slug(name) for gpu in GPUS for name in gpu.names}
    recorded = {path.name for path in ROOT.glob("*/")}
    return frozenset({"default"} | sheet | recorded)


def _refuse_unknown(id: str, device: str) -> None:
    if device not in known_gpus():
        meant = get_close_matches(device, known_gpus(), n=1)
        raise ValueError(
            f"claim {id} expects a verdict on {device!r}, which no GPU of the data sheet and no "
            f"folder of baselines/ is called" + (f": did you mean {meant[0]!r}?" if meant else "")
        )


def sentence(test: str) -> str:
    """Return a test's name as the sentence it is.

    >>> sentence("test_v3_wins_by_dropping_the_modulo")
    'V3 wins by dropping the modulo'
    """
    words = re.sub(r"\bv(?=\d)", "V", test.removeprefix("test_").replace("_", " "))
    return words[:1].upper() + words[1:]


def paragraphs(docstring: str) -> str:
    r"""Return a docstring with one line a paragraph.

    >>> paragraphs("One.\n\n    Two,\n    and more.\n    ")
    'One.\nTwo, and more.'
    """
    found = (" ".join(each.split()) for each in re.split(r"\n\s*\n", docstring.strip()))
    return "\n".join(found)


def verdict(evidence: Iterable[Evidence], expected: Verdict) -> Verdict:
    """Judge: anything outside its bound breaks the claim, anything straddling leaves it open."""
    outcomes = {each.outcome for each in evidence}
    if "outside" in outcomes:
        return Verdict.BROKEN
    return Verdict.UNDECIDED if "straddles" in outcomes else expected


class Ratios(Protocol):
    """Where ratios of times come from: measured now, or recorded earlier."""

    gpu: str | None
    architecture: str | None

    def evidence(self, asked: TimeRatio) -> Evidence:
        """Return the evidence for what is asked; the same `what` twice in a claim is refused."""


class Claim:
    """What a test brings evidence with.

    A wrong count fails the test at once, before anything is timed. Ratios are all measured first,
    so that a broken effect still shows its cause; `conclude` then fails the test.
    """

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
    def architecture(self) -> str | None:
        """The architecture of that GPU, such as "sm_90", if it is known."""
        return self._ratios().architecture

    @property
    def verdict(self) -> Verdict:
        """What the evidence so far says."""
        return verdict(self.evidence, self.expected)

    @property
    def broken(self) -> bool:
        """Whether a piece of evidence lies outside its bound."""
        return any(evidence.outcome == "outside" for evidence in self.evidence)

    def counted(
        self,
        what: str,
        value: Any,
        bound: Any,
        device: str | None = None,
        *,
        decisive: bool = False,
    ) -> None:
        """Assert an exact count: `value == bound`; reports show `decisive` evidence first."""
        __tracebackhide__ = True
        on = device or self._counted_on
        found = Evidence("counted", on, None, what, plain(value), plain(bound))
        evidence = replace(found, decisive=decisive)
        self.evidence.append(evidence)
        assert evidence.outcome == "inside", f"{self.statement.id}: {described(evidence)}"

    def timed(
        self,
        what: str,
        numerator: Workload | Ideal,
        denominator: Workload | Ideal,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
        decisive: bool = False,
    ) -> None:
        """Hold time(numerator) / time(denominator) against `at_least` and `at_most`.

        Reports show `decisive` evidence before any other.
        """
        bound = at_least, at_most
        asked = TimeRatio(self.statement.id, "timed", what, numerator, denominator, bound)
        self._ask(asked, decisive)

    def cause(
        self,
        what: str,
        numerator: Workload | Ideal,
        denominator: Workload | Ideal,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
        decisive: bool = False,
    ) -> None:
        """Like `timed`, for a kernel against one without the mechanism, or the mechanism alone."""
        bound = at_least, at_most
        asked = TimeRatio(self.statement.id, "cause", what, numerator, denominator, bound)
        self._ask(asked, decisive)

    def conclude(self) -> None:
        """Assert that there is evidence and that none of it lies outside its bound."""
        __tracebackhide__ = True
        name = self.statement.id
        assert self.evidence, (
            f"{name} brings no evidence: use claim.counted, claim.timed or claim.cause"
        )
        failed = [described(each) for each in self.evidence if each.outcome == "outside"]
        assert not failed, "\n".join(f"{name}: {text}" for text in failed)

    def note(self, text: str) -> None:
        """Add a sentence to the claim's row in the reports."""
        self.notes.append(text)

    def _ask(self, asked: TimeRatio, decisive: bool) -> None:
        found = replace(self._ratios().evidence(asked), decisive=decisive)
        self.evidence.append(found)
        if found.note:
            self.note(found.note)
