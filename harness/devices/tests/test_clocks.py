"""A clock times one run of one kernel, or says why it cannot."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from harness.devices.clocks import FLUSHES, ClockError, CuptiClock, EventClock, choose


class FakeCupti:
    """Records what runs while a kind is enabled and hands it over when flushed, as CUPTI does."""

    ActivityKind = SimpleNamespace(MEMCPY=1, MEMSET=2, KERNEL=3)

    def __init__(self) -> None:
        self.enabled: set[int] = set()
        self.pending: list[Any] = []

    def activity_register_callbacks(self, requested: Any, completed: Any) -> None:
        self.completed = completed

    def activity_enable(self, kind: int) -> None:
        self.enabled.add(kind)

    def activity_disable(self, kind: int) -> None:
        self.enabled.remove(kind)

    def activity_flush_all(self, flag: int) -> None:
        self.completed(self.pending)
        self.pending = []

    def kernel(self, name: str, nanoseconds: int = 1000) -> None:
        if 3 in self.enabled:
            self.pending.append(SimpleNamespace(name=name, start=7, end=7 + nanoseconds))

    def copy(self, nanoseconds: int = 1000) -> None:
        self._transfer(1, nanoseconds)

    def fill(self, nanoseconds: int = 1000) -> None:
        self._transfer(2, nanoseconds)

    def _transfer(self, kind: int, nanoseconds: int) -> None:
        if kind in self.enabled:
            self.pending.append(SimpleNamespace(start=7, end=7 + nanoseconds))


def nothing() -> None:
    pass


@pytest.fixture
def cupti() -> FakeCupti:
    return FakeCupti()


@pytest.fixture
def clock(cupti: FakeCupti) -> CuptiClock:
    return CuptiClock(cupti, nothing)


def test_cupti_gives_the_kernels_own_seconds(cupti: FakeCupti, clock: CuptiClock) -> None:
    seconds = clock.kernel(nothing, lambda: cupti.kernel("reduce_v7", 62_400), "reduce_v7")
    assert seconds == pytest.approx(62.4e-6)


def test_cupti_gives_the_copys_own_seconds(cupti: FakeCupti, clock: CuptiClock) -> None:
    assert clock.copy(nothing, lambda: cupti.copy(124_900)) == pytest.approx(124.9e-6)


def test_neither_the_flush_nor_launches_between_samples_are_in_the_sample(
    cupti: FakeCupti, clock: CuptiClock
) -> None:
    cupti.kernel("reduce_v7", 1)
    seconds = clock.kernel(
        lambda: cupti.kernel("read_all", 28_700),
        lambda: cupti.kernel("reduce_v7", 62_400),
        "reduce_v7",
    )
    assert seconds == pytest.approx(62.4e-6)


@pytest.mark.parametrize(
    ("ran", "seen"),
    [([], "nothing"), (["other"], "other"), (["reduce_v7", "reduce_v7"], "reduce_v7, reduce_v7")],
)
def test_anything_but_one_run_of_the_kernel_is_refused(
    cupti: FakeCupti, clock: CuptiClock, ran: list[str], seen: str
) -> None:
    def run() -> None:
        for name in ran:
            cupti.kernel(name)

    message = f"one run of reduce_v7 was to be timed, CUPTI recorded {seen}: launch from one thread"
    with pytest.raises(ClockError, match=message):
        clock.kernel(nothing, run, "reduce_v7")


def test_a_routine_takes_as_long_as_all_its_kernels(cupti: FakeCupti, clock: CuptiClock) -> None:
    def run() -> None:
        cupti.kernel("gemm_split_k", 40_000)
        cupti.kernel("add_the_parts", 2_500)

    seconds = clock.routine(lambda: cupti.kernel("read_all", 28_700), run, "cublas gemm")
    assert seconds == pytest.approx(42.5e-6)


def test_a_routine_may_copy_and_fill_too(cupti: FakeCupti, clock: CuptiClock) -> None:
    def run() -> None:
        cupti.fill(800)
        cupti.copy(124_900)

    assert clock.routine(nothing, run, "torch.sum") == pytest.approx(125.7e-6)
    assert not cupti.enabled


def test_a_routine_without_kernels_is_refused(clock: CuptiClock) -> None:
    with pytest.raises(ClockError, match=r"cublas gemm was to be timed, CUPTI recorded no kernel"):
        clock.routine(nothing, nothing, "cublas gemm")


def test_the_window_closes_when_the_run_fails(cupti: FakeCupti, clock: CuptiClock) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        clock.kernel(nothing, fail, "reduce_v7")
    assert not cupti.enabled


class FakeEvent:
    """`early`: for each sample, whether the GPU was at the first event before the host was done."""

    early: list[bool]

    def record(self) -> None: ...
    def synchronize(self) -> None: ...

    @property
    def done(self) -> bool:
        return self.early.pop(0)


def events(early: list[bool]) -> Any:
    FakeEvent.early = early
    runtime = SimpleNamespace(deviceSynchronize=nothing, driverGetVersion=lambda: 13000)
    return SimpleNamespace(
        Event=FakeEvent, get_elapsed_time=lambda start, end: 0.0648, runtime=runtime
    )


def test_events_give_seconds_of_their_milliseconds() -> None:
    clock = EventClock(events([False]), "no CUPTI")
    assert clock.kernel(nothing, nothing, "reduce_v7") == pytest.approx(64.8e-6)


def test_events_surround_a_whole_routine() -> None:
    clock = EventClock(events([False]), "no CUPTI")
    assert clock.routine(nothing, nothing, "cublas gemm") == pytest.approx(64.8e-6)


def test_a_flush_too_short_to_hide_the_host_is_queued_twice() -> None:
    flushed: list[None] = []
    clock = EventClock(events([True, False]), "no CUPTI")
    clock.kernel(lambda: flushed.append(None), nothing, "reduce_v7")
    assert len(flushed) == 1 + 2


def test_a_host_that_is_always_too_slow_is_an_error_not_a_number() -> None:
    clock = EventClock(events([True] * len(FLUSHES)), "no CUPTI")
    with pytest.raises(ClockError, match=r"before the host had queued reduce_v7, so the events"):
        clock.kernel(nothing, nothing, "reduce_v7")


@pytest.fixture
def installed(cupti: FakeCupti, monkeypatch: pytest.MonkeyPatch) -> FakeCupti:
    package = ModuleType("cupti")
    package.cupti = cupti  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupti", package)
    return cupti


def test_cupti_is_chosen_when_it_can_time_a_kernel(installed: FakeCupti) -> None:
    clock = choose(events([]), lambda: installed.kernel("read_all"), "read_all")
    assert (clock.name, clock.why) == ("cupti", CuptiClock.why)


def test_events_are_chosen_when_cupti_records_nothing(installed: FakeCupti) -> None:
    clock = choose(events([]), nothing, "read_all")
    assert clock.name == "events"
    assert "CUPTI does not work here (one run of read_all was to be timed" in clock.why


def test_events_are_chosen_when_a_profiler_is_attached(
    installed: FakeCupti, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(kind: int) -> None:
        raise RuntimeError("ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED (39)")

    monkeypatch.setattr(installed, "activity_enable", refuse)
    clock = choose(events([]), nothing, "read_all")
    assert clock.name == "events"
    assert "ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED (39)): is a profiler attached?" in clock.why


def test_events_are_chosen_without_cupti_and_the_package_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "cupti", None)
    clock = choose(events([]), nothing, "read_all")
    assert clock.name == "events"
    assert "pip install 'cupti-python~=13.0'" in clock.why
