"""Commands that lack what they need: one line that says what to do, exit 2, never a traceback."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from harness import profiler
from harness.devices.disassembly import DisassemblerMissing
from harness.devices.emulator.sass import __main__ as sass
from harness.tests.rehearsal import ROOT
from kernels import CompilerMissing


@pytest.mark.parametrize(
    "words",
    [
        ["harness.profiler"],
        ["harness.profiler", "--random", "40"],
        ["harness.selftest"],
        ["harness.selftest", "--repeat", "python -m harness.gate.night", "5"],
        ["harness.selftest", "--all-gpus"],
    ],
    ids=" ".join,
)
def test_without_a_gpu(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever processes it would have started: one of them speaks."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    command = [sys.executable, "-m", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert re.search("install|check|unset", done.stderr)


@pytest.mark.parametrize("options", [[], ["--random", "1"]], ids=["times", "instructions"])
def test_without_ncu(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    """The GPU is there."""

    def child(command: list[str]) -> str:
        if command[0] == "ncu":
            raise FileNotFoundError
        return json.dumps({"device": "NVIDIA H200", "launches": [{"function": "reduce_v7"}]})

    monkeypatch.setattr(profiler, "_child", child)
    assert profiler.main(options) == 2
    assert capsys.readouterr().err == ("ncu is not on PATH: it comes with Nsight Compute or CUDA\n")


@pytest.mark.parametrize("error", [DisassemblerMissing, CompilerMissing])
def test_without_a_disassembler_or_a_compiler(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: type[Exception]
) -> None:
    """No head of a table that does not follow."""

    def table(n: int, grid: int) -> str:
        raise error("pip install it")

    monkeypatch.setattr(sass, "table", table)
    assert sass.main([]) == 2
    assert capsys.readouterr() == ("", "pip install it\n")
