"""Run a command again and again, each time in a new process, and keep its exit codes."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable


def exit_codes(
    command: str, times: int, run: Callable[[list[str]], int] | None = None
) -> list[int]:
    """Return the exit codes of `times` runs of `command`, one after the other; no shell reads it.

    "python" is the one that runs this, whatever the PATH has.

    Raises
    ------
    ValueError
        There is no command.
    """
    words = shlex.split(command)
    if not words:
        raise ValueError('there is no command to repeat: --repeat "python -m harness.gate ..." 5')
    if words[0] == "python":
        words[0] = sys.executable
    return [(run or subprocess.call)(words) for _ in range(times)]
