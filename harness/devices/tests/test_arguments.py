"""What a kernel may be given, and the sentence that refuses the rest."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.devices.arguments import ArgumentError, pack, vector_size
from kernels import Kernel

SOURCE = """
struct Pair { int a; float b; };
extern "C" __global__ void k(const float* x, float4* v, double d, float f, int n, unsigned u)
{
}
extern "C" __global__ void scalars(int n, unsigned u, long long l)
{
}
extern "C" __global__ void structs(Pair* pairs)
{
}
extern "C" __global__ void by_value(Pair pair)
{
}
"""


@dataclass
class Memory:
    """Device memory as an argument sees it: only the interface."""

    address: int = 0x1000
    shape: tuple[int, ...] = (8,)
    typestr: str = "<f4"
    strides: tuple[int, ...] | None = None

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.typestr,
            "data": (self.address, False),
            "strides": self.strides,
            "version": 3,
        }


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("source") / "arguments.cu"
    path.write_text(SOURCE)
    return str(path.with_suffix(""))


GOOD: dict[str, Any] = {
    "x": Memory(),
    "v": Memory(0x2000),
    "d": np.float64(0.5),
    "f": np.float32(0.5),
    "n": 7,
    "u": np.uint8(7),
}


def test_every_argument_becomes_the_scalar_its_parameter_reads(source: str) -> None:
    packed = pack(Kernel(source, "k"), tuple(GOOD.values()))
    assert [value.item() for value in packed] == [0x1000, 0x2000, 0.5, 0.5, 7, 7]
    assert [value.dtype.name for value in packed] == [
        "uint64", "uint64", "float64", "float32", "int32", "uint32",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("f", 2.0, "is a Python float, the kernel reads float: pass numpy.float32(2.0)"),
        ("f", 2, "is a Python int, the kernel reads float: pass numpy.float32(2)"),
        (
            "f",
            np.float64(2),
            "is a float64, the kernel reads float: pass numpy.float32(np.float64(2.0))",
        ),
        ("d", 2.0, "is a Python float, the kernel reads double: pass numpy.float64(2.0)"),
        ("n", 2.0, "is a Python float, the kernel reads int: pass an int"),
        ("n", True, "is a Python bool, the kernel reads int: pass an int"),
        (
            "n",
            2**31,
            "is 2147483648, outside int (-2147483648..2147483647): launch on chunks of the array",
        ),
        ("u", -1, "is -1, outside unsigned (0..4294967295): launch on chunks of the array"),
        ("x", None, "is a Python NoneType, the kernel reads device memory: use device.put"),
        (
            "x",
            np.zeros(8, np.float32),
            "is a ndarray, the kernel reads device memory: use device.put",
        ),
        (
            "x",
            Memory(typestr="<f8"),
            "at 0x1000 holds float64, the kernel reads float: convert it with astype('float32')",
        ),
        (
            "x",
            Memory(strides=(8,)),
            "at 0x1000 has strides (8,), the kernel reads consecutive elements: "
            "pass a contiguous copy",
        ),
        (
            "x",
            Memory(strides=(-4,)),
            "at 0x1000 has strides (-4,), the kernel reads consecutive elements: "
            "pass a contiguous copy",
        ),
        (
            "v",
            Memory(shape=(10,)),
            "at 0x1000 holds 10 elements, the kernel reads float4: "
            "pass a multiple of 4 and add the last 2 apart",
        ),
        (
            "v",
            Memory(0x1004),
            "at 0x1004 is not 16-byte aligned, the kernel reads float4: "
            "pass a copy, or start the view at a multiple of 4 elements",
        ),
        (
            "x",
            Memory(0x1002),
            "at 0x1002 is not 4-byte aligned, the kernel reads float: "
            "pass a copy, or start the view at a multiple of 1 elements",
        ),
    ],
)
def test_a_wrong_argument_is_named_with_its_fix(
    source: str, name: str, value: Any, message: str
) -> None:
    with pytest.raises(ArgumentError) as error:
        pack(Kernel(source, "k", (("BLOCK", 256),)), tuple((GOOD | {name: value}).values()))
    assert str(error.value) == f"argument '{name}' of k[BLOCK=256] {message}"


def test_a_missing_argument_shows_the_signature(source: str) -> None:
    with pytest.raises(ArgumentError) as error:
        pack(Kernel(source, "k"), (Memory(),))
    assert str(error.value) == (
        "k takes (float* x, float4* v, double d, float f, int n, unsigned u), got 1 arguments"
    )


def test_a_parameter_of_another_type_is_refused_by_name(source: str) -> None:
    with pytest.raises(ArgumentError, match="'pair' of by_value is declared as Pair: kernels here"):
        pack(Kernel(source, "by_value"), (7,))


@given(st.sampled_from(["n", "u", "l"]), st.integers(-(2**65), 2**65))
def test_an_integer_arrives_as_it_is_or_not_at_all(source: str, name: str, value: int) -> None:
    limits = {"n": (-(2**31), 2**31 - 1), "u": (0, 2**32 - 1), "l": (-(2**63), 2**63 - 1)}
    values = {"n": 0, "u": 0, "l": 0} | {name: value}
    low, high = limits[name]
    if low <= value <= high:
        packed = pack(Kernel(source, "scalars"), tuple(values.values()))
        assert int(packed["nul".index(name)]) == value
    else:
        with pytest.raises(
            ArgumentError, match=f"argument '{name}' of scalars is {value}, outside"
        ):
            pack(Kernel(source, "scalars"), tuple(values.values()))


@pytest.mark.parametrize("memory", [Memory(typestr="<f8"), Memory(typestr="|u1", shape=(3, 5))])
def test_a_struct_pointer_takes_any_layout(source: str, memory: Memory) -> None:
    assert [*pack(Kernel(source, "structs"), (memory,))] == [0x1000]


HALVES = {"<u2", "<f2"}
DECLARED = [
    ("float const*", "<f4"), ("volatile float*", "<f4"), ("const float *__restrict__", "<f4"),
    ("unsigned int*", "<u4"), ("int unsigned*", "<u4"), ("signed*", "<i4"),
    ("long long*", "<i8"), ("long long unsigned int*", "<u8"), ("size_t*", "<u8"),
    ("unsigned short*", "<u2"), ("unsigned short*", "<f2"), ("const short int*", "<i2"),
    ("unsigned char*", "|u1"), ("bool*", "|b1"), ("uint32_t*", "<u4"), ("__half*", "<f2"),
    ("int4*", "<i4"), ("uchar4*", "|u1"), ("ushort2*", "<f2"), ("double2*", "<f8"),
    ("ulonglong2*", "<u8"),
]  # fmt: skip


@pytest.mark.parametrize(("declared", "typestr"), DECLARED)
def test_a_pointer_of_any_spelling_takes_its_dtype_alone(
    tmp_path: Path, declared: str, typestr: str
) -> None:
    (tmp_path / "s.cu").write_text(f'extern "C" __global__ void k({declared} x) {{}}')
    kernel = Kernel(str(tmp_path / "s"), "k")
    assert [*pack(kernel, (Memory(typestr=typestr),))] == [0x1000]
    same = {typestr} if "unsigned short" not in declared and "ushort" not in declared else HALVES
    for other in {t for _, t in DECLARED} - same:
        with pytest.raises(ArgumentError, match=r"'x' of k at 0x1000 holds .*, the kernel reads"):
            pack(kernel, (Memory(typestr=other),))


@pytest.mark.parametrize(
    "declared", ["long double*", "__int128*", "char16_t const*", "double4_32a*"]
)
def test_a_builtin_type_that_nobody_knows_is_no_struct(tmp_path: Path, declared: str) -> None:
    (tmp_path / "s.cu").write_text(f'extern "C" __global__ void k({declared} x) {{}}')
    with pytest.raises(ArgumentError, match=r"'x' of k is declared as .*, of which no dtype"):
        pack(Kernel(str(tmp_path / "s"), "k"), (Memory(),))


@pytest.mark.parametrize("name", ["Pair", "struct Pair", "void", "integer", "floating", "Int4"])
def test_any_other_name_is_a_struct(tmp_path: Path, name: str) -> None:
    (tmp_path / "s.cu").write_text(f'extern "C" __global__ void k({name}* x) {{}}')
    memory = Memory(0x1001, typestr="|u1")
    assert [*pack(Kernel(str(tmp_path / "s"), "k"), (memory,))] == [0x1001]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.data())
def test_strides_that_numpy_calls_contiguous_are_accepted(
    source: str, shape: list[int], data: st.DataObject
) -> None:
    """A stride along an axis of length one never matters."""
    whole = np.zeros([length + 1 for length in shape], np.float32)
    array = whole[tuple(slice(0, length) for length in shape)]
    if data.draw(st.booleans()):
        array = np.ascontiguousarray(array)
    memory = Memory(shape=array.shape, strides=array.strides)
    given_ = (memory, *list(GOOD.values())[1:])
    if array.flags.c_contiguous:
        assert pack(Kernel(source, "k"), given_)[0] == 0x1000
    else:
        with pytest.raises(ArgumentError, match="has strides"):
            pack(Kernel(source, "k"), given_)


def test_a_null_pointer_of_an_empty_array_is_passed_on(source: str) -> None:
    empty = Memory(0, (0,), strides=(4,))
    assert pack(Kernel(source, "k"), (empty, *list(GOOD.values())[1:]))[0] == 0


def test_the_size_of_a_vector_is_its_one_dimension(source: str) -> None:
    kernel = Kernel(source, "k")
    assert vector_size(kernel, Memory(shape=(12,))) == 12
    with pytest.raises(ArgumentError) as error:
        vector_size(kernel, Memory(shape=(3, 4)))
    assert str(error.value) == (
        "argument 'x' of k has the shape (3, 4): pass one dimension, such as x.ravel()"
    )
    with pytest.raises(
        ArgumentError, match=r"argument 'x' of k is a Python list, .* use device.put"
    ):
        vector_size(kernel, [1.0])
