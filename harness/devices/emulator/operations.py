"""What the PTX instructions do that need the machine: memory, control, conversion, other lanes.

An instruction that no table describes, or with a modifier its table does not list, is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from harness.devices.emulator.crosslane import active_mask, elements, shuffle, vote
from harness.devices.emulator.lanewise import DTYPES, LANEWISE, SOURCE_TYPES, choose
from harness.devices.emulator.machine import Handler, Machine
from harness.devices.emulator.ptx import Address, Immediate, Instruction, Symbol, Vector
from harness.devices.emulator.rounding import ROUND_TO_INTEGER, FlushingAdd, saturate
from harness.devices.emulator.threads import Lanes, Values


class Unsupported(NotImplementedError):
    """An instruction that no table describes; the message quotes it."""


def lanewise(machine: Machine, instruction: Instruction, lanes: Lanes) -> None:
    """Apply a row of LANEWISE."""
    key, own = mnemonic(instruction), instruction.types[-1]
    target, *sources = instruction.operands
    types = SOURCE_TYPES[key](own) if key in SOURCE_TYPES else (own,) * len(sources)
    values = [machine.read(s, t) for s, t in zip(sources, types, strict=True)]
    machine.write(target, LANEWISE[key](*values), lanes)


def move(machine: Machine, instruction: Instruction, lanes: Lanes) -> None:
    """Copy bits; braces take a value apart or put it together, the low part first."""
    target, source = instruction.operands
    own = instruction.types[-1]
    if isinstance(source, Vector):
        width = DTYPES[own].itemsize * 8 // len(source.elements)
        whole = machine.read(Immediate(0), own)
        for i, part in enumerate(source.elements):
            whole = whole | machine.read(part, f"u{width}").astype(whole.dtype) << i * width
        machine.write(target, whole, lanes)
    elif isinstance(target, Vector):
        width = DTYPES[own].itemsize * 8 // len(target.elements)
        for i, part in enumerate(target.elements):
            bits = machine.read(source, own) >> i * width
            machine.write(part, bits.astype(f"u{width // 8}"), lanes)
    else:
        machine.write(target, machine.read(source, own), lanes)


def convert(machine: Machine, instruction: Instruction, lanes: Lanes) -> None:
    """Float to integer saturates; all else is what astype does."""
    target, source = instruction.operands
    to, own = (DTYPES[t] for t in instruction.types)
    value = machine.read(source, instruction.types[1])
    for modifier in ROUND_TO_INTEGER.keys() & instruction.modifiers:
        value = ROUND_TO_INTEGER[modifier](value)
    if own.kind == "f" and to.kind != "f":
        # PTX ISA, cvt: a NaN becomes zero, or the highest bit alone where 64 bits are involved
        wide = 8 in (own.itemsize, to.itemsize)
        limits = np.iinfo(to)
        nan = (limits.min or limits.max // 2 + 1) if wide else 0
        value = saturate(value.astype(np.float64), to, nan)
    machine.write(target, value.astype(to), lanes)


def load(machine: Machine, instruction: Instruction, lanes: Lanes) -> None:
    """Read one element per target; a vector load is one access of all its bytes."""
    target, source = instruction.operands
    assert isinstance(source, Address)
    if "param" in instruction.modifiers:
        machine.write(target, machine.parameter(source, instruction.types[-1]), lanes)
        return
    dtype, targets = DTYPES[instruction.types[-1]], elements(target)
    place = machine.access(instruction, source, dtype.itemsize * len(targets), lanes)
    for register, values in zip(targets, place.load(dtype, len(targets)), strict=True):
        machine.write(register, values, lanes)


def store(machine: Machine, instruction: Instruction, lanes: Lanes) -> None:
    """Write one element per source; a vector store is one access of all its bytes."""
    target, source = instruction.operands
    assert isinstance(target, Address)
    values = [machine.read(s, instruction.types[-1]) for s in elements(source)]
    size = sum(v.itemsize for v in values)
    machine.access(instruction, target, size, lanes).store(values)


ATOMICS: Final[dict[str, Callable[..., Values]]] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": lambda old, new: new,
    "cas": lambda old, expected, new: choose(new, old, old == expected),
    "inc": lambda old, limit: choose(old + 1, old * 0, old < limit),
    "dec": lambda old, limit: choose(old - 1, limit, (old > 0) & (old <= limit)),
}


def atomic(machine: Machine, instruction: Instruction, lanes: Lanes) -> None:
    """Combine in lane order and return what was there before; red returns nothing."""
    lanes = np.broadcast_to(lanes, machine.threads.shape)  # blocks that agree still all take part
    target, place, *sources = instruction.operands
    if instruction.opcode == "red":
        target, place, sources = Symbol("_"), target, [place]
    assert isinstance(place, Address)
    values = [machine.read(source, instruction.types[-1]) for source in sources]
    combine = ATOMICS[instruction.modifiers[-1]]
    if (
        combine is np.add
        and instruction.types == ("f32",)
        and "shared" not in instruction.modifiers
    ):
        combine = FlushingAdd()
    spot = machine.access(instruction, place, values[0].itemsize, lanes)
    machine.write(target, spot.update(combine, values), lanes)


def fence(machine: Machine, instruction: Instruction, lanes: Lanes) -> None:
    """Do nothing: here every access is seen by all at once."""


def prefetch(machine: Machine, instruction: Instruction, lanes: Lanes) -> None:
    """Do nothing: there is no cache, and an address out of bounds is no fault here either."""


def branch(machine: Machine, instruction: Instruction, lanes: Lanes) -> None:
    """Send the lanes whose guard held to the label; the others fall through."""
    label = instruction.operands[0]
    assert isinstance(label, Symbol)
    machine.jump(label.name, lanes)


def leave(machine: Machine, instruction: Instruction, lanes: Lanes) -> None:
    """End these threads."""
    machine.leave(lanes)


def barrier(machine: Machine, instruction: Instruction, lanes: Lanes) -> None:
    """Wait for all threads of the block, or for the lanes a warp's mask names."""
    if "warp" in instruction.modifiers:
        for group in machine.require_lanes(instruction.operands[0], lanes):
            machine.order_warp(group)
    else:
        machine.wait(lanes)


# One modifier of each set, "" for none; any other is refused, since it would change the meaning.
SPACE: Final = frozenset({"global", "shared", ""})  # none: generic, the same number as global
WIDTH: Final = frozenset({"", "v2", "v4"})
RELAXED: Final = (frozenset({"", "relaxed"}), frozenset({"", "gpu", "cta"}))
OPERATIONS: Final[dict[str, tuple[Handler, tuple[frozenset[str], ...]]]] = {
    "mov": (move, ()),
    "cvt": (convert, (frozenset({"", "rn", *ROUND_TO_INTEGER}),)),
    "ld": (load, (SPACE | {"param"}, frozenset({"", "nc", "volatile"}), WIDTH)),
    "st": (store, (SPACE, frozenset({"", "volatile"}), WIDTH)),
    "atom": (atomic, (*RELAXED, SPACE, frozenset(ATOMICS))),
    "red": (atomic, (*RELAXED, SPACE, frozenset(ATOMICS))),
    "membar": (fence, (frozenset({"gl", "cta", "sys"}),)),
    "prefetch": (prefetch, (frozenset({"global"}), frozenset({"L1", "L2"}))),
    "bra": (branch, (frozenset({"", "uni"}),)),
    "ret": (leave, ()),
    "exit": (leave, ()),
    "bar": (barrier, (frozenset({"sync"}), frozenset({"", "warp"}))),
    "activemask": (active_mask, ()),
    "vote": (vote, (frozenset({"sync"}), frozenset({"ballot", "any", "all"}))),
    "shfl": (shuffle, (frozenset({"sync"}), frozenset({"up", "down", "bfly", "idx"}))),
}


def handler_of(instruction: Instruction) -> Handler:
    """Return what runs `instruction`.

    Raises
    ------
    Unsupported
        The instruction, one of its modifiers or its type is in no table.
    """
    if all(t in DTYPES for t in instruction.types):
        if mnemonic(instruction) in LANEWISE:
            return lanewise
        handler, forms = OPERATIONS.get(instruction.opcode, (lanewise, None))
        if forms is not None and _understood(instruction, forms):
            return handler
    raise Unsupported(
        f"the emulated device does not know `{instruction.text}`: "
        "add it to harness/devices/emulator/operations.py, with a row in its test"
    )


def _understood(instruction: Instruction, forms: tuple[frozenset[str], ...]) -> bool:
    if instruction.name == "bar.sync" and instruction.operands != (Immediate(0),):
        return False
    left = list(instruction.modifiers)
    for form in forms:
        chosen = next((m for m in left if m in form), "")
        if chosen not in form:
            return False
        if chosen:
            left.remove(chosen)
    return not left


def mnemonic(instruction: Instruction) -> str:
    """Return the opcode with its modifiers, without its types: the key of LANEWISE."""
    return ".".join((instruction.opcode, *instruction.modifiers))
