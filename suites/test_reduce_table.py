"""The seminar's closing table: whether its columns are of one measurement."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

import pytest

from harness.baselines import PUBLISHED, read

N: Final = 1 << 26  # elements of the published times
Published = dict[str, dict[str, float]]


@pytest.fixture(scope="module")
def published() -> Published:
    """The seminar's table by rung: seconds, GB/s, speed-up, warp instructions."""
    table = read(PUBLISHED)
    return {
        row["param"]: {"seconds": row["stats"]["median"], **row["extra_info"]}
        for row in table.document["benchmarks"]
    }


def spread(printed: float) -> tuple[float, float]:
    """What a printed figure may have been before it was rounded to its last digit."""
    exponent = Decimal(str(printed)).as_tuple().exponent
    assert isinstance(exponent, int)
    half = 0.5 * 10.0**exponent
    return printed - half, printed + half


def agree(numerator: float, printed: float, quotient: float) -> bool:
    """Whether numerator / printed can have been printed as `quotient`."""
    low, high = spread(printed)
    least, most = spread(quotient)
    return numerator / high <= most and least <= numerator / low


@pytest.mark.claim("reduce.table-consistent", "times, bandwidths and speed-ups of the table agree")
def test_the_table_is_one_measurement_of_64_mi_floats(claim: Any, published: Published) -> None:
    """Time x bandwidth is 4 x 2^26 bytes in every row, and the speed-ups are ratios of times."""
    first, everything = published["reduce_v1"]["seconds"], list(published)
    rates = [r for r, row in published.items() if agree(4e-9 * N, row["seconds"], row["GB/s"])]
    ratios = [r for r, row in published.items() if agree(first, row["seconds"], row["times V1"])]
    table = "the published table"
    claim.counted("rungs whose time x bandwidth is 4 x 2^26 bytes", rates, everything, table)
    claim.counted("rungs whose speed-up is V1's time over theirs", ratios, everything, table)
