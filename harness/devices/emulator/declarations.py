"""What a PTX entry declares: registers by scope, shared memory, limits of a launch."""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

REGISTERS: Final = re.compile(r"\.reg\s+\.(\w+)\s+(.+)")
SHARED: Final = re.compile(
    r"(\.extern\s+)?\.shared\s+\.align\s+(\d+)\s+\.[busf](\d+)\s+(\w+)(?:\[(\d*)\])?\s*;"
)
DIRECTIVE: Final = re.compile(r"\.(\w+)\s*([\d\s,]*)")
DIGITS: Final = "0123456789"


@dataclass(frozen=True)
class Variable:
    """Bytes in shared memory; without a size they reach to the end of what the launch gives."""

    offset: int
    size: int | None

    def end(self, shared: int) -> int:
        """Return the first byte after it, in a block of `shared` bytes."""
        return shared if self.size is None else self.offset + self.size


class Registers:
    """The registers of an entry. A name that another scope has declared gets a number: `%t'2`."""

    def __init__(self) -> None:
        self._kinds: dict[str, str] = {}
        self._visible: ChainMap[str, str] = ChainMap()

    def open(self) -> None:
        """Enter a scope."""
        self._visible = self._visible.new_child()

    def close(self) -> None:
        """Leave a scope; its registers are gone."""
        self._visible = self._visible.parents

    def declare(self, statement: str) -> None:
        """Take `.reg .b32 %r<16>` (%r0 to %r15) or `.reg .b16 %low, %high`."""
        if match := REGISTERS.match(statement):
            for name in match[2].split(","):
                bare, several, _ = name.strip().partition("<")
                key = bare + several
                unique = f"{key}'{len(self._kinds)}" if key in self._kinds else key
                self._visible[key] = unique
                self._kinds[unique] = match[1]

    def find(self, text: str) -> str | None:
        """Return the name of the register that `text` means here, if it means one."""
        for key in _keys(text):
            if key in self._visible:
                return text + self._visible[key].removeprefix(key)
        return None

    def kind(self, register: str) -> str:
        """Return the declared type of a register that `find` named."""
        text, mark, number = register.partition("'")
        return next(
            self._kinds[key + mark + number]
            for key in _keys(text)
            if key + mark + number in self._kinds
        )


def _keys(name: str) -> tuple[str, str]:
    return name, name.rstrip(DIGITS) + "<"


def shared_variables(module: str, body: str) -> tuple[dict[str, Variable], int]:
    """Return the shared variables that `body` names, one after another, and their bytes.

    All dynamic arrays are one: they begin where the static variables end.
    """
    found = [v for v in SHARED.findall(module) if re.search(rf"\b{v[3]}\b", body)]
    variables, end = {}, 0
    for extern, align, bits, name, length in found:
        if not extern:
            size = int(bits) // 8 * int(length or 1)
            variables[name] = Variable(_up(end, int(align)), size)
            end = variables[name].end(0)
    dynamic = {name: int(align) for extern, align, _, name, _ in found if extern}
    end = _up(end, max(dynamic.values(), default=1))
    return variables | dict.fromkeys(dynamic, Variable(end, None)), end


def _up(offset: int, align: int) -> int:
    return -(-offset // align) * align


def launch_limits(directives: str) -> dict[str, tuple[int, ...]]:
    """Read what stands before the body: `.maxntid 256, 1, 1` is {"maxntid": (256, 1, 1)}."""
    return {name: _numbers(values.split(",")) for name, values in DIRECTIVE.findall(directives)}


def _numbers(texts: Iterable[str]) -> tuple[int, ...]:
    return tuple(int(text) for text in texts if text.strip())
