"""The loader: names, signatures, compilation, and what it says when one of them is missing."""

from __future__ import annotations

import os
import stat
import struct
import tempfile
from pathlib import Path

import pytest

import kernels
from harness.devices.arguments import POINTERS, SCALARS, alignment, plain
from kernels import (
    FOLDER,
    SIGNATURE,
    CompilationError,
    CompilerMissing,
    Kernel,
    Parameter,
    compile_kernel,
    compile_source,
    kernel,
    parameters,
)

SOURCES = sorted(path.stem for path in FOLDER.glob("*.cu"))
V4 = kernel("reduce_ladder", "reduce_v4", BLOCK=256)


def test_a_kernel_is_named_by_its_defines_in_order() -> None:
    one = kernel("reduce_ladder", "reduce_v2", MASK=1, BLOCK=256)
    assert one == kernel("reduce_ladder", "reduce_v2", BLOCK=256, MASK=1)
    assert str(one) == "reduce_v2[BLOCK=256,MASK]"
    assert str(kernel("coalescing", "update_soa")) == "update_soa"
    assert one.path == FOLDER / "reduce_ladder.cu"


def test_a_signature_is_read_from_the_source(tmp_path: Path) -> None:
    (tmp_path / "s.cu").write_text(
        'extern "C" __global__ void one(const float4* __restrict__ x4, float* out,\n'
        "                               unsigned int n)\n{\n}\n"
        'extern "C" __global__ void other(long long n, float4 *__restrict__ x)\n{\n}\n'
        'extern "C" __global__ void none()\n{\n}\n'
    )
    source = str(tmp_path / "s")
    assert parameters(Kernel(source, "one")) == (
        Parameter("x4", "float4*"),
        Parameter("out", "float*"),
        Parameter("n", "unsigned int"),
    )
    assert parameters(Kernel(source, "other")) == (
        Parameter("n", "long long"),
        Parameter("x", "float4*"),
    )
    assert parameters(Kernel(source, "none")) == ()


@pytest.mark.parametrize(
    "head",
    [
        'extern "C" __global__ void __launch_bounds__(256) k',
        'extern "C" __global__ void __launch_bounds__(2 * (BLOCK), 1)\n    k',
        'extern "C" __global__ __launch_bounds__(BLOCK) void k',
        'extern "C" __launch_bounds__(BLOCK) __maxnreg__(32) __global__ void k',
        'extern "C"  __global__\nvoid k',
    ],
)
def test_a_kernel_with_launch_bounds_is_found(tmp_path: Path, head: str) -> None:
    (tmp_path / "s.cu").write_text(f"{head}(float* out, int n)\n{{\n}}\n")
    found = Kernel(str(tmp_path / "s"), "k", (("BLOCK", 64),))
    assert parameters(found) == (Parameter("out", "float*"), Parameter("n", "int"))
    if "maxnreg" not in head:  # the compiler takes only one of the two
        assert ".entry k(" in compile_kernel(found, "sm_90").ptx


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ("float const* x", "float*"),
        ("volatile float *x", "float*"),
        ("const volatile float* const __restrict__ x", "float*"),
        ("float*__restrict x", "float*"),
        ("const\n    long long int * x", "long long int*"),
        ("int const x", "int"),
        ("constant* x", "constant*"),
    ],
)
def test_qualifiers_are_no_part_of_a_type(tmp_path: Path, declared: str, expected: str) -> None:
    (tmp_path / "s.cu").write_text(f'extern "C" __global__ void k({declared}) {{}}')
    assert parameters(Kernel(str(tmp_path / "s"), "k")) == (Parameter("x", expected),)


def test_an_unknown_kernel_is_named_with_the_file() -> None:
    with pytest.raises(LookupError) as error:
        parameters(kernel("coalescing", "copy"))
    assert error.value.args[0] == 'coalescing.cu has no extern "C" __global__ void copy(...)'


@pytest.mark.parametrize("source", SOURCES)
def test_every_parameter_here_has_a_type_that_a_launch_can_pack(source: str) -> None:
    names = [name for name, _ in SIGNATURE.findall((FOLDER / f"{source}.cu").read_text())]
    assert names
    for name in names:
        for parameter in parameters(Kernel(source, name)):
            scalar, pointer = plain(parameter.type) in SCALARS, parameter.type.endswith("*")
            assert scalar or pointer, f"{source}.cu: {name} takes {parameter}"


def test_sizes_and_alignments_of_pointers_are_the_compiler_s(tmp_path: Path) -> None:
    """`__half` has a header, the names that end in _t may have one: the kernels include none."""
    source = tmp_path / "types.cu"
    lines = [
        f"static_assert(sizeof({name}) == {int(code.strip('?')[1:] or 1) * width} "
        f'&& alignof({name}) == {alignment(code, width)}, "{name}");'
        for name, (code, width) in POINTERS.items()
        if not name.endswith("_t") and name != "__half"
    ]
    assert len(lines) == 61
    source.write_text("\n".join((*lines, 'extern "C" __global__ void k() {}')))
    compile_source(source, (), "sm_90")


def test_one_compilation_gives_text_and_machine_code() -> None:
    binary = compile_kernel(V4, "sm_90")
    assert ".target sm_90" in binary.ptx
    assert ".visible .entry reduce_v4(" in binary.ptx
    assert not binary.ptx.endswith("\0")
    assert binary.compiler >= (12, 0)
    assert compile_kernel(kernel("reduce_ladder", "reduce_v5", BLOCK=256), "sm_90") is binary


def test_the_machine_code_is_a_whole_elf_file() -> None:
    """The section headers come last in the file; a byte less and a loader may refuse it."""
    cubin = compile_kernel(V4, "sm_90").cubin
    assert cubin[:4] == b"\x7fELF"
    (section_headers,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count = struct.unpack_from("<HH", cubin, 0x3A)
    (program_headers,) = struct.unpack_from("<Q", cubin, 0x20)
    program_size, program_count = struct.unpack_from("<HH", cubin, 0x36)
    ends = section_headers + size * count, program_headers + program_size * program_count
    assert len(cubin) == max(ends)


def test_defines_reach_the_compiler() -> None:
    shared = [
        compile_kernel(kernel("reduce_ladder", "reduce_v4", BLOCK=block), "sm_80").ptx
        for block in (64, 128)
    ]
    assert "_ZZ9reduce_v4E1s[256]" in shared[0]
    assert "_ZZ9reduce_v4E1s[512]" in shared[1]


def test_a_source_that_does_not_compile_shows_the_log(tmp_path: Path) -> None:
    source = tmp_path / "wrong.cu"
    source.write_text('extern "C" __global__ void k(const float* x) { float4 v = x[0]; }\n')
    with pytest.raises(CompilationError) as error:
        compile_source(source, (), "sm_90")
    assert str(error.value).startswith("wrong.cu for sm_90: wrong.cu(1): error: no suitable")


def test_an_architecture_that_the_compiler_does_not_know_is_named(tmp_path: Path) -> None:
    with pytest.raises(CompilationError, match=r"^reduce_ladder.cu for sm_10: .*arch"):
        compile_kernel(V4, "sm_10")


def test_without_a_compiler_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise ImportError("libnvrtc.so.13: cannot open shared object file")

    monkeypatch.setattr(kernels, "import_cupy", missing)
    kernels._nvrtc.cache_clear()
    try:
        with pytest.raises(CompilerMissing) as error:
            compile_source(FOLDER / "coalescing.cu", (("UNUSED", 1),), "sm_90")
    finally:
        kernels._nvrtc.cache_clear()
    assert str(error.value) == (
        "NVRTC cannot be loaded (libnvrtc.so.13: cannot open shared object file).\n"
        "Install CuPy and the compiler of your driver's CUDA version, only one of the two:\n"
        "  pip install cupy-cuda13x 'nvidia-cuda-nvrtc<14'\n"
        "  pip install cupy-cuda12x nvidia-cuda-nvrtc-cu12"
    )


@pytest.fixture
def shared_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder that all users of a machine share, where CuPy has no folder yet."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("CUPY_CACHE_DIR", "as before once the test is over")
    return tmp_path


def kept_in() -> Path:
    """Import CuPy as in a new process, and return where it keeps its kernels."""
    os.environ.pop("CUPY_CACHE_DIR", None)
    kernels.import_cupy()
    return Path(os.environ["CUPY_CACHE_DIR"])


def test_cupy_keeps_its_kernels_where_nobody_else_writes(shared_folder: Path) -> None:
    """The same folder each time; one that was named in advance is taken as it is."""
    folder = kept_in()
    assert folder == shared_folder / f"cupy-kernels-{os.getuid()}"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert kept_in() == folder
    os.environ["CUPY_CACHE_DIR"] = "/elsewhere"
    kernels.import_cupy()
    assert os.environ["CUPY_CACHE_DIR"] == "/elsewhere"


@pytest.mark.parametrize("taken", ["by another user", "by a link", "by a file", "for all to write"])
def test_a_folder_of_somebody_else_is_left_alone(
    shared_folder: Path, monkeypatch: pytest.MonkeyPatch, taken: str
) -> None:
    """Whoever knows the name may have made it, and put code there."""
    user = os.getuid() + (taken == "by another user")
    monkeypatch.setattr(os, "getuid", lambda: user)
    name = shared_folder / f"cupy-kernels-{user}"
    if taken == "by a link":
        (shared_folder / "theirs").mkdir(mode=0o700)
        name.symlink_to("theirs")
    elif taken == "by a file":
        name.touch(mode=0o700)
    else:
        name.mkdir(mode=0o700)
        name.chmod(0o777 if taken == "for all to write" else 0o700)
    folder = kept_in()
    assert folder.parent == shared_folder
    assert folder.name.startswith("cupy-kernels-")
    assert folder.resolve() not in (name, shared_folder / "theirs")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
