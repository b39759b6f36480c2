"""Where lanes go at the end of a basic block, and who waits for whom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import numpy as np

from harness.devices.emulator.sass.groups import Groups, bits
from harness.devices.emulator.sass.instructions import Decoded, Uncountable
from harness.devices.emulator.sass.operands import Operand
from harness.devices.emulator.sass.program import Program
from harness.devices.emulator.threads import Lanes

EVERY_LANE: Final = 0xFFFFFFFF
INSTRUCTION: Final = 16


class Flow(Protocol):
    """What sends lanes somewhere: the groups they are in, and what decides where they go."""

    program: Program
    groups: Groups

    def holds(self, code: Decoded, lanes: Lanes) -> Lanes: ...
    def decide(self, code: Decoded, operand: Operand, lanes: Lanes) -> Lanes: ...


def branch(machine: Flow, code: Decoded, lanes: Lanes) -> None:
    """BRA: the lanes where guard and condition hold go to the target."""
    taken = lanes & machine.holds(code, lanes)
    if "DIV" in code.modifiers:
        taken = taken & _apart(machine, code, lanes)
    _part(machine, code, lanes, taken, machine.program.target(code))


def _apart(machine: Flow, code: Decoded, lanes: Lanes) -> Lanes:
    """BRA.DIV is taken by a group that lacks lanes of the mask which have not left."""
    mask = machine.decide(code, code.sources[0], lanes).astype(np.int64)
    return np.asarray(mask & bits(machine.groups.running & ~lanes) != 0)


def leave(machine: Flow, code: Decoded, lanes: Lanes) -> None:
    """EXIT: these lanes are done, and nobody waits for them."""
    done = lanes & machine.holds(code, lanes)
    rest = lanes & ~done
    machine.groups.go(code.offset + INSTRUCTION, rest)
    machine.groups.leave(done, rest)


def call(machine: Flow, code: Decoded, lanes: Lanes) -> None:
    """CALL: go to a function; the code before it has put the way back into a register."""
    called = lanes & machine.holds(code, lanes)
    _part(machine, code, lanes, called, machine.program.target(code))


def come_back(machine: Flow, code: Decoded, lanes: Lanes) -> None:
    """RET: each lane goes to the offset in its register, counted from the entry."""
    if (lanes & ~machine.holds(code, lanes)).any():
        raise Uncountable(f"{code.where}: a RET that only some lanes take is not known here")
    places = machine.decide(code, code.sources[0], lanes).astype(np.int64)
    places, lanes = np.broadcast_arrays(places, lanes)
    wanted = np.unique(places[lanes]).tolist()
    if lost := [place for place in wanted if place not in machine.program.blocks]:
        raise Uncountable(f"{code.where} leads to {lost[0]:#x}, where nothing returns to")
    machine.groups.split(lanes, {place: lanes & (places == place) for place in wanted})


def _part(machine: Flow, code: Decoded, lanes: Lanes, taken: Lanes, target: int) -> None:
    after = code.offset + INSTRUCTION
    if target == after:
        machine.groups.go(after, lanes)
    else:
        machine.groups.split(lanes, {target: taken, after: lanes & ~taken})


def wait(machine: Flow, code: Decoded, lanes: Lanes) -> None:
    """BSYNC: wait for all lanes that passed the BSSY of this barrier together."""
    _all(machine, code, lanes)
    machine.groups.wait(code.sources[0].name, lanes, code.offset + INSTRUCTION)


def wait_for_mask(machine: Flow, code: Decoded, lanes: Lanes) -> None:
    """WARPSYNC: wait for the lanes of a mask."""
    _all(machine, code, lanes)
    if "COLLECTIVE" in code.modifiers:
        raise Uncountable(f"{code.where}: what lanes do here that have split is not known")
    mask = np.full((1, 1, 1), EVERY_LANE, np.int64)
    if "ALL" not in code.modifiers:
        mask = machine.decide(code, code.sources[0], lanes).astype(np.int64)
    machine.groups.wait_for(mask, lanes, code.offset + INSTRUCTION)


def _all(machine: Flow, code: Decoded, lanes: Lanes) -> None:
    if (lanes & ~machine.holds(code, lanes)).any():
        raise Uncountable(f"{code.where}: a wait that only some lanes take is not known here")


def join(machine: Flow, code: Decoded, lanes: Lanes) -> None:
    """BSSY: the lanes of a group are to meet again."""
    machine.groups.join(code.sources[0].name, lanes)


def forget(machine: Flow, code: Decoded, lanes: Lanes) -> None:
    """BREAK: the lanes where guard and condition hold will not come to the barrier."""
    machine.groups.go(code.offset + INSTRUCTION, lanes)
    gone = lanes & machine.holds(code, lanes)
    machine.groups.forget(code.sources[0].name, gone, lanes)


ENDINGS: Final[dict[str, Callable[[Flow, Decoded, Lanes], None]]] = {
    "BRA": branch,
    "EXIT": leave,
    "CALL": call,
    "RET": come_back,
    "BSYNC": wait,
    "WARPSYNC": wait_for_mask,
    "BREAK": forget,
}
JOINS: Final[dict[str, Callable[[Flow, Decoded, Lanes], None]]] = {"BSSY": join}
