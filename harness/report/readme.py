"""README's lists: claims of the last run; times, sizes and instructions as recorded.

    python -m harness.report.readme

puts what build/claims.json and the records of baselines/ say between their marks in README.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from harness.instructions import NONE_PARTED, Measured, Record, stored
from harness.report.effects import effects
from harness.report.ledger import Ledger, Row, deciding, finding, instead, says
from harness.report.markdown import cell
from harness.report.sizes_table import every_size
from harness.rows import stated

ROOT: Final = Path(__file__).parents[2]
FIRST: Final = "run `tox -e claims` without a selection first"
HEAD: Final = "| claim | what it says | verdict | decisive evidence |\n|---|---|---|---|\n"


def summary(ledger: Ledger) -> str:
    """Return the claims as a table of one line each, with where the times are from."""
    rows = "".join(map(_line, ledger.claims))
    evidence = [each for row in ledger.claims for each in row["evidence"]]
    recorded = {e["device"] for e in evidence if e["kind"] == "recorded" and e["value"] is not None}
    where = f"\nTimes recorded on {'; '.join(sorted(recorded))}.\n" if recorded else ""
    return f"{HEAD}{rows}{where}"


def _line(row: Row) -> str:
    sentence = cell(says(row))
    if instead(row):
        sentence += f"<br>*instead: {cell(instead(row))}*"
    evidence = "<br>".join(cell(finding(each)) for each in deciding(row["evidence"]))
    return f"| `{row['id']}` | {sentence} | {row['verdict']} | {evidence} |\n"


def executed(records: Iterable[Record]) -> str:
    """Return how many launches of each record the hardware counted as we do."""
    return "".join(map(_held, records))


def _held(record: Record) -> str:
    parted = ", ".join(f"`{each.launch.name}` {each.executed:,}" for each in record.divergent)
    five = f"{_equal(record.divergent)} whose lanes part: {parted}" if parted else NONE_PARTED
    return f"- {record.label}: {_equal(record.drawn)} launches drawn at random; {five}\n"


def _equal(launches: Sequence[Measured]) -> str:
    return f"{sum(each.counted == each.executed for each in launches)} of {len(launches)}"


def between(name: str, renewed: str, text: str) -> str:
    """Return text with what stands between the marks of a list replaced."""
    marks = rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)"
    return re.sub(marks, lambda match: match[1] + renewed + match[2], text, flags=re.DOTALL)


def whole(path: Path) -> Any:
    """Return the claims of a run that had all of them.

    Raises
    ------
    SystemExit
        The file is missing, or holds a part of the claims or one that is gone: rows would be lost,
        or come back.
    """
    if not path.is_file():
        raise SystemExit(f"{path} is not there: {FIRST}")
    document = json.loads(path.read_text("utf-8"))
    if document.get("partial"):
        raise SystemExit(f"{path} holds a part of the claims: {FIRST}")
    ids = {row["id"] for row in document["claims"]}
    if other := ids.symmetric_difference(stated(ROOT / "suites")):
        raise SystemExit(
            f"{path} is of other claims than suites/ ({', '.join(sorted(other))}): {FIRST}"
        )
    return document


def main() -> None:
    """Rewrite README.md."""
    document = whole(ROOT / "build" / "claims.json")
    lists = {
        "claims": summary(Ledger(document["device"], document["claims"])),
        "sizes": every_size(),
        "effects": effects(),
        "executed": executed(stored()),
    }
    readme = ROOT / "README.md"
    text = readme.read_text("utf-8")
    for name, renewed in lists.items():
        text = between(name, renewed, text)
    readme.write_text(text, "utf-8")
    print(f"{readme} written: {len(document['claims'])} claims")


if __name__ == "__main__":
    main()
