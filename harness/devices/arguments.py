"""Turn the arguments of a launch into the scalars a kernel reads, or refuse them by name.

A kernel reads raw bits. It knows nothing of dtypes, strides or alignment, so whatever is wrong with
an argument must be found here: on a GPU the symptom would be a wrong sum or a dead context.
"""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np

from kernels import Kernel, Parameter, parameters

SCALARS: Final[dict[str, type[Any]]] = {
    "int": np.int32,
    "unsigned": np.uint32,
    "long": np.int64,
    "unsigned long": np.uint64,
    "long long": np.int64,
    "unsigned long long": np.uint64,
    "float": np.float32,
    "double": np.float64,
}
# Words that C puts together in any order: `long unsigned int` is `unsigned long`.
INTEGER: Final = frozenset({"signed", "unsigned", "char", "short", "long", "int"})
ELEMENTS: Final = {
    "char": "i1", "short": "i2", "int": "i4", "long": "i8", "long long": "i8",
    "unsigned char": "u1", "unsigned short": "u2", "unsigned": "u4", "unsigned long": "u8",
    "unsigned long long": "u8", "float": "f4", "double": "f8", "bool": "?",
    "int8_t": "i1", "int16_t": "i2", "int32_t": "i4", "int64_t": "i8", "size_t": "u8",
    "uint8_t": "u1", "uint16_t": "u2", "uint32_t": "u4", "uint64_t": "u8", "__half": "f2",
}  # fmt: skip
# With a number of elements behind it: float4.
VECTORS: Final = {
    "char": "i1", "short": "i2", "int": "i4", "long": "i8", "longlong": "i8", "float": "f4",
    "uchar": "u1", "ushort": "u2", "uint": "u4", "ulong": "u8", "ulonglong": "u8", "double": "f8",
}  # fmt: skip
# element type, elements per access
POINTERS: Final[dict[str, tuple[str, int]]] = {
    **{name: (code, 1) for name, code in ELEMENTS.items()},
    **{f"{name}{width}": (code, width) for name, code in VECTORS.items() for width in (1, 2, 3, 4)},
}
ALSO: Final = {"u2": "f2"}  # without a header, kernels take float16 as the bits of unsigned short
# What begins like this and is not in POINTERS is no struct of the caller's.
BUILTIN: Final = re.compile(
    rf"(?:{'|'.join(INTEGER)}|float|double|__\w+|wchar_t|char\d+_t)\b|(?:{'|'.join(VECTORS)})\d"
)


class ArgumentError(TypeError):
    """An argument does not fit its parameter; the message names both and the fix."""


def pack(
    kernel: Kernel, arguments: tuple[Any, ...], *, addresses: bool = False
) -> tuple[np.generic, ...]:
    """Return one NumPy scalar per parameter; arrays become their 64-bit address.

    A pointer to a struct or to void takes any dtype: its layout is the caller's business. With
    `addresses` an int stands for an array at that address, for who follows no pointer.

    Raises
    ------
    ArgumentError
        Wrong number of arguments, dtype, strides, alignment or range.
    """
    expected = parameters(kernel)
    if len(arguments) != len(expected):
        names = ", ".join(f"{p.type} {p.name}" for p in expected)
        raise ArgumentError(f"{kernel} takes ({names}), got {len(arguments)} arguments")
    return tuple(
        _scalar(kernel, p, a)
        if not p.type.endswith("*")
        else np.uint64(a)
        if addresses and isinstance(a, int) and 0 <= a < 1 << 64
        else _pointer(kernel, p, a)
        for p, a in zip(expected, arguments, strict=True)
    )


def vector_size(kernel: Kernel, array: Any) -> int:
    """Return the elements of `array`, which is to be the first argument of `kernel`.

    Raises
    ------
    ArgumentError
        It is no device memory, or has another number of dimensions.
    """
    where = f"argument {parameters(kernel)[0].name!r} of {kernel}"
    shape: tuple[int, ...] = _interface(where, array)["shape"]
    if len(shape) != 1:
        raise ArgumentError(f"{where} has the shape {shape}: pass one dimension, such as x.ravel()")
    return shape[0]


def _interface(where: str, array: Any) -> dict[str, Any]:
    found: dict[str, Any] | None = getattr(array, "__cuda_array_interface__", None)
    if found is None:
        raise ArgumentError(
            f"{where} is {_describe(array)}, the kernel reads device memory: use device.put"
        )
    return found


def _scalar(kernel: Kernel, parameter: Parameter, value: Any) -> np.generic:
    where = f"argument {parameter.name!r} of {kernel}"
    dtype = SCALARS.get(plain(parameter.type))
    if dtype is None:
        raise ArgumentError(
            f"{where} is declared as {parameter.type}: kernels here take pointers and "
            f"{', '.join(SCALARS)}"
        )
    if issubclass(dtype, np.floating):
        return _real(where, parameter, dtype, value)
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ArgumentError(
            f"{where} is {_describe(value)}, the kernel reads {parameter.type}: pass an int"
        )
    limits = np.iinfo(dtype)
    if not limits.min <= int(value) <= limits.max:
        raise ArgumentError(
            f"{where} is {value}, outside {parameter.type} ({limits.min}..{limits.max}): "
            "launch on chunks of the array"
        )
    scalar: np.generic = dtype(value)
    return scalar


def _real(where: str, parameter: Parameter, dtype: type[Any], value: Any) -> np.generic:
    if not isinstance(value, dtype):
        raise ArgumentError(
            f"{where} is {_describe(value)}, the kernel reads {parameter.type}: "
            f"pass numpy.{dtype.__name__}({value!r})"
        )
    number: np.generic = value
    return number


def _pointer(kernel: Kernel, parameter: Parameter, array: Any) -> np.generic:
    where = f"argument {parameter.name!r} of {kernel}"
    interface = _interface(where, array)
    address = int(interface["data"][0])
    if interface.get("strides") is not None and not _contiguous(interface):
        raise ArgumentError(
            f"{where} at {address:#x} has strides {interface['strides']}, "
            "the kernel reads consecutive elements: pass a contiguous copy"
        )
    base = plain(parameter.type.removesuffix("*").strip())
    if base in POINTERS:
        _check_elements(where, base, interface, address)
    elif BUILTIN.match(base):
        raise ArgumentError(
            f"{where} is declared as {parameter.type}, of which no dtype is known: take a pointer "
            "to another type, or add it to POINTERS in harness/devices/arguments.py"
        )
    return np.uint64(address)


def plain(name: str) -> str:
    """Return the one name of an integer type that C can call by several; others as they are."""
    words = name.split()
    if not INTEGER.issuperset(words):
        return name
    sign = [word for word in words if word == "unsigned"]
    length = [word for word in words if word in ("char", "short", "long")]
    return " ".join(sign + length) or "int"


def alignment(code: str, width: int) -> int:
    """Return what the address of one access must be a multiple of, in bytes (vector types)."""
    size = np.dtype(code).itemsize
    return size if width == 3 else min(size * width, 16)


def _check_elements(where: str, base: str, interface: dict[str, Any], address: int) -> None:
    code, width = POINTERS[base]
    dtype = np.dtype(interface["typestr"])
    if dtype not in (np.dtype(code), np.dtype(ALSO.get(code, code))):
        raise ArgumentError(
            f"{where} at {address:#x} holds {dtype}, the kernel reads {base}: "
            f"convert it with astype({np.dtype(code).name!r})"
        )
    size = int(np.prod(interface["shape"], dtype=np.int64))
    if size % width:
        raise ArgumentError(
            f"{where} at {address:#x} holds {size} elements, the kernel reads {base}: "
            f"pass a multiple of {width} and add the last {size % width} apart"
        )
    aligned = alignment(code, width)
    if address % aligned:
        raise ArgumentError(
            f"{where} at {address:#x} is not {aligned}-byte aligned, the kernel reads "
            f"{base}: pass a copy, or start the view at a multiple of {width} elements"
        )


def _contiguous(interface: dict[str, Any]) -> bool:
    expected = np.dtype(interface["typestr"]).itemsize
    for length, stride in zip(
        reversed(interface["shape"]), reversed(interface["strides"]), strict=True
    ):
        if length > 1 and stride != expected:
            return False
        expected *= length
    return True


def _describe(value: Any) -> str:
    kind = type(value)
    return f"a {'Python ' if kind.__module__ == 'builtins' else ''}{kind.__name__}"
