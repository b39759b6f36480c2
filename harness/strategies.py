"""What hypothesis draws: sizes around every edge a launch has, values that are hard to add."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

Array = NDArray[np.float32]
WARP: Final = 32


def boundary_sizes(block: int, largest: int) -> list[int]:
    """Return the sizes where a launch changes shape, and one either side of each."""
    edges = {0, WARP, block, 2 * block, largest}
    edges |= {1 << power for power in range(largest.bit_length())}
    return sorted({e + d for e in edges for d in (-1, 0, 1) if 0 <= e + d <= largest})


def sizes(block: int, largest: int) -> st.SearchStrategy[int]:
    """Draw a size from 0 to `largest`, often at an edge."""
    return st.sampled_from(boundary_sizes(block, largest)) | st.integers(0, largest)


def _cancelling(random: np.random.Generator, n: int) -> Array:
    """Large values whose sum is nearly nothing: all that is left is the rounding."""
    values = random.standard_normal(n, np.float32) * np.float32(1e4)
    return values - values[::-1]


def _wide(random: np.random.Generator, n: int) -> Array:
    """Signs and exponents all over the range that n of them cannot overflow."""
    exponents = random.integers(-126, 96, n)
    return np.ldexp(random.uniform(-1, 1, n), exponents).astype(np.float32)


def _subnormal(random: np.random.Generator, n: int) -> Array:
    """Values below the smallest normal float32; sums of them are exact."""
    mantissa, sign = random.integers(0, 2**23, n), random.integers(0, 2, n)
    return (mantissa | sign << 31).astype(np.uint32).view(np.float32)


def _absorbing(random: np.random.Generator, n: int) -> Array:
    """One value so large that a 1 added to it is lost, but not a 2: the order of adding shows."""
    values = np.ones(n, np.float32)
    values[:1] = 2.0**24
    return values


def _special(random: np.random.Generator, n: int) -> Array:
    """Ordinary values with a few infinities or NaNs among them, in half of the arrays all alike."""
    values = random.standard_normal(n, np.float32)
    places = random.integers(0, n, min(n, 3))
    drawn = random.choice(np.array([np.inf, -np.inf, np.nan], np.float32), len(places))
    values[places] = drawn if random.integers(2) else drawn[:1]
    return values


def _infinite(random: np.random.Generator, n: int) -> Array:
    """Ordinary values with a few infinities of one sign: what makes a NaN of them shows."""
    values = random.standard_normal(n, np.float32)
    values[random.integers(0, n, min(n, 3))] = random.choice([-np.inf, np.inf])
    return values


VALUES: Final[dict[str, Callable[[np.random.Generator, int], Array]]] = {
    "normal": lambda random, n: random.standard_normal(n, np.float32),
    "ones": lambda random, n: np.ones(n, np.float32),
    "cancelling": _cancelling,
    "wide": _wide,
    "subnormal": _subnormal,
    "absorbing": _absorbing,
    "infinite": _infinite,
    "special": _special,
}


@dataclass(frozen=True)
class Floats:
    """An array by its recipe: a million different values print and shrink as three words do."""

    kind: str
    seed: int
    size: int

    def array(self) -> Array:
        """Return the values, float32."""
        return VALUES[self.kind](np.random.default_rng(self.seed), self.size)


def floats(block: int, largest: int) -> st.SearchStrategy[Floats]:
    """Draw an array of any kind with 0 to `largest` elements, often at an edge of a launch."""
    return st.builds(
        Floats, st.sampled_from(sorted(VALUES)), st.integers(0, 2**32 - 1), sizes(block, largest)
    )
