"""Run an entry: fetch a basic block, mask it, tell the observers, execute.

Execution does not count and counting does not execute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import process_time
from typing import Final, Protocol

import numpy as np

from harness.devices.emulator.lanewise import DTYPES, extend, reinterpret
from harness.devices.emulator.memory import Addresses, GlobalMemory, Place, Space
from harness.devices.emulator.ptx import (
    Address,
    Entry,
    Immediate,
    Instruction,
    Operand,
    Register,
    Symbol,
)
from harness.devices.emulator.shared import SharedMemory
from harness.devices.emulator.threads import (
    DONE,
    WARP,
    BarrierViolation,
    Lanes,
    Threads,
    Values,
    Violation,
    uniform,
)

# Not a number of steps: one takes from 10 us to 100 ms, as it meets lanes, atomics, other places.
PATIENCE: Final = 4.0  # seconds of this process until some thread leaves; no kernel here needs 0.2
SINK: Final = Symbol("_")


class Fault(RuntimeError):
    """The kernel did what hardware forbids; the message quotes instruction, block and thread."""


Handler = Callable[["Machine", Instruction, Lanes], None]


class Runnable(Protocol):
    """What a machine runs: the basic blocks of an entry, each instruction with its handler."""

    entry: Entry
    blocks: list[list[tuple[Instruction, Handler]]]
    merged: frozenset[str]


class Observer(Protocol):
    """What a machine tells while it runs. `lanes` broadcast to (blocks, warps, 32)."""

    def begin(self, threads: Threads) -> None: ...
    def issue(self, block: int, lanes: Lanes) -> None: ...
    def access(
        self, instruction: Instruction, space: str, address: Addresses, size: int, lanes: Lanes
    ) -> None: ...
    def order_warp(self, lanes: Lanes) -> None: ...


class Machine:
    """Some blocks of a launch, run together to their end."""

    def __init__(
        self,
        program: Runnable,
        threads: Threads,
        specials: Mapping[str, Values],
        parameters: Mapping[str, np.generic],
        memory: GlobalMemory,
        shared: SharedMemory,
        observers: Sequence[Observer],
        patience: float,
    ) -> None:
        self.program = program
        self.threads = threads
        self.lane = (threads.index % WARP).astype(np.uint32)
        self._registers: dict[str, Values] = {}
        self._unset: dict[str, Lanes] = {}  # where a register has not been written, if anywhere
        self._active: Lanes = threads.exists
        self._specials = specials
        self._parameters = parameters
        self._shared = shared
        self._spaces: dict[str, Space] = {"global": memory, "shared": shared}
        self._observers = observers
        self._patience = patience
        self._left_at = process_time()  # when a thread last left
        self._constants: dict[tuple[Immediate, str], Values] = {}

    def run(self) -> None:
        """Step until every thread has left.

        Raises
        ------
        Fault
            A bad address, a barrier or shuffle without its threads, a race, a register read before
            it is written, an endless kernel.
        """
        for observer in self._observers:
            observer.begin(self.threads)
        with np.errstate(all="ignore"):  # the GPU has no floating-point exceptions
            while step := self._next():
                self._run_block(*step)
                if process_time() - self._left_at > self._patience:
                    raise self._endless(*step)

    def _endless(self, block: int, lanes: Lanes) -> Fault:
        """Tell where the lanes are; a block that lets some of them leave never comes here."""
        reason = (
            f"no thread has left in {self._patience:g} s: endless, or raise it with "
            "EmulatedDevice(patience=...)"
        )
        return self._fault(self.program.blocks[block][-1][0], Violation(reason, lanes))

    def _next(self) -> tuple[int, Lanes] | None:
        try:
            return self.threads.next()
        except BarrierViolation as violation:
            barrier, _ = self.program.blocks[violation.block - 1][-1]
            raise self._fault(barrier, violation) from None

    def _run_block(self, block: int, lanes: Lanes) -> None:
        if block == len(self.program.blocks):
            self.leave(lanes)
            return
        self.threads.go(block + 1, lanes)
        for observer in self._observers:
            observer.issue(block, lanes)
        for instruction, handler in self.program.blocks[block]:
            try:
                self._active = lanes
                if instruction.guard:
                    self._active = lanes & self._guard(instruction)
                if self._active.any():
                    handler(self, instruction, self._active)
            except Violation as violation:
                raise self._fault(instruction, violation) from None

    def _guard(self, instruction: Instruction) -> Lanes:
        assert instruction.guard
        held = uniform(self.read(instruction.guard, "pred"))
        return np.logical_not(held) if instruction.negated else held

    def read(self, operand: Operand, kind: str) -> Values:
        """Return an operand's values for all lanes, as the PTX type `kind`."""
        match operand:
            case Register(name):
                return reinterpret(self._register(name), DTYPES[kind])
            case Immediate():
                return self._constant(operand, kind)
            case Symbol(name):
                return self._special(name).astype(DTYPES[kind])
        raise Violation(f"{operand} cannot be read as {kind}", self._active)

    def write(self, target: Operand, values: Values, lanes: Lanes) -> None:
        """Set a register in `lanes`, and keep what it holds in the others if that matters."""
        if target == SINK:
            return
        if not isinstance(target, Register):
            raise Violation(f"{target} cannot be written", lanes)
        name = target.name
        values = extend(values, DTYPES[self.program.entry.type_of(name)])
        if name in self.program.merged and not lanes.all():
            values = self._merge(name, values, lanes)
        self._registers[name] = values

    def _merge(self, name: str, values: Values, lanes: Lanes) -> Values:
        """Keep the old values of the other lanes, and in mind which lanes have none."""
        old = self._registers.get(name)
        unset = self.threads.exists if old is None else self._unset.pop(name, None)
        if unset is not None and (unset & ~lanes).any():
            self._unset[name] = unset & ~lanes
        return values if old is None else np.where(lanes, values, reinterpret(old, values.dtype))

    def parameter(self, source: Address, kind: str) -> Values:
        """Return a kernel parameter; the same for all lanes."""
        assert isinstance(source.base, Symbol)
        value = self._parameters.get(source.base.name)
        if value is None or source.offset or value.itemsize != DTYPES[kind].itemsize:
            raise Violation("only whole scalar parameters can be read", self._active)
        return np.full((1, 1, 1), value).view(DTYPES[kind])

    def access(self, instruction: Instruction, operand: Address, size: int, lanes: Lanes) -> Place:
        """Check an access of `size` bytes a lane, tell of it, and return where it goes."""
        space = "shared" if "shared" in instruction.modifiers else "global"
        kind = "u32" if space == "shared" else "u64"
        address = self.read(operand.base, kind).astype(np.int64) + operand.offset
        if space == "shared":
            address = self._shared.offsets(address, size, lanes)
        place = self._spaces[space].place(address, size, lanes)
        for observer in self._observers:
            observer.access(instruction, space, address, size, lanes)
        return place

    def jump(self, label: str, lanes: Lanes) -> None:
        """Send `lanes` to a label."""
        self.threads.go(self.program.entry.labels[label], lanes)

    def leave(self, lanes: Lanes) -> None:
        """End the threads in `lanes`."""
        self.threads.go(DONE, lanes)
        self._left_at = process_time()

    def wait(self, lanes: Lanes) -> None:
        """Stop `lanes` at the block's barrier."""
        self.threads.wait(lanes)

    def order_warp(self, lanes: Lanes) -> None:
        """Order the shared accesses of `lanes`, one group a warp, before and after this point."""
        for observer in self._observers:
            observer.order_warp(lanes)

    def require_lanes(self, mask: Operand, lanes: Lanes) -> list[Lanes]:
        """Return the lanes by mask: just those it names must take part, or else have left."""
        masks, lanes = np.broadcast_arrays(self.read(mask, "u32"), lanes)
        groups = [(one, lanes & (masks == one)) for one in np.unique(masks[lanes])]
        for one, group in groups:
            named = (one >> self.lane & 1).astype(bool) & self.threads.running
            missing = group.any(axis=-1, keepdims=True) & named & ~group
            _forbid("a lane its mask names does not take part", missing)
            _forbid("a lane takes part that its mask does not name", group & ~named)
        return [group for _, group in groups]

    def require_sources(self, source: Values, lanes: Lanes) -> None:
        """Check that no lane reads a register of a lane that does not take part."""
        lanes, source = np.broadcast_arrays(lanes, source)
        reached = np.take_along_axis(lanes, source, axis=-1)
        _forbid("it reads a lane that does not take part", lanes & ~reached)

    def _fault(self, instruction: Instruction, violation: Violation) -> Fault:
        """Describe what went wrong, where, in the first lane."""
        block, warp, lane = (int(place[0]) for place in np.nonzero(violation.lanes))
        first = int(self._specials["%ctaid.x"].flat[0])
        return Fault(
            f"{self.program.entry.name}: `{instruction.text}`: {violation} "
            f"(block {first + block}, thread {warp * WARP + lane})"
        )

    def _register(self, name: str) -> Values:
        unset = self._unset.get(name) if name in self._registers else self._active
        if unset is not None:
            _forbid(f"{name} is read before it is written", self._active & unset)
        return self._registers[name]

    def _constant(self, operand: Immediate, kind: str) -> Values:
        key = (operand, kind)
        if key not in self._constants:
            dtype = DTYPES[kind]
            bits = operand.bits & (1 << dtype.itemsize * 8) - 1
            self._constants[key] = np.full((1, 1, 1), bits, f"u{dtype.itemsize}").view(dtype)
        return self._constants[key]

    def _special(self, name: str) -> Values:
        if name in self._shared.addresses:
            return np.full((1, 1, 1), self._shared.addresses[name], np.int64)
        return self._specials[name]


def _forbid(reason: str, lanes: Lanes) -> None:
    if lanes.any():
        raise Violation(reason, lanes)
