"""What a cubin says beside its code: where parameters stand, where functions start."""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from harness.devices.disassembly import SassError

PARAMETER_BANK: Final = 0x0A  # u32 symbol, u16 base, u16 size
PARAMETER: Final = 0x17  # u32 index, u16 ordinal, u16 offset, u32 with the size from bit 18 on
SIZED: Final = 4  # the attribute format whose 16 bits are a length; others hold their value there

# First architecture that lays out its constant bank so: threads a block, then blocks a grid.
DIMENSIONS: Final = ((100, 0x360, 0x370), (0, 0x0, 0xC))


@dataclass(frozen=True)
class Image:
    """One kernel's surroundings.

    Attributes
    ----------
    base
        Where the parameters start in constant bank 0, in bytes.
    parameters
        Offset from the base and size of each, in bytes, by its ordinal.
    functions
        Where each function of the kernel's section starts, in bytes, by symbol.
    dimensions
        Where bank 0 holds blockDim and gridDim, in bytes.
    """

    base: int
    parameters: tuple[tuple[int, int], ...]
    functions: dict[str, int]
    dimensions: tuple[int, int]

    def constants(
        self, grid: Sequence[int], block: Sequence[int], arguments: Sequence[np.generic]
    ) -> dict[int, int]:
        """Return what a launch puts into bank 0: 32-bit words by offset.

        Raises
        ------
        SassError
            Another number of arguments, or an argument of another size, than the cubin has.
        """
        sizes = [size for _, size in self.parameters]
        if [argument.nbytes for argument in arguments] != sizes:
            raise SassError(f"the cubin has parameters of {sizes} bytes, got {list(arguments)}")
        words: dict[int, int] = {}
        for start, extent in zip(self.dimensions, (block, grid), strict=True):
            words |= {start + 4 * axis: size for axis, size in enumerate(extent)}
        for (offset, size), argument in zip(self.parameters, arguments, strict=True):
            padded = argument.tobytes().ljust(-(-size // 4) * 4, b"\0")
            values = np.frombuffer(padded, np.uint32).tolist()
            words |= {self.base + offset + 4 * i: value for i, value in enumerate(values)}
        return words


def read(cubin: bytes, kernel: str, architecture: str) -> Image:
    """Return the surroundings of one kernel of a cubin.

    Raises
    ------
    SassError
        The cubin is damaged, or does not describe the kernel.
    """
    try:
        file: Any = ELFFile(io.BytesIO(cubin))
        attributes = _attributes(file.get_section_by_name(f".nv.info.{kernel}").data())
        functions = _functions(file, kernel)
    except (ELFError, struct.error, AttributeError, TypeError) as error:
        raise SassError(f"this cubin of {len(cubin)} bytes has no {kernel}: {error!r}") from error
    banks = [body for tag, body in attributes if tag == PARAMETER_BANK]
    listed = (struct.unpack("<IHHI", body) for tag, body in attributes if tag == PARAMETER)
    ordered = sorted((ordinal, offset, packed >> 18) for _, ordinal, offset, packed in listed)
    base = struct.unpack("<IHH", banks[0])[1] if banks else 0
    layout = tuple((offset, size) for _, offset, size in ordered)
    return Image(base, layout, functions, _dimensions(architecture))


def _dimensions(architecture: str) -> tuple[int, int]:
    number = int(architecture.removeprefix("sm_").rstrip("af"))
    return next((block, grid) for first, block, grid in DIMENSIONS if number >= first)


def _attributes(data: bytes) -> list[tuple[int, bytes]]:
    found, at = [], 0
    while at < len(data):
        form, tag, value = struct.unpack_from("<BBH", data, at)
        size = value if form == SIZED else 0
        found.append((tag, data[at + 4 : at + 4 + size]))
        at += 4 + size
    return found


def _functions(file: Any, kernel: str) -> dict[str, int]:
    section = file.get_section_index(f".text.{kernel}")
    symbols = file.get_section_by_name(".symtab").iter_symbols()
    return {
        symbol.name: int(symbol["st_value"])
        for symbol in symbols
        if symbol["st_shndx"] == section and symbol["st_info"].type == "STT_FUNC"
    }


def code(cubin: bytes, kernel: str) -> bytes:
    """Return a kernel's machine code.

    Raises
    ------
    SassError
        The cubin is damaged, or has no such kernel.
    """
    try:
        section: Any = ELFFile(io.BytesIO(cubin)).get_section_by_name(f".text.{kernel}")
        return bytes(section.data())
    except (ELFError, AttributeError) as error:
        raise SassError(f"this cubin of {len(cubin)} bytes has no {kernel}: {error!r}") from error
