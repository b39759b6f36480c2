"""Run an entry: fetch a basic block, mask it, tell the observers, execute.

Execution does not count and counting does not execute.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

import numpy as np

from harness.devices.emulator.memory import (
    Addresses,
    GlobalMemory,
    SharedMemory,
    Space,
    Values,
)
from harness.devices.emulator.operations import (
    DTYPES,
    Handler,
    handler_of,
    source_registers,
    target_registers,
)
from harness.devices.emulator.ptx import (
    Address,
    Entry,
    Immediate,
    Instruction,
    Operand,
    Register,
    Symbol,
)
from harness.devices.emulator.threads import (
    DONE,
    WARP,
    BarrierViolation,
    Lanes,
    Threads,
    Violation,
    uniform,
)

LANES_AT_ONCE: Final = 1 << 16  # the registers of a batch stay in the cache
STEP_LIMIT: Final = 10_000_000


class Fault(RuntimeError):
    """The kernel did what hardware forbids; the message quotes instruction, block and thread."""


class Observer(Protocol):
    """What a machine tells while it runs. `lanes` broadcast to (blocks, warps, 32)."""

    def begin(self, threads: Threads) -> None: ...
    def issue(self, block: int, lanes: Lanes) -> None: ...
    def access(
        self, instruction: Instruction, space: str, address: Addresses, size: int, lanes: Lanes
    ) -> None: ...
    def order_warp(self, lanes: Lanes) -> None: ...


class Program:
    """An entry with its handlers found and its temporaries known, before the first step."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.blocks: list[list[tuple[Instruction, Handler]]] = [
            [(instruction, handler_of(instruction)) for instruction in block]
            for block in entry.blocks
        ]
        self.merged = _merged_registers(entry)


class Machine:
    """Some blocks of a launch, run together to their end."""

    def __init__(
        self,
        program: Program,
        threads: Threads,
        specials: Mapping[str, Values],
        parameters: Mapping[str, np.generic],
        memory: GlobalMemory,
        shared: SharedMemory,
        observers: tuple[Observer, ...],
    ) -> None:
        self.program = program
        self.threads = threads
        self.lane = threads.index % WARP
        self.registers: dict[str, Values] = {}
        self._specials = specials
        self._parameters = parameters
        self._spaces: dict[str, Space] = {"global": memory, "shared": shared}
        self._observers = observers
        self._constants: dict[tuple[Immediate, str], Values] = {}

    def run(self) -> None:
        """Step until every thread has left.

        Raises
        ------
        Fault
            A bad address, a barrier or shuffle without its threads, a race, an endless kernel.
        """
        for observer in self._observers:
            observer.begin(self.threads)
        with np.errstate(all="ignore"):  # inactive lanes compute too, and hardware never warns
            for _ in range(STEP_LIMIT):
                step = self._next()
                if step is None:
                    return
                self._run_block(*step)
        raise Fault(f"{self.program.entry.name} still runs after {STEP_LIMIT} steps")

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
            active = lanes & self._guard(instruction) if instruction.guard else lanes
            if active.any():
                try:
                    handler(self, instruction, active)
                except Violation as violation:
                    raise self._fault(instruction, violation) from None

    def _guard(self, instruction: Instruction) -> Lanes:
        assert instruction.guard
        held = uniform(self.read(Register(instruction.guard), "pred"))
        return np.logical_not(held) if instruction.negated else held

    def read(self, operand: Operand, kind: str) -> Values:
        """Return an operand's values for all lanes, as the PTX type `kind`."""
        match operand:
            case Register(name):
                return _as_type(self._register(name), DTYPES[kind])
            case Immediate():
                return self._constant(operand, kind)
            case Symbol(name):
                return self._special(name).astype(DTYPES[kind])
        raise Fault(f"{operand} cannot be read as {kind}")

    def write(self, target: Operand, values: Values, lanes: Lanes) -> None:
        """Set a register in `lanes`; a register no other block reads needs no merging."""
        if not isinstance(target, Register):
            raise Fault(f"{target} cannot be written")
        name = target.name
        if name == "_":
            return
        values = _fit(values, DTYPES[self.program.entry.type_of(name)])
        old = self.registers.get(name)
        if old is not None and name in self.program.merged and not lanes.all():
            values = np.where(lanes, values, _as_type(old, values.dtype))
        self.registers[name] = values

    def parameter(self, source: Address, kind: str) -> Values:
        """Return a kernel parameter; the same for all lanes."""
        assert isinstance(source.base, Symbol)
        if source.offset:
            raise Fault(f"parameter {source.base.name} is read at offset {source.offset}")
        return np.full((1, 1, 1), self._parameters[source.base.name]).view(DTYPES[kind])

    def access(
        self, instruction: Instruction, operand: Address, size: int, lanes: Lanes
    ) -> tuple[Space, Addresses]:
        """Find the space and the addresses of an access of `size` bytes a lane, and tell of it."""
        space = next((m for m in instruction.modifiers if m in self._spaces), None)
        if space is None:
            raise Fault(f"`{instruction.text}`: generic addresses are not emulated")
        kind = "u64" if space == "global" else "u32"
        address = self.read(operand.base, kind).astype(np.int64) + operand.offset
        for observer in self._observers:
            observer.access(instruction, space, address, size, lanes)
        return self._spaces[space], address

    def jump(self, label: str, lanes: Lanes) -> None:
        """Send `lanes` to a label."""
        self.threads.go(self.program.entry.labels[label], lanes)

    def leave(self, lanes: Lanes) -> None:
        """End the threads in `lanes`."""
        self.threads.go(DONE, lanes)

    def wait(self, lanes: Lanes) -> None:
        """Stop `lanes` at the block's barrier."""
        self.threads.wait(lanes)

    def order_warp(self, lanes: Lanes) -> None:
        """Order the shared accesses of a warp's lanes before and after this point."""
        for observer in self._observers:
            observer.order_warp(lanes)

    def require_lanes(self, mask: Operand, lanes: Lanes) -> None:
        """Check that exactly the lanes a mask names take part in a warp-wide instruction."""
        named = (self.read(mask, "u32") >> self.lane.astype(np.uint32) & 1).astype(bool)
        takes_part = lanes.any(axis=-1, keepdims=True)
        _forbid("a lane its mask names does not take part", takes_part & named & ~lanes)
        _forbid("a lane takes part that its mask does not name", lanes & ~named)

    def require_sources(self, source: Values, lanes: Lanes) -> None:
        """Check that no lane reads a register of a lane that does not take part."""
        lanes, source = np.broadcast_arrays(lanes, source)
        dead = lanes & ~np.take_along_axis(lanes, source, axis=-1)
        _forbid("it reads a lane that does not take part", dead)

    def _fault(self, instruction: Instruction, violation: Violation) -> Fault:
        """Describe what went wrong, where, in the first lane."""
        block, warp, lane = (int(place[0]) for place in np.nonzero(violation.lanes))
        first = int(self._specials["%ctaid.x"].flat[0])
        return Fault(
            f"{self.program.entry.name}: `{instruction.text}`: {violation} "
            f"(block {first + block}, thread {warp * WARP + lane})"
        )

    def _register(self, name: str) -> Values:
        if name not in self.registers:
            raise Fault(f"{self.program.entry.name}: {name} is read before it is written")
        return self.registers[name]

    def _constant(self, operand: Immediate, kind: str) -> Values:
        key = (operand, kind)
        if key not in self._constants:
            dtype = DTYPES[kind]
            unsigned = np.dtype(f"u{dtype.itemsize}")
            bits = operand.bits & (1 << dtype.itemsize * 8) - 1
            self._constants[key] = np.full((1, 1, 1), bits, unsigned).view(dtype)
        return self._constants[key]

    def _special(self, name: str) -> Values:
        if name in self.program.entry.symbols:
            return np.full((1, 1, 1), self.program.entry.symbols[name], np.int64)
        if name not in self._specials:
            raise Fault(f"{name} is no special register of the emulated device")
        return self._specials[name]


def _forbid(reason: str, lanes: Lanes) -> None:
    if lanes.any():
        raise Violation(reason, lanes)


def _as_type(values: Values, dtype: np.dtype[Any]) -> Values:
    """Reinterpret a register's bits; a narrower type sees the low ones."""
    if values.dtype == dtype:
        return values
    if values.itemsize > dtype.itemsize:
        values = values.view(f"u{values.itemsize}").astype(f"u{dtype.itemsize}")
    return values.view(dtype)


def _fit(values: Values, declared: np.dtype[Any]) -> Values:
    """Extend a narrow result to its register, by its own sign."""
    if values.itemsize == declared.itemsize:
        return values
    return values.astype(f"{values.dtype.kind}{declared.itemsize}")


def _merged_registers(entry: Entry) -> frozenset[str]:
    """Return the registers that carry values from one step of a lane to another.

    All others are written before they are read in the one basic block that uses them, so what the
    inactive lanes hold never matters.
    """
    homes: dict[str, set[int]] = {}
    carried: set[str] = set()
    for number, block in enumerate(entry.blocks):
        written: set[str] = set()
        for instruction in block:
            sources, targets = source_registers(instruction), target_registers(instruction)
            for name in sources | targets:
                homes.setdefault(name, set()).add(number)
            carried |= (sources | targets if instruction.guard else sources) - written
            written |= targets
    return frozenset(carried | {name for name, blocks in homes.items() if len(blocks) > 1})
