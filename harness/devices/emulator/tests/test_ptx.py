"""The reader: text in, plain data out, and what it cannot read quoted."""

from __future__ import annotations

import pytest

from harness.devices.emulator.declarations import Variable
from harness.devices.emulator.program import Program
from harness.devices.emulator.ptx import (
    Address,
    Immediate,
    Operand,
    PtxError,
    Register,
    Symbol,
    Vector,
    parse,
)
from harness.devices.emulator.tests.ptx_text import architectures, entry_text
from kernels import Kernel, compile_kernel

R0, R1 = Register("%r0"), Register("%r1")


@pytest.mark.parametrize(
    ("line", "opcode", "modifiers", "types", "operands"),
    [
        ("add.s32 %r0, %r1, -5;", "add", (), ("s32",), (R0, R1, Immediate(-5))),
        ("mov.u32 %r0, 0x1F;", "mov", (), ("u32",), (R0, Immediate(31))),
        ("mov.u32 %r0, 4294967295U;", "mov", (), ("u32",), (R0, Immediate(2**32 - 1))),
        ("mov.f32 %r0, 0f3F800000;", "mov", (), ("f32",), (R0, Immediate(0x3F800000))),
        ("mov.f64 %r0, 0dBFF0000000000000;", "mov", (), ("f64",), (R0, Immediate(0xBFF << 52))),
        ("mov.u32 %r0, %ntid.x;", "mov", (), ("u32",), (R0, Symbol("%ntid.x"))),
        ("mov.u32 %r0, %laneid;", "mov", (), ("u32",), (R0, Symbol("%laneid"))),
        ("mul.wide.s32 %r0, %r1, 80;", "mul", ("wide",), ("s32",), (R0, R1, Immediate(80))),
        ("cvt.rn.f32.s32 %r0, %r1;", "cvt", ("rn",), ("f32", "s32"), (R0, R1)),
        ("ld.shared.f32 %r0, [%r1+44];", "ld", ("shared",), ("f32",), (R0, Address(R1, 44))),
        ("ld.shared.f32 %r0, [%r1+-4];", "ld", ("shared",), ("f32",), (R0, Address(R1, -4))),
        ("ld.param.u64 %r0, [p0];", "ld", ("param",), ("u64",), (R0, Address(Symbol("p0")))),
        (
            "ld.global.nc.v2.u32 {%r0, %r1}, [%r1];",
            "ld", ("global", "nc", "v2"), ("u32",), (Vector((R0, R1)), Address(R1)),
        ),
        (
            "st.global.v2.u32 [%r1+8], {%r0, %r1};",
            "st", ("global", "v2"), ("u32",), (Address(R1, 8), Vector((R0, R1))),
        ),
        (
            "shfl.sync.bfly.b32 %r0|%p1, %r1, 16, 31, -1;",
            "shfl", ("sync", "bfly"), ("b32",),
            (Vector((R0, Register("%p1"))), R1, Immediate(16), Immediate(31), Immediate(-1)),
        ),
        ("bra $L__BB0_2;", "bra", (), (), (Symbol("$L__BB0_2"),)),
        ("bar.sync 0;", "bar", ("sync",), (), (Immediate(0),)),
        ("call.uni f, (in);", "call", ("uni",), (), (Symbol("f"), Symbol("(in)"))),
    ],
)  # fmt: skip
def test_an_instruction_is_read_part_by_part(
    line: str,
    opcode: str,
    modifiers: tuple[str, ...],
    types: tuple[str, ...],
    operands: tuple[Operand, ...],
) -> None:
    (block, *_) = parse(entry_text(line))["k"].blocks
    instruction = block[0]
    assert (instruction.opcode, instruction.modifiers) == (opcode, modifiers)
    assert (instruction.types, instruction.operands) == (types, operands)
    assert (instruction.name, instruction.text) == (line.split()[0], line.rstrip(";"))


def test_a_guard_is_a_register_and_a_sign() -> None:
    ((one, other),) = parse(entry_text("@%p1 mov.u32 %r0, 1; @!%p2 mov.u32 %r0, 2;"))["k"].blocks
    assert (one.guard, one.negated) == (Register("%p1"), False)
    assert (other.guard, other.negated) == (Register("%p2"), True)
    assert other.name == "mov.u32"


def test_blocks_end_at_jumps_barriers_and_labels() -> None:
    entry = parse(
        entry_text(
            """
            mov.u32 %r0, 1; // a comment
            @%p0 bra $end;  /* a comment
            over two lines */
            mov.u32 %r0, 2;
            $loop:
            bar.sync 0;
            bra.uni $loop;
            $end:
            ret;
            """
        )
    )["k"]
    assert [[i.opcode for i in block] for block in entry.blocks] == [
        ["mov", "bra"], ["mov"], ["bar"], ["bra"], ["ret"],
    ]  # fmt: skip
    assert entry.labels == {"$loop": 2, "$end": 4}


def test_a_scope_is_transparent() -> None:
    text = "{\n.reg .b32 %temp; \nmov.b64 {%temp, %r4}, %rd1;\n}\nadd.s32 %r0, %r1, %r2;"
    ((unpack, add),) = parse(entry_text(text))["k"].blocks
    assert unpack.operands[0] == Vector((Register("%temp"), Register("%r4")))
    assert add.opcode == "add"


def test_a_name_that_two_scopes_declare_is_two_registers() -> None:
    """Each has its own type; outside its scope a name means nothing."""
    text = """
        { .reg .b32 %t, low; mov.b64 {%t, low}, %rd1; }
        { .reg .b16 %t; .reg .pred p<2>; mov.b32 {%t, %h0}, %r2; { .reg .b64 %t; mov.b64 %t, %rd0; }
          @p1 mov.u16 %h1, %t; }
        mov.u32 %r0, %t;
    """
    entry = parse(entry_text(text))["k"]
    ((unpack, halve, wide, move, late),) = entry.blocks
    first, second, third = (
        unpack.operands[0].elements[0],  # type: ignore[union-attr]
        halve.operands[0].elements[0],  # type: ignore[union-attr]
        wide.operands[0],
    )
    kinds = [entry.type_of(r.name) for r in (first, second, third)]  # type: ignore[union-attr]
    assert kinds == ["b32", "b16", "b64"]
    assert move.operands[1] == second
    assert (move.guard, late.operands[1]) == (Register("p1"), Symbol("%t"))


def test_registers_have_their_declared_type() -> None:
    entry = parse(entry_text("ret;"))["k"]
    assert [entry.type_of(r) for r in ("%p1", "%h2", "%r3", "%rd4", "%f5", "%fd6")] == [
        "pred", "b16", "b32", "b64", "f32", "f64",
    ]  # fmt: skip


def test_parameters_keep_order_and_type() -> None:
    text = """.entry k(
        .param .u64 .ptr .global .align 16 k_param_0,
        .param .f32 k_param_1,
        .param .align 8 .b8 k_param_2[40]
    )\n{\nret;\n}"""
    assert parse(text)["k"].parameters == {
        "k_param_0": "u64",
        "k_param_1": "f32",
        "k_param_2": "b8",
    }


def test_shared_variables_follow_each_other_aligned_and_the_dynamic_one_comes_last() -> None:
    outside = ".extern .shared .align 16 .b8 dynamic[];\n.shared .align 4 .b8 unused[400];"
    body = """
        .shared .align 1 .b8 bytes[3];
        .shared .align 8 .f64 pair[2];
        .shared .align 4 .u32 word;
        mov.u32 %r0, dynamic; ret;
        mov.u32 %r0, bytes; mov.u32 %r0, pair; mov.u32 %r0, word;
    """
    entry = parse(entry_text(body, (), outside))["k"]
    assert entry.variables == {
        "bytes": Variable(0, 3),
        "pair": Variable(8, 16),
        "word": Variable(24, 4),
        "dynamic": Variable(32, None),
    }
    assert entry.shared == 32


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (".version 8.0", "no .entry in this PTX: '.version 8.0'"),
        (".entry k(.param u64 p)\n{\nret;\n}", "cannot read the parameter '.param u64 p'"),
        (".entry k()\n{\n%r0 = 1;\n}", "cannot read '%r0 = 1'"),
        (".entry k()\n{\n$a: ret; $a: ret;\n}", "two labels of k are called $a: rename one"),
    ],
)
def test_what_is_no_ptx_is_quoted(text: str, message: str) -> None:
    with pytest.raises(PtxError) as error:
        parse(text)
    assert str(error.value) == message


@pytest.mark.parametrize("source", ["coalescing", "reduce_ladder"])
def test_the_kernels_are_understood_for_every_architecture(source: str) -> None:
    for architecture in architectures():
        ptx = compile_kernel(Kernel(source, "", (("BLOCK", 256),)), architecture).ptx
        programs = [Program(entry) for entry in parse(ptx).values()]
        assert programs
        assert all(program.blocks for program in programs)
