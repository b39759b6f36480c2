"""What each PTX instruction does: tables of lanewise functions, then the few that need the machine.

A lanewise function gets whole arrays, active lanes or not, and returns one: it must be defined on every
input and may use ufuncs, `where`, `astype` and `view` only. An instruction in no table is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from harness.devices.emulator.ptx import (
    Address,
    Immediate,
    Instruction,
    Operand,
    Register,
    Symbol,
    Vector,
)

if TYPE_CHECKING:
    from harness.devices.emulator.machine import Machine

Values = NDArray[Any]
Lanes = NDArray[np.bool_]
Handler = Callable[["Machine", Instruction, Lanes], None]


class Unsupported(NotImplementedError):
    """An instruction that no table describes; the message quotes it."""


DTYPES: Final = {
    **{f"{kind}{bits}": np.dtype(f"u{bits // 8}") for kind in "bu" for bits in (8, 16, 32, 64)},
    **{f"s{bits}": np.dtype(f"i{bits // 8}") for bits in (8, 16, 32, 64)},
    "f32": np.dtype("f4"),
    "f64": np.dtype("f8"),
    "pred": np.dtype("?"),
}
WIDER: Final = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}


def truncating_divide(a: Values, b: Values) -> Values:
    """PTX truncates, NumPy's // floors; PTX leaves x / 0 open, here it is all ones."""
    if a.dtype.kind == "f":
        return np.divide(a, b)
    divisor = np.where(b == 0, b.dtype.type(1), b)
    quotient = (a - np.fmod(a, divisor)) // divisor
    return np.where(b == 0, np.invert(np.zeros_like(quotient)), quotient)


def truncating_remainder(a: Values, b: Values) -> Values:
    """The sign of a, as C; PTX leaves x % 0 open, here it is x."""
    return np.where(b == 0, a, np.fmod(a, np.where(b == 0, b.dtype.type(1), b)))


def shift_left(a: Values, amount: Values) -> Values:
    """PTX clamps the amount at the width: shifting by more gives zero."""
    width = a.dtype.itemsize * 8
    clamped = np.minimum(amount, amount.dtype.type(width - 1)).astype(a.dtype)
    return np.where(amount < width, np.left_shift(a, clamped), a.dtype.type(0))


def shift_right(a: Values, amount: Values) -> Values:
    """Signed types keep the sign; the amount is clamped at the width."""
    width = a.dtype.itemsize * 8
    clamped = np.minimum(amount, amount.dtype.type(width - 1)).astype(a.dtype)
    beyond = np.right_shift(np.right_shift(a, a.dtype.type(width - 1)), a.dtype.type(1))
    return np.where(amount < width, np.right_shift(a, clamped), beyond)


def widen(a: Values) -> Values:
    """The same value in twice the bits."""
    return a.astype(np.dtype(f"{a.dtype.kind}{a.dtype.itemsize * 2}"))


def multiply_high(a: Values, b: Values) -> Values:
    """The upper half of the product of two 32-bit integers."""
    return (widen(a) * widen(b) >> widen(a).dtype.type(a.dtype.itemsize * 8)).astype(a.dtype)


def fused_multiply_add(a: Values, b: Values, c: Values) -> Values:
    """One rounding, as the GPU does it.

    The product of two float32 is exact in float64. The sum is rounded to odd there, which makes the
    final rounding to float32 the only one (Boldo and Melquiond, IEEE TC 57(4), 2008).
    """
    product, addend = a.astype(np.float64) * b, c.astype(np.float64)
    total = product + addend
    back = total - product
    error = (product - (total - back)) + (addend - back)
    bits = total.view(np.int64)
    inexact = np.isfinite(total) & (error != 0) & (bits & 1 == 0)
    toward = np.where((error > 0) == (total > 0), np.int64(1), np.int64(-1))
    return np.where(inexact, bits + toward, bits).view(np.float64).astype(np.float32)


ORDERED: Final[dict[str, Callable[[Values, Values], Values]]] = {
    "eq": np.equal,
    "ne": lambda a, b: (a < b) | (a > b),  # false on NaN in PTX, true in NumPy
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
OPPOSITE: Final = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
UNSIGNED: Final = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def _unordered(name: str) -> Callable[[Values, Values], Values]:
    """The unordered twin is true on NaN: it is whatever the opposite ordered one is not."""
    return lambda a, b: np.logical_not(ORDERED[OPPOSITE[name]](a, b))


COMPARISONS: Final = {
    **ORDERED,
    **{f"{name}u": _unordered(name) for name in ORDERED},
    **{alias: ORDERED[name] for alias, name in UNSIGNED.items()},
}

LANEWISE: Final[dict[str, Callable[..., Values]]] = {
    "mov": lambda a: a,
    "cvta.to.global": lambda a: a,  # generic and global addresses are the same number here
    "add": np.add,
    "add.rn": np.add,
    "sub": np.subtract,
    "sub.rn": np.subtract,
    "mul": np.multiply,
    "mul.rn": np.multiply,
    "mul.lo": np.multiply,
    "mul.hi": multiply_high,
    "mul.wide": lambda a, b: widen(a) * widen(b),
    "mad.lo": lambda a, b, c: a * b + c,
    "mad.wide": lambda a, b, c: widen(a) * widen(b) + c,
    "fma.rn": fused_multiply_add,
    "div": truncating_divide,
    "div.rn": truncating_divide,
    "rem": truncating_remainder,
    "neg": np.negative,
    "abs": np.abs,
    "min": np.fmin,  # the GPU drops a NaN, np.minimum returns it
    "max": np.fmax,
    "sqrt.rn": np.sqrt,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "shl": shift_left,
    "shr": shift_right,
    "selp": lambda a, b, chosen: np.where(chosen, a, b),
    **{f"setp.{name}": compare for name, compare in COMPARISONS.items()},
}
# Types of the sources where they are not all the instruction's own.
SOURCE_TYPES: Final[dict[str, Callable[[str], tuple[str, ...]]]] = {
    "shl": lambda own: (own, "u32"),
    "shr": lambda own: (own, "u32"),
    "selp": lambda own: (own, own, "pred"),
    "mad.wide": lambda own: (own, own, WIDER[own]),
}
# What a type may not be used for, since the table's function would be wrong.
REFUSED: Final = {("fma.rn", "f64"), ("mul.hi", "u64"), ("mul.hi", "s64")}

ROUND_TO_INTEGER: Final[dict[str, Callable[[Values], Values]]] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}

HANDLERS: Final[dict[str, Handler]] = {}


def operation(opcode: str) -> Callable[[Handler], Handler]:
    """Enter a function that needs the machine under its opcode."""

    def enter(handler: Handler) -> Handler:
        assert opcode not in HANDLERS, f"{opcode} is defined twice"
        HANDLERS[opcode] = handler
        return handler

    return enter


def handler_of(instruction: Instruction) -> Handler:
    """Return what runs `instruction`.

    Raises
    ------
    Unsupported
        The instruction, one of its modifiers or its type is in no table.
    """
    allowed = MODIFIERS.get(instruction.opcode)
    if allowed is not None and set(instruction.modifiers) <= allowed:
        return HANDLERS[instruction.opcode]
    key = mnemonic(instruction)
    known_types = all(t in DTYPES for t in instruction.types)
    if key in LANEWISE and known_types and (key, instruction.types[-1]) not in REFUSED:
        return lanewise
    raise Unsupported(
        f"the emulated device does not know `{instruction.text}`: "
        "add it to harness/devices/emulator/operations.py, with a row in its test"
    )


def mnemonic(instruction: Instruction) -> str:
    """Return the opcode with its modifiers, without its types: the key of LANEWISE."""
    return ".".join((instruction.opcode, *instruction.modifiers))


def lanewise(machine: Machine, instruction: Instruction, lanes: Lanes) -> None:
    """Apply a row of LANEWISE."""
    key, own = mnemonic(instruction), instruction.types[-1]
    target, *sources = instruction.operands
    types = SOURCE_TYPES[key](own) if key in SOURCE_TYPES else (own,) * len(sources)
    values = [machine.read(s, t) for s, t in zip(sources, types, strict=True)]
    machine.write(target, LANEWISE[key](*values), lanes)


@operation("cvt")
def convert(machine: Machine, instruction: Instruction, lanes: Lanes) -> None:
    """Float to integer saturates and makes NaN zero; all else is what astype does."""
    to, source = (DTYPES[t] for t in instruction.types)
    value = machine.read(instruction.operands[1], instruction.types[1])
    if source.kind == "f" and to.kind != "f":
        whole = ROUND_TO_INTEGER[instruction.modifiers[0]](value.astype(np.float64))
        value = saturate(whole, to)
    machine.write(instruction.operands[0], value.astype(to), lanes)


def saturate(whole: Values, to: np.dtype[Any]) -> Values:
    """Clamp float64 values to an integer type. A limit float64 cannot hold is set after the cast."""
    low, high = np.iinfo(to).min, np.iinfo(to).max
    inside = np.where((whole > low) & (whole < high), whole, 0.0).astype(to)
    return np.where(whole >= high, to.type(high), np.where(whole <= low, to.type(low), inside))


@operation("ld")
def load(machine: Machine, instruction: Instruction, lanes: Lanes) -> None:
    """Read one element per target; a vector load is one access of all its bytes."""
    target, source = instruction.operands
    assert isinstance(source, Address)
    if "param" in instruction.modifiers:
        machine.write(target, machine.parameter(source, instruction.types[-1]), lanes)
        return
    dtype, targets = DTYPES[instruction.types[-1]], elements(target)
    space, address = machine.access(instruction, source, dtype.itemsize * len(targets), lanes)
    for i, register in enumerate(targets):
        machine.write(register, space.load(address + i * dtype.itemsize, dtype, lanes), lanes)


@operation("st")
def store(machine: Machine, instruction: Instruction, lanes: Lanes) -> None:
    """Write one element per source; a vector store is one access of all its bytes."""
    target, source = instruction.operands
    assert isinstance(target, Address)
    dtype, sources = DTYPES[instruction.types[-1]], elements(source)
    space, address = machine.access(instruction, target, dtype.itemsize * len(sources), lanes)
    for i, operand in enumerate(sources):
        values = machine.read(operand, instruction.types[-1])
        space.store(address + i * dtype.itemsize, values, lanes)


ATOMICS: Final[dict[str, np.ufunc]] = {
    "add": np.add,
    "min": np.fmin,
    "max": np.fmax,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


@operation("atom")
def atomic(machine: Machine, instruction: Instruction, lanes: Lanes) -> None:
    """Combine in lane order and return what was there before."""
    target, place, source = instruction.operands
    assert isinstance(place, Address)
    combine = ATOMICS[instruction.modifiers[-1]]
    values = machine.read(source, instruction.types[-1])
    space, address = machine.access(instruction, place, values.itemsize, lanes)
    machine.write(target, space.update(address, combine, values, lanes), lanes)


@operation("red")
def reduction(machine: Machine, instruction: Instruction, lanes: Lanes) -> None:
    """Like atom, with no result."""
    place, source = instruction.operands
    assert isinstance(place, Address)
    values = machine.read(source, instruction.types[-1])
    space, address = machine.access(instruction, place, values.itemsize, lanes)
    space.update(address, ATOMICS[instruction.modifiers[-1]], values, lanes)


@operation("bra")
def branch(machine: Machine, instruction: Instruction, lanes: Lanes) -> None:
    """Send the lanes whose guard held to the label; the others fall through."""
    label = instruction.operands[0]
    assert isinstance(label, Symbol)
    machine.jump(label.name, lanes)


@operation("ret")
@operation("exit")
def leave(machine: Machine, instruction: Instruction, lanes: Lanes) -> None:
    """End these threads."""
    machine.leave(lanes)


@operation("bar")
def barrier(machine: Machine, instruction: Instruction, lanes: Lanes) -> None:
    """Wait for all threads of the block, or for the lanes a warp's mask names."""
    if "warp" in instruction.modifiers:
        machine.require_lanes(instruction.operands[0], lanes)
        machine.order_warp(lanes)
        return
    if instruction.operands != (Immediate(0),):
        raise Unsupported(f"`{instruction.text}`: only barrier 0 with all threads is known")
    machine.wait(lanes)


@operation("shfl")
def shuffle(machine: Machine, instruction: Instruction, lanes: Lanes) -> None:
    """Read a register of another lane (PTX ISA, shfl.sync)."""
    target, source, delta, clamp, mask = instruction.operands
    machine.require_lanes(mask, lanes)
    b, c = (machine.read(operand, "u32").astype(np.int64) for operand in (delta, clamp))
    lane, inside = source_lane(instruction.modifiers[1], machine.lane, b & 31, c)
    values, lane = np.broadcast_arrays(machine.read(source, instruction.types[-1]), lane)
    machine.require_sources(lane, lanes)
    results = (np.take_along_axis(values, lane, axis=-1), inside)
    for register, result in zip(elements(target), results, strict=False):
        machine.write(register, result, lanes)


def source_lane(mode: str, lane: Values, b: Values, c: Values) -> tuple[Values, Values]:
    """Return the lane each lane reads, and whether it was in range (else a lane reads itself).

    `c` holds the clamp in bits 0-4 and the mask that cuts a warp into segments in bits 8-12.
    """
    segment = c >> 8 & 31
    first, last = lane & segment, (lane & segment) | (c & 31 & ~segment)
    wanted = {
        "up": lane - b,
        "down": lane + b,
        "bfly": lane ^ b,
        "idx": first | (b & ~segment),
    }[mode]
    inside = wanted >= last if mode == "up" else wanted <= last
    return np.where(inside, wanted, lane), inside


def elements(operand: Operand) -> tuple[Operand, ...]:
    """Return the elements of a vector operand, or the operand alone."""
    return operand.elements if isinstance(operand, Vector) else (operand,)


# The modifiers each handler understands; any other is refused, since it would change the meaning.
MODIFIERS: Final[dict[str, frozenset[str]]] = {
    "ld": frozenset({"global", "shared", "param", "nc", "volatile", "v2", "v4"}),
    "st": frozenset({"global", "shared", "volatile", "v2", "v4"}),
    "atom": frozenset({"global", "shared", "relaxed", "gpu", *ATOMICS}),
    "red": frozenset({"global", "shared", "relaxed", "gpu", *ATOMICS}),
    "cvt": frozenset({"rn", *ROUND_TO_INTEGER}),
    "bra": frozenset({"uni"}),
    "bar": frozenset({"sync", "warp"}),
    "shfl": frozenset({"sync", "up", "down", "bfly", "idx"}),
    "ret": frozenset(),
    "exit": frozenset(),
}
# Opcodes whose first operand is read, not written.
NO_TARGET: Final = frozenset({"st", "red", "bra", "bar", "ret", "exit"})


def target_registers(instruction: Instruction) -> frozenset[str]:
    """Return the registers `instruction` writes."""
    if instruction.opcode in NO_TARGET:
        return frozenset()
    return frozenset(registers_of(*instruction.operands[:1]))


def source_registers(instruction: Instruction) -> frozenset[str]:
    """Return the registers `instruction` reads."""
    first = 0 if instruction.opcode in NO_TARGET else 1
    guard = {instruction.guard} if instruction.guard else set()
    return frozenset(registers_of(*instruction.operands[first:])) | guard


def registers_of(*operands: Operand) -> Iterator[str]:
    """Name the registers in operands, those inside addresses and vectors too."""
    for operand in operands:
        match operand:
            case Register(name):
                yield name
            case Address(base, _):
                yield from registers_of(base)
            case Vector(members):
                yield from registers_of(*members)
