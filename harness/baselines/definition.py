"""Whether two times under one name are of the same work, and of the same kernel source."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from kernels import Kernel

SOURCE: Final = "source"
WORK: Final = ("kernel", "grid", "block", "bytes", "flop")  # the kernel's name has its defines
COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
DIGITS: Final = 16


def source_digest(kernel: object) -> str | None:
    """Return a digest of the CUDA C++ that a Kernel is compiled from; a library has none to show.

    Comments and white space do not count: rewording one must not make times incomparable.
    """
    return _digest(kernel.path) if isinstance(kernel, Kernel) else None


@cache
def _digest(path: Path) -> str:
    code = COMMENT.sub(" ", path.read_text("utf-8"))
    return sha256(" ".join(code.split()).encode()).hexdigest()[:DIGITS]


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return in words how the work differs: kernel and defines, grid, block, bytes, FLOP.

    >>> changes({"grid": 132, "block": 256}, {"grid": 264, "block": 256})
    ['grid 132 -> 264']
    """
    return [
        f"{key} {before[key]} -> {now[key]}"
        for key in WORK
        if key in before and key in now and before[key] != now[key]
    ]


def source_changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return in words that the kernel's source was edited, if both digests are known.

    >>> source_changed({"source": "aa"}, {"source": "bb"})
    ['kernel source aa -> bb']
    """
    digests = before.get(SOURCE), now.get(SOURCE)
    if None in digests or digests[0] == digests[1]:
        return []
    return [f"kernel source {digests[0]} -> {digests[1]}"]
