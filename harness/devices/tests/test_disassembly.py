"""Machine code is read as nvdisasm prints it, in order; whatever is unknown is refused by name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from harness.devices import disassembly
from harness.devices.disassembly import DisassemblerMissing, Instruction, SassError
from kernels import Kernel, compile_kernel, kernel

ARCHITECTURES = ("sm_80", "sm_90", "sm_100", "sm_120")
V6, V7 = (kernel("reduce_ladder", f"reduce_v{rung}", BLOCK=256) for rung in (6, 7))
V6_INT_STRIDE = kernel("reduce_ladder", "reduce_v6", BLOCK=256, INT_STRIDE=1)
V3 = kernel("reduce_ladder", "reduce_v3", BLOCK=256)


def loads_in_a_row(rung: Kernel, architecture: str) -> list[int]:
    """How many LDG stand between two FADD, each time."""
    code = disassembly.instructions(rung, architecture)
    opcodes = [each.opcode for each in code if each.opcode in ("LDG", "FADD")]
    return [len(list(run)) for opcode, run in groupby(opcodes) if opcode == "LDG"]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_v7_loads_128_bits_once_a_trip(architecture: str) -> None:
    """One LDG in the code; the loop runs it."""
    found = [a for a in disassembly.memory_instructions(V7, architecture) if a.space == "global"]
    assert [(a.kind, a.bytes, a.instruction.opcode) for a in found] == [("load", 16, "LDG")]
    assert {"E", "128"} <= set(found[0].instruction.modifiers)
    assert loads_in_a_row(V7, architecture) == [1]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_v6_loads_four_times_before_it_adds_if_its_stride_is_signed(architecture: str) -> None:
    """An unsigned stride may wrap around, so the loop stays as it is."""
    assert max(loads_in_a_row(V6_INT_STRIDE, architecture)) == 4
    assert max(loads_in_a_row(V6, architecture)) == 1


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_instructions_come_in_program_order_16_bytes_apart(architecture: str) -> None:
    """The offset of an instruction says where it stands."""
    code = disassembly.instructions(V3, architecture)
    assert [each.offset for each in code] == list(range(0, 16 * len(code), 16))
    assert {"S2R", "LDG", "LDS", "STS", "BAR", "EXIT"} <= {each.opcode for each in code}
    exits = [each for each in code if each.opcode == "EXIT"]
    assert any(each.predicate.startswith("@") for each in exits)
    assert not exits[-1].predicate


def test_shared_accesses_are_told_from_global_ones() -> None:
    """V3 stores its element, then reads two and writes one a round."""
    found = [(a.kind, a.space, a.bytes) for a in disassembly.memory_instructions(V3, "sm_90")]
    assert found[0] == ("load", "global", 4)
    assert {("store", "shared", 4), ("load", "shared", 4)} <= set(found[1:])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_cubin_is_whole(architecture: str) -> None:
    """CuPy drops its last byte; without it, nvdisasm sees no ELF file at all."""
    cubin = compile_kernel(V7, architecture).cubin
    assert "reduce_v7" in disassembly.disassemble(cubin)
    with pytest.raises(SassError, match=f"cannot read this cubin of {len(cubin) - 1} bytes"):
        disassembly.disassemble(cubin[:-1])


def test_a_module_is_disassembled_once() -> None:
    """All its entries come out of one run."""
    disassembly.instructions(V6, "sm_90")
    misses = disassembly.disassemble.cache_info().misses
    assert disassembly.instructions(V6, "sm_90") is disassembly.instructions(V6, "sm_90")
    disassembly.instructions(V7, "sm_90")
    assert disassembly.disassemble.cache_info().misses == misses


def test_an_entry_that_is_not_there_is_named() -> None:
    """As the compiler's own loader does."""
    source = kernel("coalescing", "update_aos")
    renamed = Kernel(source.source, "update_none")
    with pytest.raises(LookupError, match=r"coalescing\.cu for sm_90 has no update_none"):
        disassembly.instructions(renamed, "sm_90")


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Neither the wheel nor a PATH that has nvdisasm."""

    def missing(name: str) -> Any:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(disassembly, "files", missing)
    monkeypatch.setenv("PATH", "")
    disassembly.nvdisasm.cache_clear()
    yield
    disassembly.nvdisasm.cache_clear()


@pytest.mark.usefixtures("nothing_installed")
def test_without_nvdisasm_the_message_says_what_to_install() -> None:
    """It needs no GPU, and there is one for CUDA 12 and 13."""
    with pytest.raises(DisassemblerMissing, match="pip install nvidia-cuda-nvdisasm"):
        disassembly.nvdisasm()


@pytest.mark.usefixtures("nothing_installed")
def test_nvdisasm_of_a_toolkit_is_found_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node without the wheel may have CUDA's own."""
    tool = tmp_path / "nvdisasm"
    tool.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert disassembly.nvdisasm() == tool


def printed(*code: dict[str, Any], **function: Any) -> str:
    """What nvdisasm -json prints for one function."""
    fields = {"function-name": "f", "start": 0, "length": 16 * len(code)}
    return json.dumps([{}, [{**fields, "sass-instructions": code, **function}]])


def test_an_instruction_is_taken_apart() -> None:
    """Opcode, modifiers, operands, predicate; the text is what nvdisasm would show."""
    output = printed(
        {"predicate": "@!P0", "opcode": "LDG.E.128", "operands": "R4,[R2.64+0x10]"},
        {"opcode": "EXIT", "other-attributes": {"control-flow": "True"}},
    )
    first, last = disassembly.read(output)["f"]
    assert first == Instruction(
        "LDG",
        ("E", "128"),
        ("R4", "[R2.64+0x10]"),
        "@!P0",
        "@!P0 LDG.E.128 R4,[R2.64+0x10]",
        0,
    )
    assert (last.opcode, last.operands, last.predicate, last.offset) == ("EXIT", (), "", 16)


@pytest.mark.parametrize(
    ("opcode", "operands", "expected"),
    [
        ("P2R", "R42,RZ,0x1", ("R42", "PR", "RZ", "0x1")),
        ("P2R.B1", "R42,RZ,0x1", ("R42", "PR", "RZ", "0x1")),
        ("R2P", "R42,0x1", ("PR", "R42", "0x1")),
    ],
)
def test_all_predicates_at_once_are_an_operand(
    opcode: str, operands: str, expected: tuple[str, ...]
) -> None:
    """The JSON of nvdisasm 13.5 has them where a guard stands."""
    fields = {"predicate": "PR", "opcode": opcode, "operands": operands}
    (found,) = disassembly.read(printed(fields))["f"]
    assert (found.predicate, found.operands) == ("", expected)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("", "nvdisasm -json printed ''"),
        ("{}", "nvdisasm -json printed '{}'"),
        (json.dumps([{}, [{"function-name": "f"}]]), "KeyError"),
        (printed({"opcode": "ldg"}), "'ldg'.*not known here"),
        (printed({"opcode": "LDG", "predicate": "@R1"}), "'@R1'.*not known here"),
        (printed({"opcode": "LDG", "encoding": "0x0"}), "'encoding'.*at 0x0.*not known here"),
        (printed({"opcode": "NOP"}, length=8), "f starts at 0 and has 1 instructions in 8 bytes"),
        (printed({"opcode": "NOP"}, start=16), "f starts at 16"),
    ],
)
def test_output_of_another_shape_is_refused_by_name(output: str, message: str) -> None:
    """Nothing is skipped: a count that misses what it did not understand would look right."""
    with pytest.raises(SassError, match=message):
        disassembly.read(output)


@pytest.mark.parametrize(
    ("opcode", "operands", "message"),
    [
        ("LDG.E.ENL2.256", "R8,R4,[R2.64]", "the modifier ENL2 is not known here"),
        ("LD.E", "R4,[R2.64]", "which memory LD accesses"),
        ("LDGSTS.E.BYPASS.128", "[R1],[R2.64]", "which memory LDGSTS accesses"),
        ("UBLKCP.S.G", "[UR4],[UR6],UR8", "which memory UBLKCP accesses"),
    ],
)
def test_accesses_of_unknown_space_or_width_are_refused(
    opcode: str, operands: str, message: str
) -> None:
    """The message quotes the instruction and its offset."""
    (instruction,) = disassembly.read(printed({"opcode": opcode, "operands": operands}))["f"]
    with pytest.raises(SassError, match=f"at 0x0: {message}") as refusal:
        disassembly.access(instruction)
    assert instruction.text in str(refusal.value)


@pytest.mark.parametrize("opcode", ["LDC.64", "STL", "REDG.E.ADD.F32.FTZ.RN", "FADD", "BAR.SYNC"])
def test_what_is_no_access_of_global_or_shared_memory_is_none(opcode: str) -> None:
    """Constants, spills, atomics, arithmetic."""
    (instruction,) = disassembly.read(printed({"opcode": opcode}))["f"]
    assert disassembly.access(instruction) is None
