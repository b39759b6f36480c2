"""Print the machine instructions of the reduce ladder; needs no GPU.

python -m harness.devices.emulator.sass
"""

from __future__ import annotations

import argparse
import sys

from harness.devices.disassembly import DisassemblerMissing
from harness.workloads.ladder import BLOCK, LADDER, PERSISTENT, ladder, table
from kernels import CompilerMissing


def main(arguments: list[str] | None = None) -> int:
    """Print the table; return 2 without the compiler or the disassembler."""
    parser = argparse.ArgumentParser(
        prog="python -m harness.devices.emulator.sass",
        description="Print the machine instructions of the reduce ladder; needs no GPU.",
    )
    parser.add_argument("--n", type=int, default=1 << 24, help="floats to add (default 2^24)")
    parser.add_argument("--grid", type=int, default=PERSISTENT, help="blocks of V5 to V7")
    options = parser.parse_args(arguments)
    try:
        compiler = ".".join(map(str, ladder(LADDER[0], 1, 1, "sm_80").compiler))
        counts = table(options.n, options.grid)
    except (CompilerMissing, DisassemblerMissing) as why:
        print(why, file=sys.stderr)
        return 2
    print(f"warp instructions, n = {options.n}, block {BLOCK}, NVRTC {compiler}")
    print(counts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
