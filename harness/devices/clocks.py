"""Two clocks for one kernel or copy: the driver's activity records (CUPTI), or two CUDA events.

A record holds when the GPU began and ended the kernel: on H200s within 0.5 % of what Nsight Compute
says of V5 to V7, and up to 1.5 us more of a kernel of 20. Two events around it show 1 us more than
that when they are queued behind work, and 10 to 45 us more when the GPU waits for the host between.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

BUFFER_BYTES: Final = 1 << 20
FLUSHES: Final = (1, 2, 4, 8, 16)

Action = Callable[[], None]


class ClockError(RuntimeError):
    """A sample that shows no single run of the kernel or copy; the message says what it shows."""


class Clock(Protocol):
    """Times one run on the GPU; `flush` is queued before it and is never part of it."""

    name: str
    why: str

    def kernel(self, flush: Action, run: Action, name: str) -> float:
        """Return the seconds of the one kernel, called `name`, that `run` launches."""

    def routine(self, flush: Action, run: Action, name: str) -> float:
        """Return the seconds of all kernels that `run` launches, whatever they are called."""

    def copy(self, flush: Action, run: Action) -> float:
        """Return the seconds of the one copy that `run` queues."""


@dataclass(frozen=True)
class Record:
    """What the GPU ran, and for how long."""

    name: str
    nanoseconds: int


class CuptiClock:
    """Reads the activity records of a window that is open for one run.

    Outside it nothing is recorded: an ordinary launch costs nothing and leaves nothing behind.
    """

    name = "cupti"
    why = "CUPTI records when the GPU begins and ends each kernel"

    def __init__(self, cupti: Any, synchronize: Action) -> None:
        self._cupti = cupti
        self._synchronize = synchronize
        self._records: list[Record] = []
        cupti.activity_register_callbacks(lambda: (BUFFER_BYTES, 0), self._completed)

    def kernel(self, flush: Action, run: Action, name: str) -> float:
        """Return the seconds of the one kernel, called `name`, that `run` launches.

        Raises
        ------
        ClockError
            Another kernel ran in the window, or none, or more than one.
        """
        # Not CONCURRENT_KERNEL: to tell overlapping kernels apart CUPTI adds code to every block,
        # 23 us to a kernel of 262,144 blocks and 302 us on an H200.
        return self._single(self._window(flush, run, "KERNEL"), name)

    def routine(self, flush: Action, run: Action, name: str) -> float:
        """Return the seconds of all kernels, copies and fills that `run` queues, without the gaps.

        Raises
        ------
        ClockError
            None of them ran in the window.
        """
        records = self._window(flush, run, "KERNEL", "MEMCPY", "MEMSET")
        if not records:
            raise ClockError(
                f"{name} was to be timed, CUPTI recorded no kernel: the library answered without "
                "the GPU, or launched from another thread"
            )
        return sum(record.nanoseconds for record in records) * 1e-9

    def copy(self, flush: Action, run: Action) -> float:
        """Return the seconds of the one copy that `run` queues.

        Raises
        ------
        ClockError
            No copy ran in the window, or more than one.
        """
        return self._single(self._window(flush, run, "MEMCPY"), "copy")

    def _window(self, flush: Action, run: Action, *names: str) -> list[Record]:
        kinds = [getattr(self._cupti.ActivityKind, name) for name in names]
        flush()  # before the window opens, so that it leaves no record
        self._records.clear()
        for kind in kinds:
            self._cupti.activity_enable(kind)
        try:
            run()
            self._synchronize()
            self._cupti.activity_flush_all(0)
        finally:
            for kind in kinds:
                self._cupti.activity_disable(kind)
        return list(self._records)

    def _completed(self, activities: list[Any]) -> None:
        # The records live in a buffer that is freed after this call: keep values, not records.
        for activity in activities:
            name = str(getattr(activity, "name", "copy"))
            self._records.append(Record(name, int(activity.end) - int(activity.start)))

    @staticmethod
    def _single(records: list[Record], name: str) -> float:
        if [record.name for record in records] != [name]:
            seen = ", ".join(record.name for record in records) or "nothing"
            raise ClockError(
                f"one run of {name} was to be timed, CUPTI recorded {seen}: launch from one "
                "thread, and let no other library use the GPU in this process meanwhile"
            )
        return records[0].nanoseconds * 1e-9


class EventClock:
    """Two events around the run, queued while the GPU is still busy with the flush."""

    name = "events"

    def __init__(self, cuda: Any, why: str) -> None:
        self.why = why
        self._elapsed = cuda.get_elapsed_time
        self._start, self._end = cuda.Event(), cuda.Event()

    def kernel(self, flush: Action, run: Action, name: str) -> float:
        """Return the seconds of what `run` launches; `name` cannot be checked with events.

        Raises
        ------
        ClockError
            The GPU was never busy for as long as the host took to queue the launch.
        """
        for flushes in FLUSHES:
            if self._queue(flushes, flush, run):
                return float(self._elapsed(self._start, self._end)) * 1e-3
        raise ClockError(
            f"the GPU finished {FLUSHES[-1]} flushes of L2 before the host had queued {name}, so "
            "the events would time the host: free its processor, or install CUPTI (cupti-python)"
        )

    def routine(self, flush: Action, run: Action, name: str) -> float:
        """Return the seconds from the first kernel that `run` launches to the end of the last.

        Raises
        ------
        ClockError
            The GPU was never busy for as long as the host took to queue the first.
        """
        return self.kernel(flush, run, name)

    def copy(self, flush: Action, run: Action) -> float:
        """Return the seconds of the one copy that `run` queues.

        Raises
        ------
        ClockError
            The GPU was never busy for as long as the host took to queue the copy.
        """
        return self.kernel(flush, run, "the copy")

    def _queue(self, flushes: int, flush: Action, run: Action) -> bool:
        """Queue flushes, event, run, event; say whether the first event was then still to come."""
        for _ in range(flushes):
            flush()
        self._start.record()
        run()
        self._end.record()
        hidden = not self._start.done
        self._end.synchronize()
        return hidden


def choose(cuda: Any, probe: Action, name: str) -> Clock:
    """Return CUPTI's clock if it can time the kernel `name` that `probe` launches, else events.

    `cuda` is `cupy.cuda`. The `why` of the clock says why it was chosen.
    """
    try:
        from cupti import cupti

        clock = CuptiClock(cupti, cuda.runtime.deviceSynchronize)
        clock.kernel(probe, probe, name)
    except ImportError as error:
        major = cuda.runtime.driverGetVersion() // 1000
        install = f"pip install 'cupti-python~={major}.0'"
        return EventClock(cuda, f"CUPTI cannot be imported ({error}): {install}")
    except Exception as error:
        # Another profiler is attached, no permission, an old driver: whatever it is, events work.
        return EventClock(cuda, f"CUPTI does not work here ({error}): is a profiler attached?")
    return clock
