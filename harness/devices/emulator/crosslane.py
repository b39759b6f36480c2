"""What the lanes of a warp tell each other without memory: shuffles, votes, the active mask."""

from __future__ import annotations

import numpy as np

from harness.devices.emulator.machine import Machine
from harness.devices.emulator.ptx import Instruction, Operand, Vector
from harness.devices.emulator.threads import Lanes, Values


def active_mask(machine: Machine, instruction: Instruction, lanes: Lanes) -> None:
    """Tell the lanes that run this together; hardware may run fewer together."""
    machine.write(instruction.operands[0], ballot(machine, lanes), lanes)


def vote(machine: Machine, instruction: Instruction, lanes: Lanes) -> None:
    """Ask all lanes of the mask about a predicate (PTX ISA, vote.sync)."""
    target, source, mask = instruction.operands
    machine.require_lanes(mask, lanes)
    named = machine.read(mask, "u32")
    yes = ballot(machine, lanes & machine.read(source, "pred")) & named
    present = ballot(machine, lanes) & named
    answers = {"ballot": yes, "any": yes != 0, "all": yes == present}
    machine.write(target, answers[instruction.modifiers[1]], lanes)


def ballot(machine: Machine, lanes: Lanes) -> Values:
    """Return per warp the bits of its lanes."""
    bits = np.left_shift(lanes, machine.lane, dtype=np.uint32)
    return np.bitwise_or.reduce(bits, axis=-1, keepdims=True)


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
