"""Print the machine instructions of the reduce ladder; needs no GPU.

python -m harness.devices.emulator.sass
"""

from __future__ import annotations

import argparse

from harness.devices.emulator.sass.ladder import BLOCK, PERSISTENT, RUNGS, ladder, table


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m harness.devices.emulator.sass",
        description="Print the machine instructions of the reduce ladder; needs no GPU.",
    )
    parser.add_argument("--n", type=int, default=1 << 24, help="floats to add (default 2^24)")
    parser.add_argument("--grid", type=int, default=PERSISTENT, help="blocks of V5 to V7")
    options = parser.parse_args()
    compiler = ".".join(map(str, ladder(RUNGS[0], 1, 1, "sm_80").compiler))
    print(f"warp instructions, n = {options.n}, block {BLOCK}, NVRTC {compiler}")
    print(table(options.n, options.grid))


if __name__ == "__main__":
    main()
