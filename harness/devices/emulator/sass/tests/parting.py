"""What an H200 counted of one-warp launches that tell who goes first when lanes part.

Whether a BSYNC is issued again depends on it. NVRTC 13.0.88 made the code, Nsight Compute read
smsp__inst_executed.sum. The clocks of order_of_sides agree: the side that does not jump ran from
cycle 49 to 1341, the other one, as large, from 1447 to 2731.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from harness.devices.emulator.sass.tests.recorded import measured, record
from harness.draws import PARTING

HERE: Final = str(Path(__file__).with_name("parting"))

# Source, kernel, threads, scalars, warp instructions.
COUNTS: Final[tuple[tuple[str, str, int, tuple[int, ...], int], ...]] = (
    (PARTING, "early_return", 12, (), 50),
    (PARTING, "early_return", 21, (), 58),
    (PARTING, "early_return", 32, (), 74),
    (PARTING, "break_continue", 16, (0x14,), 295),
    (HERE, "leave_before", 32, (), 145),
    (HERE, "leave_swapped", 32, (), 145),
    (HERE, "leave_outside", 32, (), 103),
    (HERE, "leave_twice", 32, (), 151),
    (HERE, "leave_by_trips", 32, (0x04,), 93),
    (HERE, "leave_by_trips", 32, (0x15,), 101),
    (HERE, "leave_by_trips", 32, (0x40,), 91),
    (HERE, "leave_by_trips", 32, (0x55,), 103),
    (HERE, "leave_by_trips", 32, (0x2A,), 101),
    (HERE, "order_of_loop", 32, (0x55,), 151),
    (HERE, "order_of_loop", 32, (0x2A,), 146),
    (HERE, "order_of_sides", 32, (), 437),
)
# The SHA-256 of the machine code that ran.
CODES: Final = {
    "early_return": "f4f3f5dcfd807029220881de9fb9571eafdf80dd559bc33a021810f6a107fc48",
    "break_continue": "4ef99521827f15f2997d23ef4ef3934524168323e0358799b9a049e8a4e04956",
    "leave_before": "86c829d8f74a662da5f33bd27f13241319f5b2cd087cafe9950729fb46d735bc",
    "leave_swapped": "2d28a2708bf1b99f254e0ff9a64bd18767ed70d7179d452f4349205c2f1180ee",
    "leave_outside": "e5286af7598403e11e0a550e8ed43b70a2ae3092e0684957acdd825bb87699c8",
    "leave_twice": "01e36a565283bd5a7bfb7079952e28a969be9d8e4a7bdcff9b1957f055c182ef",
    "leave_by_trips": "070c5fbe873d98362a7d8c2446904f948a64c59fd416da2e3fe49aadca66a697",
    "order_of_loop": "90b073cf4ca3d97a438b889b0b708d6cc681ac6d6222a125be36f8edf3ddc78e",
    "order_of_sides": "e51ccb9bace80475327de8ecf8a2ae177080dac7d76e28761652231d16099dc0",
}
RECORD: Final = record(
    measured(source, CODES, name, 1, threads, scalars, executed)
    for source, name, threads, scalars, executed in COUNTS
)
