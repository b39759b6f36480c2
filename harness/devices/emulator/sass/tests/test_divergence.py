"""The rule of divergence, on code whose counts are derived by hand.

Lanes that split stay split until a BSYNC releases them, and each group issues its own instructions,
its BSYNC too. Were the lanes at the lowest program counter one group, every count here that has a
split would be lower; the hardware decided between the two, and how often those that wait issue
their BSYNC (parting.py, leaving.py, unseen.py).
"""

from __future__ import annotations

import pytest

from harness.devices.emulator.sass.tests.assembly import assemble, total

ODD = "S2R R0,SR_TID.X\nLOP3.LUT P0,R1,R0,0x1,RZ,0xc0,!PT\n"

MEET = assemble(
    ODD  # 0x00, 0x10
    + """BSSY B0,0x80
    @P0 BRA 0x60
    NOP
    BRA 0x70
    NOP
    BSYNC B0
    EXIT"""
)


def test_each_group_issues_its_own_bsync_and_one_exit_follows() -> None:
    """4 together, then 3 for the even lanes and 2 for the odd ones, each with its BSYNC; 1 exit."""
    assert total(MEET) == 4 + 3 + 2 + 1


def test_a_warp_without_odd_lanes_never_splits() -> None:
    """One thread: 4 + 3 + 1. The second warp of 33 threads has one lane."""
    assert total(MEET, (1, 1, 1)) == 8
    assert total(MEET, (33, 1, 1)) == 10 + 8


def test_without_a_barrier_lanes_stay_apart_to_the_end() -> None:
    """Both sides reach the same NOP and EXIT, each in its own time: 3 + (2 + 2) + (0 + 2)."""
    program = assemble(
        ODD
        + """@P0 BRA 0x50
        NOP
        NOP
        NOP
        EXIT"""
    )
    assert total(program) == 3 + (2 + 2) + 2


def test_a_loop_runs_as_often_as_its_busiest_lane_and_each_number_of_trips_waits_apart() -> None:
    """Lane t makes (t & 3) + 1 trips: four groups leave the loop, each issues its own BSYNC."""
    program = assemble(
        """S2R R0,SR_TID.X
        LOP3.LUT R1,R0,0x3,RZ,0xc0,!PT
        MOV R2,RZ
        BSSY B0,0x80
        IADD3 R2,R2,0x1,RZ
        ISETP.LE.U32.AND P0,PT,R2,R1,PT
        @P0 BRA 0x40
        BSYNC B0
        EXIT"""
    )
    assert total(program) == 4 + 4 * 3 + 4 + 1


def test_nested_barriers_join_the_inner_groups_first() -> None:
    """Of 32 lanes half skip the inner branch; the inner halves meet, then all."""
    program = assemble(
        """S2R R0,SR_TID.X
        LOP3.LUT P0,R1,R0,0x1,RZ,0xc0,!PT
        LOP3.LUT P1,R1,R0,0x2,RZ,0xc0,!PT
        BSSY B0,0xb0
        @P0 BRA 0xa0
        BSSY B1,0x90
        @P1 BRA 0x80
        NOP
        BSYNC B1
        NOP
        BSYNC B0
        EXIT"""
    )
    even = 2 + (1 + 1) + 1 + 2  # BSSY BRA; NOP BSYNC; BSYNC; then together NOP BSYNC
    odd = 1
    assert total(program) == 5 + even + odd + 1


BREAKS = """S2R R0,SR_TID.X
    LOP3.LUT P0,R1,R0,0x1,RZ,0xc0,!PT
    BSSY B0,0xa0
    BSSY B1,0x80
    {leave}
    @P0 BRA 0x90
    NOP
    BSYNC B1
    NOP
    BSYNC B0
    EXIT"""


def test_who_breaks_is_not_waited_for() -> None:
    """The even lanes pass B1 alone, then meet the odd ones at B0: 6 + 3 + (1 + 1) + 1 + 1."""
    program = assemble(BREAKS.format(leave="@P0 BREAK B1"))
    assert total(program) == 6 + 2 + 1 + 1 + 1 + 1


def test_a_second_predicate_narrows_a_break() -> None:
    """The compiler guards a BREAK and gives it a condition as well: both must hold."""
    for leave in ("@P0 BREAK B1,PT", "BREAK B1,P0"):
        assert total(assemble(BREAKS.format(leave=leave))) == 12
    with pytest.raises(ValueError, match="f: lanes wait for lanes that never come"):
        total(assemble(BREAKS.format(leave="@P0 BREAK B1,!P0")))


def test_a_predicate_of_an_exit_is_its_condition() -> None:
    """The odd lanes exit, the even ones go on: 3 + NOP EXIT."""
    assert total(assemble(ODD + "EXIT P0\nNOP\nEXIT")) == 3 + 2


def test_who_leaves_without_a_break_is_waited_for_and_that_is_refused() -> None:
    """B1 waits for lanes that wait at B0, which waits for those at B1."""
    program = assemble(BREAKS.format(leave="NOP"))
    with pytest.raises(ValueError, match="f: lanes wait for lanes that never come"):
        total(program)


def test_who_has_left_is_not_waited_for() -> None:
    """The odd lanes exit within the barrier: 4 + NOP + BSYNC + EXIT."""
    program = assemble(
        ODD
        + """BSSY B0,0x60
        @P0 EXIT
        NOP
        BSYNC B0
        EXIT"""
    )
    assert total(program) == 4 + 2 + 1


SIDES = """S2R R0,SR_TID.X
    LOP3.LUT P0,R1,R0,{mask},RZ,0xc0,!PT
    BSSY B0,0x70
    @{sign}P0 BRA 0x60
    NOP
    {here}
    {there}
    EXIT"""


@pytest.mark.parametrize(
    ("mask", "sign", "jump_first"),
    [("0x1", "", False), ("0x1", "!", False), ("0x3", "", False), ("0x3", "!", True)],
)
def test_the_smaller_side_goes_first_of_equal_ones_the_one_that_does_not_jump(
    mask: str, sign: str, jump_first: bool
) -> None:
    """One side leaves: NOP BSYNC EXIT, EXIT; one BSYNC more if the other has come to wait by then.

    Of 32 lanes 16 or, with both bits clear, 8 do not hold P0.
    """
    part = SIDES.format(mask=mask, sign=sign, here="{}", there="{}")
    jump_leaves, jump_waits = part.format("BSYNC B0", "EXIT"), part.format("EXIT", "BSYNC B0")
    assert total(assemble(jump_leaves)) == 4 + 3 + 1 + (not jump_first)
    assert total(assemble(jump_waits)) == 4 + 2 + 2 + jump_first


def test_those_that_waited_issue_it_again_as_one_group() -> None:
    """Lane t makes (t & 3) + 1 trips of 5; in the fourth it exits, and three groups wait for it."""
    program = assemble(
        """S2R R0,SR_TID.X
        LOP3.LUT R1,R0,0x3,RZ,0xc0,!PT
        MOV R2,RZ
        BSSY B0,0xa0
        IADD3 R2,R2,0x1,RZ
        ISETP.EQ.AND P1,PT,R2,0x4,PT
        @P1 EXIT
        ISETP.LE.U32.AND P0,PT,R2,R1,PT
        @P0 BRA 0x40
        BSYNC B0
        EXIT"""
    )
    assert total(program) == 4 + 3 * 5 + 3 + 3 + 1 + 1


def test_who_breaks_last_is_as_one_that_leaves() -> None:
    """The even lanes' BSYNC, the odd ones' BREAK; then BSYNC BRA BSYNC, BSYNC, and one EXIT."""
    program = assemble(
        ODD
        + """BSSY B0,0x90
        BSSY B1,0x60
        @P0 BRA 0x70
        BSYNC B1
        BRA 0x80
        BREAK B1
        BSYNC B0
        EXIT"""
    )
    assert total(program) == 5 + 1 + 1 + 3 + 1 + 1


@pytest.mark.parametrize(("breaking", "woken_first"), [("0x1", True), ("0x2", False)])
def test_of_the_breaking_and_the_woken_the_smaller_go_first(
    breaking: str, woken_first: bool
) -> None:
    """Of 4 lanes 3 or 2 break and exit; the woken are at B0 before them if they are fewer.

    5 together, NOP BSYNC; BREAK, then NOP EXIT, and BSYNC BRA BSYNC, that maybe again; EXIT.
    """
    program = assemble(
        f"""S2R R0,SR_TID.X
        ISETP.GE.AND P0,PT,R0,{breaking},PT
        BSSY B0,0xc0
        BSSY B1,0x70
        @P0 BRA 0x80
        NOP
        BSYNC B1
        BRA 0xb0
        BREAK B1
        NOP
        EXIT
        BSYNC B0
        EXIT"""
    )
    assert total(program, (4, 1, 1)) == 5 + 2 + 1 + 2 + 3 + woken_first + 1


def test_those_put_aside_at_one_place_go_on_together_but_for_the_last() -> None:
    """Of 16 lanes 9 leave the loop, then 4, 2 and 1: the 9 and the 4 are aside when 2 more come."""
    program = assemble(
        """S2R R0,SR_TID.X
        MOV R2,0x7
        ISETP.GE.AND P0,PT,R0,R2,PT
        SHF.R.U32.HI R2,RZ,0x1,R2
        @!P0 BRA 0x20
        NOP
        EXIT"""
    )
    assert total(program, (16, 1, 1)) == 2 + 4 * 3 + 3 * 2


def test_lanes_that_left_when_nobody_else_was_in_a_mask_are_still_in_it() -> None:
    """The odd lanes leave B1 alone; the even ones, BSSY BRA, NOP BSYNC, BSYNC, try it again."""
    program = assemble(
        """S2R R0,SR_TID.X
        LOP3.LUT P0,R1,R0,0x1,RZ,0xc0,!PT
        LOP3.LUT P1,R1,R0,0x2,RZ,0xc0,!PT
        @!P0 BRA 0x60
        BSSY B1,0xa0
        EXIT
        BSSY B1,0xa0
        @P1 BRA 0x90
        NOP
        BSYNC B1
        EXIT"""
    )
    assert total(program) == 4 + 2 + 2 + 2 + 1 + 1 + 1


CALLED = """S2R R0,SR_TID.X
    LOP3.LUT P0,R1,R0,0x1,RZ,0xc0,!PT
    BSSY B0,0xa0
    @P0 BRA 0x70
    MOV R4,0x60
    CALL.REL.NOINC far
    BRA 0x90
    MOV R4,0x90
    CALL.REL.NOINC far
    BSYNC B0
    EXIT
    NOP
    MOV R5,RZ
    RET.REL.NODEC R4,f"""


def test_a_function_runs_once_for_each_caller_and_returns_to_it() -> None:
    """4 together; MOV CALL NOP MOV RET for each side, a BRA for one; two BSYNCs, one EXIT."""
    assert total(assemble(CALLED, {"far": 0xB0})) == 4 + 2 * 5 + 1 + 2 + 1


def test_a_warpsync_is_issued_again_by_all_who_met_there() -> None:
    """3 together, NOP and WARPSYNC for the even lanes, WARPSYNC for the odd, then all; EXIT."""
    text = ODD + "@P0 BRA 0x40\nNOP\nWARPSYNC {}\nEXIT"
    assert total(assemble(text.format("0xffffffff"))) == 3 + 2 + 1 + 1 + 1
    assert total(assemble(text.replace("WARPSYNC {}", "WARPSYNC.ALL"))) == 8


def test_a_warpsync_waits_for_the_lanes_it_names_alone() -> None:
    """Each half waits for itself: they stay apart, and exit apart."""
    text = ODD + "MOV R2,0x55555555\n@P0 MOV R2,0xaaaaaaaa\n@P0 BRA 0x60\nNOP\nWARPSYNC R2\nEXIT"
    assert total(assemble(text)) == 5 + (1 + 2) + 2


def test_a_branch_on_divergence_is_taken_by_a_part_of_the_mask() -> None:
    """The whole warp passes; one half takes the branch; the other is whole once that one left."""
    whole = assemble("BRA.DIV ~URZ,0x20\nEXIT\nNOP\nEXIT")
    assert total(whole) == 2
    halves = assemble(ODD + "@P0 BRA 0x40\nNOP\nBRA.DIV ~URZ,0x60\nEXIT\nNOP\nEXIT")
    assert total(halves) == 3 + 1 + 3 + 2


def test_predicated_off_instructions_are_issued() -> None:
    """And told apart if they are asked for: 32 threads without an odd lane in one of two warps."""
    program = assemble(
        """S2R R0,SR_TID.X
        ISETP.LT.AND P0,PT,R0,0x20,PT
        @P0 LDG.E R2,[R4.64]
        EXIT""",
        watched=frozenset({"LDG"}),
    )
    from harness.devices.emulator.sass.tests.assembly import run

    assert total(program, (64, 1, 1)) == 8
    assert run(program, (64, 1, 1)).idle == {"LDG": 1}
