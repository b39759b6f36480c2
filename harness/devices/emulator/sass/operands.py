"""What stands between the commas of an instruction: registers, predicates, constants, numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal[
    "register", "predicate", "barrier", "constant", "integer", "float", "special", "other"
]

REGISTER: Final = re.compile(r"(?P<sign>[-~|]?)(?P<name>U?R(?:\d+|Z))\|?(?:\.reuse)?")
PREDICATE: Final = re.compile(r"(?P<sign>!?)(?P<name>U?P[0-9T])")
CONSTANT: Final = re.compile(
    r"(?P<sign>[-~]?)c\[(?P<bank>0x[0-9a-f]+)\]\[(?:(?P<offset>0x[0-9a-f]+)|U?RZ)\]"
)
INTEGER: Final = re.compile(r"(?P<sign>-?)(?P<value>0x[0-9a-f]+)")
FLOAT: Final = re.compile(r"\d+(\.\d+)?(e[+-]\d+)?")
BARRIER: Final = re.compile(r"B\d+")
SPECIAL: Final = re.compile(r"SR\w*(\.\w+)?")
NAMED: Final[dict[Kind, re.Pattern[str]]] = {
    "barrier": BARRIER,
    "special": SPECIAL,
    "float": FLOAT,
}
ZERO: Final = frozenset({"RZ", "URZ"})
TRUE: Final = frozenset({"PT", "UPT"})


@dataclass(frozen=True)
class Operand:
    """One operand.

    Attributes
    ----------
    name
        The register, predicate, barrier or special register, without its sign.
    value
        The integer, or the constant's offset in bank 0.
    sign
        "-", "~" or "!" in front of it, "|" around it, else "".
    """

    kind: Kind
    name: str = ""
    value: int = 0
    sign: str = ""

    @property
    def discarded(self) -> bool:
        """Whether a result written here is lost."""
        return self.name in ZERO or self.name in TRUE

    def words(self, count: int) -> tuple[str, ...]:
        """The names of `count` registers from this one on; none if it is RZ or PT."""
        if self.discarded or self.kind not in ("register", "predicate"):
            return ()
        file, number = self.name.rstrip("0123456789"), int(self.name.lstrip("URP"))
        return tuple(f"{file}{number + i}" for i in range(count))


def parse(text: str) -> Operand:
    """Read one operand; what is neither of the known kinds is "other"."""
    text = text.strip()
    if match := REGISTER.fullmatch(text):
        return Operand("register", match["name"], sign=match["sign"])
    if match := PREDICATE.fullmatch(text):
        return Operand("predicate", match["name"], sign=match["sign"])
    if match := CONSTANT.fullmatch(text):
        offset = int(match["offset"] or "0", 16)
        known = int(match["bank"], 16) == 0
        return Operand("constant" if known else "other", text, offset, match["sign"])
    if match := INTEGER.fullmatch(text):
        value = int(match["value"], 16)
        return Operand("integer", value=-value if match["sign"] else value)
    kinds = (kind for kind, pattern in NAMED.items() if pattern.fullmatch(text))
    return Operand(next(kinds, "other"), text)
