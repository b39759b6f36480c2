"""How many cycles a thread needs for its loads, FMAs and stores in the order of its compiled code.

The seminar's machine: one warp, one instruction a cycle in program order, addresses for free. An
instruction waits until its operands are usable and holds up all that follow. What may overtake what
is settled before, by who orders the code: a load may not go before a store that may write to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, Literal, TypeVar

from harness.devices import disassembly
from harness.devices.emulator import ptx
from kernels import Kernel, compile_kernel

Kind = Literal["load", "fma", "store"]

LOAD: Final = 1000  # cycles from issue until the result can be used, the seminar's round number
FMA: Final = 4
WORD: Final = 4  # bytes
KINDS: Final = ("load", "fma", "store")
VALUES: Final = {"load": 1, "fma": 4, "store": 1}  # registers of data each kind names
SPAN: Final = {"WIDE": 2, "64": 2, "128": 4}  # registers that an instruction so marked writes
PTX_KINDS: Final[dict[str, Kind]] = {"ld": "load", "fma": "fma", "st": "store"}
REGISTER: Final = re.compile(r"[-|]?(R\d+)\b.*")  # -R4, |R4|, R4.reuse; not [R4.64]

Code = TypeVar("Code", ptx.Instruction, disassembly.Instruction)


class NotModelled(ValueError):
    """The code does what this model has no cycles for; the message quotes it."""


@dataclass(frozen=True)
class Step:
    """A load, an FMA or a store, by the values it takes and gives; each value is given once.

    Attributes
    ----------
    result
        The value it gives; "" for a store.
    operands
        The values it takes: factor, factor, addend of an FMA, or what a store writes.
    address
        What is known of it before the kernel runs: a base and a distance in bytes, or nothing.
    read_only
        A load of memory that the kernel promises not to write.
    """

    kind: Kind
    result: str
    operands: tuple[str, ...] = ()
    address: tuple[str, int] | None = None
    read_only: bool = False


def issue_cycles(steps: Iterable[Step], load: int = LOAD, fma: int = FMA) -> list[int]:
    """Return the cycle in which each step is issued; the first is 0, so the last is the count."""
    latency = {"load": load, "fma": fma, "store": 0}
    usable: dict[str, int] = {}
    cycles: list[int] = []
    for step in steps:
        next_slot = cycles[-1] + 1 if cycles else 0
        cycles.append(max([next_slot, *(usable[value] for value in step.operands)]))
        usable[step.result] = cycles[-1] + latency[step.kind]
    return cycles


def hoisted(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return `steps` with loads first, then FMAs, then stores, each as soon as it may go."""
    left, order = list(steps), []
    while left:
        ready = [step for at, step in enumerate(left) if not _must_wait(step, left[:at])]
        order.append(min(ready, key=lambda step: KINDS.index(step.kind)))
        left.remove(order[-1])
    return tuple(order)


def _must_wait(step: Step, before: Iterable[Step]) -> bool:
    return any(other.result in step.operands or may_alias(step, other) for other in before)


def may_alias(one: Step, other: Step) -> bool:
    """Whether the two must keep their order: one is a store, and both may be at one address.

    Only distances from the same base can be told apart before the kernel runs.
    """
    kinds = {one.kind, other.kind}
    if "store" not in kinds or "fma" in kinds or one.read_only or other.read_only:
        return False
    if one.address is None or other.address is None or one.address[0] != other.address[0]:
        return True
    return abs(one.address[1] - other.address[1]) < WORD


def loads_before(kind: Kind, steps: Sequence[Step]) -> int:
    """Return how many loads are issued before the first step of `kind`."""
    kinds: list[str] = [step.kind for step in steps]
    return kinds[: kinds.index(kind)].count("load")


def named(steps: Sequence[Step]) -> str:
    """Return the order in words: a1, b1 and c1 are what FMA1 multiplies and adds, ST1 stores it."""
    names: dict[str, str] = {}
    for k, step in enumerate((step for step in steps if step.kind == "fma"), 1):
        names |= dict(zip(step.operands, (f"a{k}", f"b{k}", f"c{k}"), strict=True))
        names[step.result] = f"FMA{k}"
    return " ".join(
        names[step.result] if step.result else names[step.operands[0]].replace("FMA", "ST")
        for step in steps
    )


@cache
def ptx_steps(kernel: Kernel, architecture: str) -> tuple[Step, ...]:
    """Return the steps of `kernel` as the compiler orders them, in its PTX.

    Raises
    ------
    NotModelled
        An access to global memory or an FMA is not of 32-bit registers, all of them computed here.
    """
    blocks = ptx.parse(compile_kernel(kernel, architecture).ptx)[kernel.name].blocks
    return _steps((each for block in blocks for each in block), _from_ptx, _ptx_targets)


@cache
def sass_steps(kernel: Kernel, architecture: str) -> tuple[Step, ...]:
    """Return the steps of `kernel` as the assembler orders them, in its machine code.

    Raises
    ------
    NotModelled
        As `ptx_steps`.
    harness.devices.disassembly.DisassemblerMissing, harness.devices.disassembly.SassError
        The machine code cannot be read.
    """
    return _steps(disassembly.instructions(kernel, architecture), _from_sass, _sass_targets)


def _steps(
    code: Iterable[Code],
    read: Callable[[Code], Step | None],
    targets: Callable[[Code], Iterable[str]],
) -> tuple[Step, ...]:
    """Read the steps; registers are used again, so each value gets a name of its own."""
    values: dict[str, str] = {}
    steps: list[Step] = []
    for position, instruction in enumerate(code):
        step = read(instruction)
        if step is None:
            for register in targets(instruction):
                values.pop(register, None)
            continue
        if unknown := [register for register in step.operands if register not in values]:
            raise NotModelled(f"{instruction.text!r}: {unknown[0]} is of no load and of no FMA")
        operands = tuple(values[register] for register in step.operands)
        result = f"{step.result}@{position}" if step.result else ""
        values[step.result] = result
        steps.append(replace(step, operands=operands, result=result))
    return tuple(steps)


def _step(kind: Kind, registers: Sequence[str], size: int, text: str) -> Step:
    if len(registers) != VALUES[kind] or size != WORD or text.startswith("@"):
        raise NotModelled(
            f"{text!r}: the model knows {kind}s of 32-bit registers without a predicate"
        )
    given = 0 if kind == "store" else 1
    return Step(kind, "".join(registers[:given]), tuple(registers[given:]))


def _from_ptx(instruction: ptx.Instruction) -> Step | None:
    kind = PTX_KINDS.get(instruction.opcode)
    if kind is None or (kind != "fma" and "global" not in instruction.modifiers):
        return None
    registers = [each.name for each in instruction.operands if isinstance(each, ptx.Register)]
    size = int(instruction.types[-1].lstrip("bfsux")) // 8
    step = _step(kind, registers, size, instruction.text)
    places = [each for each in instruction.operands if isinstance(each, ptx.Address)]
    address = (places[0].base.name, places[0].offset) if places else None
    return replace(step, address=address, read_only="nc" in instruction.modifiers)


def _ptx_targets(instruction: ptx.Instruction) -> Iterable[str]:
    return [each.name for each in instruction.operands[:1] if isinstance(each, ptx.Register)]


def _from_sass(instruction: disassembly.Instruction) -> Step | None:
    found = [REGISTER.fullmatch(operand) for operand in instruction.operands]
    registers = [match[1] for match in found if match]
    if instruction.opcode == "FFMA":
        return _step("fma", registers, WORD, instruction.text)
    access = disassembly.access(instruction)
    if access is None or access.space != "global":
        return None
    step = _step(access.kind, registers, access.bytes, instruction.text)
    return replace(step, read_only="CONSTANT" in instruction.modifiers)


def _sass_targets(instruction: disassembly.Instruction) -> Iterable[str]:
    match = REGISTER.fullmatch(instruction.operands[0]) if instruction.operands else None
    if match is None:
        return []
    first, width = int(match[1][1:]), max([1, *(SPAN.get(m, 1) for m in instruction.modifiers)])
    return [f"R{first + more}" for more in range(width)]
