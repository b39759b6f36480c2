"""The ladder in machine instructions: the column is exact, and of other sums than the times.

They are counted from the machine code, with no GPU, and stand beside a GPU's own counter. Code is
the compiler's work, so what is said of it is said of compilers that were tried.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from harness import instructions
from harness.profiles import stored
from harness.workloads.ladder import BLOCK, PERSISTENT, ladder, published

RUNGS: Final = tuple(f"reduce_v{rung}" for rung in range(2, 8))

# Rungs of which that NVRTC makes the code that the seminar counted: 13.0 makes others of V3 and V7.
AS_PUBLISHED: Final = {
    (13, 5): RUNGS,
    (13, 0): ("reduce_v2", "reduce_v4", "reduce_v5", "reduce_v6"),
}
# These two make code of other registers for sm_90, that counts alike: all of the ladder.
ALIKE: Final = {(13, 0), (13, 5)}


def version(compiler: tuple[int, int]) -> str:
    """As "13.5"."""
    return ".".join(map(str, compiler))


def prints_as(count: int, printed: int) -> bool:
    """Whether a count rounds to a printed figure, whose trailing zeros were not printed."""
    digits = str(printed)
    unit: int = 10 ** (len(digits) - len(digits.rstrip("0")))
    return 2 * abs(count - printed) <= unit


def executed(rung: str, power: int) -> int:
    """Instructions of a rung on 2^power floats, on the GPU that the seminar used."""
    return ladder(rung, 1 << power, PERSISTENT, "sm_80").total


def known(claim: Any, compiler: tuple[int, int]) -> bool:
    """Whether this compiler's code was looked at; says so if not."""
    if compiler not in AS_PUBLISHED:
        claim.note(
            f"what NVRTC {version(compiler)} makes of the ladder was not looked at: not compared"
        )
    return compiler in AS_PUBLISHED


def as_the_hardware_counts(claim: Any) -> None:
    """V1 to V7 on 2^26 floats against smsp__inst_executed.sum.

    Where the recorded code is another compiler's, it is one whose code was found to count alike.
    """
    compiler = ladder(RUNGS[0], 1, 1, "sm_90").compiler
    for profile in stored():
        if compiler != profile.compiler and {compiler, profile.compiler} != ALIKE:
            claim.note(f"NVRTC {version(compiler)} is not what made the code of {profile.label}")
            continue
        for rung in ("reduce_v1", *RUNGS, "reduce_v5_float4"):
            launch = profile.launches[f"{rung}[BLOCK={BLOCK}] n={1 << 26}"]
            counted = ladder(rung, launch["n"], launch["grid"], "sm_90").total
            measured = int(launch["counters"]["smsp__inst_executed.sum"])
            claim.counted(f"instructions of {rung}, n = 2^26", counted, measured, profile.label)


def as_the_hardware_counts_lanes_that_part(claim: Any) -> None:
    """Five kernels whose lanes part, as counted where their code was made."""
    for record in instructions.stored():
        if not record.divergent:
            claim.note(f"{record.label}: {instructions.NONE_PARTED}")
        for each in record.divergent:
            if each.counted is not None:
                what = f"instructions of {each.launch.name}"
                claim.counted(what, each.counted, each.executed, record.label)


@pytest.mark.claim(
    "reduce.warp-instructions",
    "the table's instructions belong to its times",
    published="155 M ... 1.85 M",
    expects="refuted",
)
@pytest.mark.usefixtures("disassembler")
def test_the_instruction_column_is_of_another_size_than_the_times(claim: Any) -> None:
    """All six figures are those of 2^24 floats on an A100, and none is that of 2^26.

    The times are of 2^26. A trip of V7 is a load, four additions and a loop for 128 floats a warp:
    1.85 M instructions are too few for the trips of 2^26 whatever the compiler.
    """
    column = published()
    compiler = ladder(RUNGS[0], 1, 1, "sm_80").compiler
    if known(claim, compiler):
        for power, expected in ((24, AS_PUBLISHED[compiler]), (26, ())):
            fitting = [r for r in RUNGS if prints_as(executed(r, power), column[r])]
            what = f"rungs that print as published: sm_80, n = 2^{power}, NVRTC {version(compiler)}"
            claim.counted(what, fitting, list(expected), "sm_80 machine code")
    counts = [executed(rung, 24) for rung in RUNGS]
    claim.counted("instructions fall from V2 to V7", counts, sorted(counts, reverse=True), "sm_80")
    found = ladder("reduce_v7", 1 << 26, PERSISTENT, "sm_80").by_opcode
    trips = (1 << 26) // 128
    claim.counted("loads a trip of V7", found["LDG"] / trips, 1, "sm_80")
    claim.counted("additions of V7 beyond those of its shuffles, a trip",
                  (found["FADD"] - found["SHFL"]) / trips, 4, "sm_80")  # fmt: skip
    few = column["reduce_v7"] < found["LDG"] + found["FADD"] - found["SHFL"]
    claim.counted("the column has too few instructions for V7's trips", few, True, "sm_80")
    as_the_hardware_counts(claim)
    as_the_hardware_counts_lanes_that_part(claim)
