"""Small PTX entries for the tests, written around the lines under test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from harness.devices import Array
from harness.devices.emulator import EmulatedDevice
from harness.devices.emulator.program import Program
from harness.devices.emulator.ptx import parse
from kernels import _nvrtc

NUMPY: Final = {
    **{f"{kind}{bits}": np.dtype(f"u{bits // 8}") for kind in "bu" for bits in (8, 16, 32, 64)},
    **{f"s{bits}": np.dtype(f"i{bits // 8}") for bits in (8, 16, 32, 64)},
    "f16": np.dtype("f2"),
    "f32": np.dtype("f4"),
    "f64": np.dtype("f8"),
    "pred": np.dtype("u1"),
}
# A register has at least 16 bits.
DECLARED: Final = {"pred": "pred", "f16": "b16", "f32": "f32", "f64": "f64"} | {
    f"{kind}{bits}": f"b{max(bits, 16)}" for kind in "bus" for bits in (8, 16, 32, 64)
}
SCRATCH: Final = """
    .reg .pred %p<9>;
    .reg .b16 %h<9>;
    .reg .b32 %r<9>;
    .reg .b64 %rd<9>;
    .reg .f32 %f<9>;
    .reg .f64 %fd<9>;
"""


def entry_text(body: str, parameters: Sequence[str] = (), outside: str = "") -> str:
    """Return a module with the entry `k`, its parameters `p0`, `p1`, ... of the given types."""
    listed = ", ".join(f".param .{kind} p{i}" for i, kind in enumerate(parameters))
    return (
        f".version 8.0\n.target sm_70\n.address_size 64\n{outside}\n"
        f".visible .entry k({listed})\n{{\n{SCRATCH}{body}\n}}\n"
    )


def program(body: str, parameters: Sequence[str] = (), outside: str = "") -> Program:
    """Return the entry around `body`, ready to run."""
    return Program(parse(entry_text(body, parameters, outside))["k"])


def lane_text(body: str, signature: str) -> str:
    """Return a module in which every thread runs `body` on its own elements.

    `signature` is "s32 pred -> f32": what `%a`, `%b`, ... hold before the body and `%d` after it.
    A result of several registers, "s32 -> s32 s32", is `%d`, `%e`, ...
    """
    sources, targets = (side.split() for side in signature.split("->"))
    before = [_declare(name, kind) for name, kind in zip("abc", sources, strict=False)]
    before += [_declare(name, kind) for name, kind in zip("defg", targets, strict=False)]
    before += [".reg .b32 %thread;", ".reg .b64 %at;", ".reg .b16 %byte;"]
    before += ["mov.u32 %thread, %tid.x;"]
    after = []
    for i, (name, kind) in enumerate(zip("abc", sources, strict=False)):
        before += [*_address(i, kind), *_load(f"%{name}", kind)]
    for i, (name, kind) in enumerate(zip("defg", targets, strict=False), len(sources)):
        after += [*_address(i, kind), *_store(f"%{name}", kind)]
    text = "\n".join((*before, body, *after, "ret;"))
    return entry_text(text, ("u64",) * (len(sources) + len(targets)))


def run_lanes(body: str, signature: str, *inputs: Sequence[Any]) -> list[NDArray[Any]]:
    """Run `lane_text` on one thread per element; what no thread stores stays 0xFF bytes."""
    device = EmulatedDevice()
    sources, targets = (side.split() for side in signature.split("->"))
    size = len(inputs[0])
    given = [device.put(exactly(v, kind)) for v, kind in zip(inputs, sources, strict=True)]
    results = [device.empty(size, NUMPY[kind]) for kind in targets]
    pointers = [pointer(array) for array in (*given, *results)]
    device.run(Program(parse(lane_text(body, signature))["k"]), pointers, 1, size)
    return [device.get(result) for result in results]


def pointer(array: Array) -> np.uint64:
    """Return the address of an array as a kernel gets it."""
    return np.uint64(array.__cuda_array_interface__["data"][0])


def architectures() -> list[str]:
    """Return every real architecture that the installed NVRTC compiles for."""
    return [f"sm_{number}" for number in _nvrtc().getSupportedArchs()]


def exactly(values: Sequence[Any], kind: str) -> NDArray[Any]:
    """Return Python numbers as an array of a PTX type, refusing what does not fit."""
    return np.array(values, NUMPY[kind])


def _declare(name: str, kind: str) -> str:
    return f".reg .{DECLARED[kind]} %{name};"


def _address(parameter: int, kind: str) -> list[str]:
    return [
        f"ld.param.u64 %at, [p{parameter}];",
        f"mad.wide.u32 %at, %thread, {NUMPY[kind].itemsize}, %at;",
    ]


def _load(register: str, kind: str) -> list[str]:
    if kind == "pred":
        return ["ld.global.u8 %byte, [%at];", f"setp.ne.u16 {register}, %byte, 0;"]
    return [f"ld.global.{_moved(kind)} {register}, [%at];"]


def _store(register: str, kind: str) -> list[str]:
    if kind == "pred":
        return [f"selp.u16 %byte, 1, 0, {register};", "st.global.u8 [%at], %byte;"]
    return [f"st.global.{_moved(kind)} [%at], {register};"]


def _moved(kind: str) -> str:
    return "b16" if kind == "f16" else kind  # ld and st know no f16
