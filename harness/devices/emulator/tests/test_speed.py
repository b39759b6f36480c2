"""The parts of the speed script, on few elements; its numbers are nobody's assertion."""

from __future__ import annotations

import shutil
from itertools import accumulate, count

import pytest

from harness.devices.emulator import speed

installed = pytest.mark.skipif(not shutil.which("oclgrind-kernel"), reason="oclgrind not installed")


def test_the_reduction_is_checked_timed_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock reads 0, 1, 3, 6, 10, ...: the five runs take 1, 3, 5, 7 and 9."""
    for store in (False, True):
        monkeypatch.setattr(speed, "own_seconds", accumulate(count()).__next__)
        seconds, issued = speed.emulate(1024, store=store)
        assert seconds == 5
        assert issued > 1024 // 32


def test_a_wrong_sum_is_an_error() -> None:
    with pytest.raises(ArithmeticError, match="4 ones summed to 5"):
        speed._check(5, 4)


def test_start_up_drops_out_of_the_time_per_element() -> None:
    assert speed.nanoseconds_per_element(lambda n: 3 + 2e-9 * n, 1 << 20) == pytest.approx(2)


def test_a_difference_that_may_be_noise_is_never_divided() -> None:
    """One block took 4 s, more blocks 3 and 8 s: only 8 is more than twice as long."""
    times = {256: 4.0, 512: 3.0, 1024: 8.0, 2048: 12.0}
    assert speed.nanoseconds_per_element(times.__getitem__, 512) == 8 / (2048 - 256) * 1e9


@installed
def test_oclgrind_runs_the_same_reduction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "children_seconds", iter([1.0, 3.5]).__next__)
    assert speed.oclgrind(512) == 2.5


def test_without_oclgrind_the_script_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(speed, "emulate", lambda n: (2.0, 7_000_000))
    speed.main(1024)
    first, second = capsys.readouterr().out.splitlines()
    assert first == (
        "reduce_v4, n = 1024, block 256, counters on, one core: "
        "3.5 million PTX warp instructions/s (median of 5)"
    )
    assert second.endswith("(apt-get install oclgrind)")


def test_with_oclgrind_it_prints_the_ratio(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: name)
    monkeypatch.setattr(speed, "emulate", lambda n, store=False: (20e-9 * n, n))
    monkeypatch.setattr(speed, "oclgrind", lambda n: 300e-9 * n)
    speed.main(1 << 14, 1 << 11)
    assert capsys.readouterr().out.splitlines()[1] == (
        "the same with a plain store: 20 ns an element here, 300 ns under Oclgrind "
        "(n from 2048 up): 15 times as fast"
    )
