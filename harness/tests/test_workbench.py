"""The workbench prepares a workload once, frees old ones, and never times a wrong kernel."""

from __future__ import annotations

import pytest

from harness.tests.fakes import FakeGPU, FakeWorkload
from harness.timing import Budget, Ideal
from harness.workbench import Workbench

LOOSE = (0.001, None)
BUDGET = Budget()


def test_a_workload_is_prepared_once_and_checked_before_and_after_timing() -> None:
    """The second comparison reuses both launches."""
    gpu = FakeGPU()
    bench, slow, fast = Workbench(gpu), FakeWorkload("slow", 2e-4), FakeWorkload("fast", 1e-4)
    for _ in range(2):
        pairs = bench.pairs(slow, fast, LOOSE, budget=BUDGET, seed=0)
        assert len(pairs) == 8
    assert slow.prepared == ["slow"]
    assert gpu.log[:3] == ["launch slow", "launch fast", "time slow"]
    assert gpu.log[-2:] == ["launch slow", "launch fast"]


def test_a_wrong_kernel_is_never_timed() -> None:
    """Its check fails before the first sample."""
    gpu = FakeGPU()
    wrong, fast = FakeWorkload("wrong", right=0), FakeWorkload("fast")
    with pytest.raises(AssertionError, match="wrong is wrong"):
        Workbench(gpu).pairs(fast, wrong, LOOSE, budget=BUDGET, seed=0)
    assert not [line for line in gpu.log if line.startswith("time")]


def test_a_kernel_that_goes_wrong_while_timed_is_found() -> None:
    """Right before, wrong after."""
    with pytest.raises(AssertionError, match="rots is wrong"):
        Workbench(FakeGPU()).rounds(FakeWorkload("rots", right=1), 20)


def test_the_least_recently_used_workload_is_freed() -> None:
    """Two are kept: a is used again, so b makes room for c."""
    bench = Workbench(FakeGPU(), kept=2)
    a, b, c = (FakeWorkload(name) for name in "abc")
    for workload in (a, b, a, c, a, b):
        bench.launch(workload)
    assert (len(a.prepared), len(b.prepared), len(c.prepared)) == (1, 2, 1)


def test_rounds_are_counted_after_a_warm_up() -> None:
    """Twenty samples, three launches thrown away."""
    gpu = FakeGPU()
    assert len(Workbench(gpu).rounds(FakeWorkload("copy"), 20)) == 20
    assert gpu.log.count("time copy") == 23


def test_an_ideal_time_is_worked_out_for_the_device_and_never_measured() -> None:
    """A megabyte at the peak against a measured tenth of a millisecond."""
    gpu = FakeGPU()
    ideal = Ideal("a megabyte at the peak", lambda device: 1e6 / gpu.peak_bandwidth)
    pairs = Workbench(gpu).pairs(ideal, FakeWorkload("copy", 1e-4), LOOSE, budget=BUDGET, seed=0)
    assert {ideal_time for ideal_time, _ in pairs} == {1e6 / gpu.peak_bandwidth}
    assert all(line.endswith("copy") for line in gpu.log)
