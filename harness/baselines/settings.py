"""The card and the settings of a recording, and what sets two of them apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from harness.baselines.shape import CARDS

Document = Mapping[str, Any]


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


def cards(document: Document) -> list[str]:
    """Return the UUIDs of the cards that it was recorded on, as far as it says.

    >>> cards({"device": {"cards": ["GPU-b", "GPU-a"]}})
    ['GPU-a', 'GPU-b']
    """
    return sorted(document.get("device", {}).get(CARDS, ()))


def _differences(
    table: Mapping[str, Callable[[Document], Any]], before: Document, now: Document
) -> list[str]:
    found = {label: (read(before), read(now)) for label, read in table.items()}
    return [
        f"{label} {there} -> {here}"
        for label, (there, here) in found.items()
        if there is not None and here is not None and there != here
    ]
