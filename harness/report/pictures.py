"""The pictures that stand in the page of a run, drawn from what is recorded."""

from __future__ import annotations

from typing import Final

from markupsafe import Markup

from harness.report.curve import CURVE
from harness.report.drawing import Document, Picture
from harness.report.figure import LADDER
from harness.report.roofline import ROOFLINE
from harness.report.sizes import SUMS

PICTURES: Final = (LADDER, ROOFLINE, CURVE, SUMS)


def drawn(recording: Document) -> dict[str, str]:
    """Return the pictures of a recording by section, as far as it has what they show."""
    found = {picture.section: _drawn(picture, recording) for picture in PICTURES}
    return {section: picture for section, picture in found.items() if picture}


def _drawn(picture: Picture, recording: Document) -> str:
    """Return a picture, or why there is none: a report of claims does not end with it."""
    try:
        return Markup(picture.svg(recording)) if picture.shows(recording) else ""
    except (LookupError, TypeError, ValueError, ArithmeticError) as error:
        return f"{picture.file} cannot be drawn of the recording ({error!r}): record again"
