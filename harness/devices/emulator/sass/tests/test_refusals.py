"""What is not understood is refused with the instruction and its offset, never approximated."""

from __future__ import annotations

import pytest

from harness.devices.emulator import EmulatedDevice, Uncountable
from harness.devices.emulator.sass.tests import unseen
from harness.devices.emulator.sass.tests.assembly import assemble, total
from harness.devices.emulator.sass.tests.launches import ARCHITECTURES, branching
from harness.instructions import code, count
from kernels import kernel


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_branch_that_data_decide_is_refused_with_the_load(architecture: str) -> None:
    """A count would be a guess."""
    message = (
        r"by_data: `@!?P0 (EXIT|BRA .*)` at 0x\w+ is decided by `LDG.E R\w+,.*` at 0x\w+, "
        "which depends on data"
    )
    with pytest.raises(Uncountable, match=message):
        EmulatedDevice(architecture).count_sass(branching("by_data"), 1, 32, 0, 0)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_wait_for_another_block_is_refused_with_the_load(architecture: str) -> None:
    """How often a volatile load is repeated, no launch says."""
    message = (
        r"by_flag: `@!P0 BRA 0x\w+` at 0x\w+ is decided by `LDG.E.STRONG.SYS R\w+,.*` at 0x\w+, "
        "which depends on data"
    )
    with pytest.raises(Uncountable, match=message):
        EmulatedDevice(architecture).count_sass(branching("by_flag"), 1, 32, 0, 0)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_branch_that_a_clock_decides_is_refused(architecture: str) -> None:
    """Nothing here knows time."""
    message = r"at 0x\w+ is decided by `CS2U?R U?R\d+,SR_CLOCKLO` at 0x\w+, which reads a clock"
    with pytest.raises(Uncountable, match=message):
        EmulatedDevice(architecture).count_sass(branching("by_clock"), 1, 32, 0, 4)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("NOP\nBRX R2,-0x100\nEXIT", "`BRX R2,-0x100` at 0x10: .* where a register says"),
        ("BMOV.32 B0,R1\nEXIT", "`BMOV.32 B0,R1` at 0x0: .* convergence barrier"),
        ("NOP\nNOP\nFROB R1,R2\nEXIT", "`FROB R1,R2` at 0x20: the opcode FROB is not known here"),
        ("IMAD.ODD R1,R2,R3,R4\nEXIT", "`IMAD.ODD R1,R2,R3,R4` at 0x0: the modifier ODD is not"),
        ("FADD.ODD R1,R2,R3\nEXIT", "`FADD.ODD R1,R2,R3` at 0x0: the modifier ODD is not known"),
        ("BRA.CONV 0x10\nEXIT", "`BRA.CONV 0x10` at 0x0: the modifier CONV is not known here"),
        ("CALL.REL.NOINC gone\nEXIT", "`CALL.REL.NOINC gone` at 0x0: where gone is"),
        ("BRA 0x40\nEXIT", "f: something leads to 0x40, past its code"),
    ],
)
def test_code_that_is_not_known_is_refused_before_it_runs(code: str, message: str) -> None:
    """The kernel as a whole: nobody can say what would follow."""
    with pytest.raises(Uncountable, match=message):
        assemble(code)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "WARPSYNC.COLLECTIVE R1,0x10\nEXIT",
            "`WARPSYNC.COLLECTIVE R1,0x10` at 0x0: what lanes do here that have split",
        ),
        (
            "@P0 BRA 0x10\nEXIT",
            "f: `@P0 BRA 0x10` at 0x0 is decided by `@P0 BRA 0x10` at 0x0, which reads what",
        ),
        (
            "ISETP.EQ.AND P0,PT,R0,R0,PT\n@P0 EXIT\nEXIT",
            "at 0x10 is decided by `ISETP.EQ.AND P0,PT,R0,R0,PT` at 0x0, which reads what neither",
        ),
        (
            "LEA.HI R0,-R1,R2,R3,0x4\nISETP.EQ.AND P0,PT,R0,RZ,PT\n@P0 EXIT\nEXIT",
            "is decided by `LEA.HI R0,-R1,R2,R3,0x4` at 0x0, which is not known in this form",
        ),
        ("S2R R0,SR_TID.X\nISETP.EQ.AND P0,PT,R0,RZ,PT\n@P0 BSYNC B0\nEXIT", "only some lanes"),
        ("BSYNC B0\nEXIT", "`BSYNC B0` at 0x0: lanes wait at B0 that never joined it"),
        ("MOV R4,0x30\nMOV R5,RZ\nRET.REL.NODEC R4,f", "leads to 0x30, where nothing returns to"),
    ],
)
def test_what_cannot_be_followed_is_refused_when_a_lane_comes_by(code: str, message: str) -> None:
    """Until then it may stand in the kernel."""
    with pytest.raises(Uncountable, match=message):
        total(assemble(code))


UNCLEAR = "`@P{} EXIT` at {}: who waits is not known: B1 holds lanes that left"
BESIDE = """S2R R0,SR_TID.X
    ISETP.LT.AND P0,PT,R0,{alone},PT
    ISETP.GE.AND P1,PT,R0,0x4,PT
    ISETP.LT.AND P2,PT,R0,{leaving},PT
    @!P0 BRA 0x70
    BSSY B1,0xb0
    EXIT
    BSSY B1,0xb0
    @P1 BRA {to}
    @P2 EXIT
    BSYNC B1
    EXIT
    BRA 0xa0"""


def test_to_come_to_others_where_a_barrier_holds_a_lane_that_left_is_refused() -> None:
    """Lane 0 leaves B1 alone; then 1 leaves, and 2 and 3 come to 4 to 7, who are aside."""
    program = assemble(BESIDE.format(alone="0x1", leaving="0x2", to="0xa0"))
    with pytest.raises(Uncountable, match=UNCLEAR.format(2, "0x90")):
        total(program, (8, 1, 1))


@pytest.mark.parametrize(
    ("alone", "leaving", "to", "issued"),
    [
        ("0x0", "0x2", "0xa0", 5 + 2 + 2 + 1 + 1),
        ("0x1", "0x1", "0xa0", 5 + 2 + 2 + 2 + 1 + 1 + 1),
        ("0x1", "0x2", "0xc0", 5 + 2 + 2 + 2 + 2 + 1 + 1),
    ],
)
def test_what_lacks_one_of_the_three_is_counted(
    alone: str, leaving: str, to: str, issued: int
) -> None:
    """No lane left before; none leaves now; the others are elsewhere, a BRA before the BSYNC.

    5 together, BSSY EXIT of lane 0, BSSY BRA; EXIT BSYNC, BSYNC, that again if awaited; EXIT.
    """
    program = assemble(BESIDE.format(alone=alone, leaving=leaving, to=to))
    assert total(program, (8, 1, 1)) == issued


def test_the_launch_that_an_h200_counted_otherwise_is_refused() -> None:
    """By the rule it would be 243, on the card it was 240."""
    architecture, launch = unseen.RECORD.architecture, unseen.REFUSED.launch
    if code(launch, architecture) != unseen.REFUSED.code:
        pytest.skip(f"NVRTC makes other code of {launch.kernel} here than the one that ran")
    with pytest.raises(Uncountable, match=UNCLEAR.format(0, "0x4e0")):
        count(launch, architecture)


def test_the_refusal_names_kernel_and_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that is missing for one architecture shows where."""
    from harness.devices.emulator import sass
    from harness.devices.emulator.sass import opcodes

    monkeypatch.delitem(opcodes.TABLE, "LDG")
    sass.load.cache_clear()
    with pytest.raises(Uncountable, match=r"copy_offset for sm_80: `LDG.E .*: the opcode LDG is"):
        EmulatedDevice("sm_80").count_sass(kernel("coalescing", "copy_offset"), 1, 32, 0, 0, 0)
    sass.load.cache_clear()
