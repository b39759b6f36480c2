"""The parts of the speed script, on few elements; its numbers are nobody's assertion."""

from __future__ import annotations

import re
import shutil

import pytest

from harness.devices.emulator import speed

installed = pytest.mark.skipif(not shutil.which("oclgrind-kernel"), reason="oclgrind not installed")


def test_the_reduction_is_checked_timed_and_counted() -> None:
    seconds, issued = speed.emulate(1024)
    assert seconds > 0
    stored, _ = speed.emulate(1024, store=True)
    assert stored > 0
    assert issued > 1024 // 32


def test_a_wrong_sum_is_an_error() -> None:
    with pytest.raises(ArithmeticError, match="4 ones summed to 5"):
        speed._check(5, 4)


def test_start_up_drops_out_of_the_time_per_element() -> None:
    assert speed.nanoseconds_per_element(lambda n: 3 + 2e-9 * n, 1 << 20) == pytest.approx(2)


@installed
def test_oclgrind_runs_the_same_reduction() -> None:
    assert speed.oclgrind(512) > 0


def test_without_oclgrind_the_script_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    speed.main(1024)
    first, second = capsys.readouterr().out.splitlines()
    assert re.fullmatch(
        r"reduce_v4, n = 1024, block 256, .* [\d.]+ million .* \(median of 5\)", first
    )
    assert second.endswith("(apt-get install oclgrind)")


@installed
def test_with_oclgrind_it_prints_the_ratio(capsys: pytest.CaptureFixture[str]) -> None:
    speed.main(1 << 14, 1 << 11)
    assert re.search(
        r"\d+ ns under Oclgrind \(n = 2048\): \d+ times as fast", capsys.readouterr().out
    )
