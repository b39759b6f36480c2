"""Fixtures that several suites share."""

from __future__ import annotations

import pytest

from harness.devices.disassembly import DisassemblerMissing, nvdisasm


@pytest.fixture
def disassembler() -> None:
    """Skip, and say what to install, where machine code cannot be read."""
    try:
        nvdisasm()
    except DisassemblerMissing as missing:
        pytest.skip(str(missing))
