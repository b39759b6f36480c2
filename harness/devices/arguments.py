"""Turn the arguments of a launch into the scalars a kernel reads, or refuse them by name.

A kernel reads raw bits. It knows nothing of dtypes, strides or alignment, so whatever is wrong with
an argument must be found here: on a GPU the symptom would be a wrong sum or a dead context.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from kernels import Kernel, Parameter, parameters

SCALARS: Final[dict[str, type[Any]]] = {
    "int": np.int32,
    "unsigned": np.uint32,
    "unsigned int": np.uint32,
    "long long": np.int64,
    "float": np.float32,
    "double": np.float64,
}
# element type, elements per access
POINTERS: Final = {
    "float": ("f4", 1),
    "float2": ("f4", 2),
    "float4": ("f4", 4),
    "double": ("f8", 1),
    "int": ("i4", 1),
    "unsigned": ("u4", 1),
}


class ArgumentError(TypeError):
    """An argument does not fit its parameter; the message names both and the fix."""


def pack(
    kernel: Kernel, arguments: tuple[Any, ...], *, addresses: bool = False
) -> tuple[np.generic, ...]:
    """Return one NumPy scalar per parameter; arrays become their 64-bit address.

    A struct pointer takes an array of any dtype: its layout is the caller's business. With
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
    dtype = SCALARS[parameter.type]
    if issubclass(dtype, np.floating):
        if not isinstance(value, dtype):
            raise ArgumentError(
                f"{where} is {_describe(value)}, the kernel reads {parameter.type}: "
                f"pass numpy.{dtype.__name__}({value!r})"
            )
        return value
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


def _pointer(kernel: Kernel, parameter: Parameter, array: Any) -> np.generic:
    where = f"argument {parameter.name!r} of {kernel}"
    interface = _interface(where, array)
    address = int(interface["data"][0])
    if interface.get("strides") is not None and not _contiguous(interface):
        raise ArgumentError(
            f"{where} at {address:#x} has strides {interface['strides']}, "
            "the kernel reads consecutive elements: pass a contiguous copy"
        )
    base = parameter.type.removesuffix("*").strip()
    if base in POINTERS:
        _check_elements(where, base, interface, address)
    return np.uint64(address)


def _check_elements(where: str, base: str, interface: dict[str, Any], address: int) -> None:
    code, width = POINTERS[base]
    dtype = np.dtype(interface["typestr"])
    if dtype != np.dtype(code):
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
    if address % (width * dtype.itemsize):
        raise ArgumentError(
            f"{where} at {address:#x} is not {width * dtype.itemsize}-byte aligned, the kernel "
            f"reads {base}: pass a copy, or start the view at a multiple of {width} elements"
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
