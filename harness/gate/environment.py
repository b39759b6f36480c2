"""What makes two recordings incomparable, and a night on which the machine itself moved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from harness.gate.limits import limit
from harness.gate.verdicts import Row, Status, percent

Document = Mapping[str, Any]

COPY: Final = "copy GB/s"
COPY_RUNS: Final = "copy GB/s of runs"
SHARE: Final = 0.5  # of the compared benchmarks, from which on they moved together


def _device(key: str) -> Callable[[Document], Any]:
    return lambda document: document.get("device", {}).get(key)


def _cuda_major(document: Document) -> str | None:
    version = document.get("device", {}).get("nvrtc")
    return version and str(version).partition(".")[0]


# Not the clocks of the moment, nor a patch level: they differ on the same machine.
KEY: Final[dict[str, Callable[[Document], Any]]] = {
    "GPU": lambda document: document.get("machine_info", {}).get("gpu"),
    "MIG": _device("mig"),
    "power cap in W": _device("power_cap_w"),
    "ECC": _device("ecc"),
    "CUDA": _cuda_major,
    "clock": _device("clock"),
    "host": _device("host"),
}
NOTED: Final = {"driver": _device("driver"), "NVRTC": _device("nvrtc"), "Python": _device("python")}


def incomparable(before: Document, now: Document) -> list[str]:
    """Return in words what sets the two apart; what one of them does not say is no difference."""
    return _differences(KEY, before, now)


def noted(before: Document, now: Document) -> list[str]:
    """Return what else differs, and may explain a change: driver, compiler, Python."""
    return _differences(NOTED, before, now)


def _differences(
    table: Mapping[str, Callable[[Document], Any]], before: Document, now: Document
) -> list[str]:
    found = {label: (read(before), read(now)) for label, read in table.items()}
    return [
        f"{label} {there} -> {here}"
        for label, (there, here) in found.items()
        if there is not None and here is not None and there != here
    ]


def moved(rows: Sequence[Row], before: Document, now: Document) -> tuple[list[Row], str]:
    """Take back what the machine did: most benchmarks moved, and a plain copy of the driver too.

    The copy runs none of the kernels here. A benchmark that moved further than the copy keeps its
    verdict. Returns the rows, and what happened in words, if it did.
    """
    there, here = before.get("device", {}).get(COPY), now.get("device", {}).get(COPY)
    if not (there and here):
        return list(rows), ""
    ratio = there / here  # of the times
    runs = [1 / rate for rate in before["device"].get(COPY_RUNS) or [there]]
    allowed = limit(runs, 0.0)
    low, high = allowed.bound
    if low <= ratio <= high:
        return list(rows), ""
    status = Status.SLOWER if ratio > high else Status.FASTER
    with_it = [row for row in rows if row.status is status]
    if len(with_it) < SHARE * sum(row.compared for row in rows):
        return list(rows), ""
    words = (
        f"environment changed: {len(with_it)} benchmarks and a plain copy ({percent(ratio)}) are "
        f"{status} together; look at the machine, then record again"
    )
    return [_excused(row, status, ratio, high) for row in rows], words


def _excused(row: Row, status: Status, copy: float, slack: float) -> Row:
    if row.status is not status or row.ratio is None:
        return row
    beyond = row.ratio > copy * slack if status is Status.SLOWER else row.ratio < copy / slack
    if beyond:
        return replace(row, why=f"further than the machine ({percent(copy)}): {row.why}")
    return replace(row, status=Status.NOT_COMPARABLE, why=f"moved with the machine: {row.why}")
