"""The patterns of kernels/coalescing.cu as workloads: two layouts of a record, three copies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from harness.devices import Array, Device, Launch
from kernels import Kernel, kernel

BLOCK: Final = 256
SECTOR: Final = 32  # bytes
RECORD: Final = 20  # floats of one Coefficients: u v w, x[8], y[8], z
U, Y0 = 0, 11  # where u and y[0] stand in it


def entry(name: str) -> Kernel:
    """A kernel of kernels/coalescing.cu."""
    return kernel("coalescing", name)


@dataclass(frozen=True)
class Update:
    """Add 10 to u and y[0] of `records` records, laid out as structs or as arrays; a Workload."""

    layout: str
    records: int = 1 << 24

    @property
    def name(self) -> str:
        """The kernel and its size."""
        return f"update_{self.layout} n={self.records}"

    def fields(self, device: Device) -> tuple[Array, ...]:
        """The kernel's arguments, random: one array of structs, or the two arrays."""
        random = np.random.default_rng(self.records)
        if self.layout == "aos":
            return (device.put(random.random(self.records * RECORD, np.float32)),)
        return tuple(device.put(random.random(self.records, np.float32)) for _ in "uy")

    def prepare(self, device: Device) -> Launch:
        """Two fields read and written: 16 bytes a record, or the whole sectors they stand in."""
        fields, bytes_per_record = self.fields(device), 16 if self.layout == "soa" else 4 * SECTOR
        grid = self.records // BLOCK

        def check() -> None:
            before = [device.get(field) for field in fields]
            device.launch(entry(f"update_{self.layout}"), grid, BLOCK, *fields)
            for old, field in zip(before, fields, strict=True):
                np.testing.assert_array_equal(device.get(field), self.updated(old))

        size = self.records * bytes_per_record
        return Launch(entry(f"update_{self.layout}"), grid, BLOCK, fields, size, check)

    def updated(self, old: np.ndarray[Any, np.dtype[np.float32]]) -> Any:
        """What the kernel must leave behind: nothing but u and y[0] changes."""
        new = old.copy()
        fields = (new[U::RECORD], new[Y0::RECORD]) if self.layout == "aos" else (new,)
        for field in fields:
            field += np.float32(10)
        return new


@dataclass(frozen=True)
class Copy:
    """Copy n floats from where `pattern` ("offset", "strided", "permuted") says; a Workload."""

    pattern: str
    amount: int
    n: int = 1 << 23

    @property
    def name(self) -> str:
        """The kernel, its parameter and its size."""
        return f"copy_{self.pattern}({self.amount}) n={self.n}"

    @property
    def source_index(self) -> Any:
        """Which element every thread reads."""
        i, amount = np.arange(self.n), self.amount
        return {"offset": i + amount, "strided": i * amount, "permuted": i ^ amount}[self.pattern]

    @property
    def sectors_read(self) -> int:
        """Distinct sectors of the source: 8 floats each, all of them up to a stride of 8."""
        if self.pattern == "strided":
            return self.n * min(max(self.amount, 1), 8) // 8
        return self.n // 8

    def prepare(self, device: Device) -> Launch:
        """One read and one write per element, whole sectors where the stride skips."""
        index = self.source_index
        random = np.random.default_rng(self.n).random(self.n, np.float32)
        x = np.resize(random, int(index.max()) + 1)
        source, target = device.put(x), device.empty(self.n, np.float32)
        launched = (entry(f"copy_{self.pattern}"), self.n // BLOCK, BLOCK)

        def check() -> None:
            poisoned = device.empty(self.n, np.float32)
            device.launch(*launched, source, poisoned, self.amount)
            np.testing.assert_array_equal(device.get(poisoned), x[index])

        size = SECTOR * (self.sectors_read + self.n // 8)
        return Launch(*launched, (source, target, self.amount), size, check)
