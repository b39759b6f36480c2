"""How far a sum in floating point may be from the exact one, whatever it adds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import DTypeLike

ROUNDOFF: Final = 2.0**-24  # of float32: the relative error of one operation


def exact_sum(values: Iterable[float]) -> float:
    """Return the exact sum, rounded once to float64.

    NaN, or infinities of both signs, give NaN; infinities of one sign give that infinity.
    """
    try:
        return math.fsum(values)
    except ValueError:  # infinities of both signs
        return math.nan


def gamma(height: int, dtype: DTypeLike = np.float32) -> float:
    """Return gamma_h = h u / (1 - h u), the relative error of h roundings one after the other.

    Infinite from h = 1 / u on (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed.,
    section 3.1).
    """
    product = height * float(np.finfo(dtype).eps) / 2
    return product / (1 - product) if product < 1 else math.inf


def sum_error(
    terms: int,
    height: int,
    magnitude: float,
    dtype: DTypeLike = np.float32,
    *,
    atomics: int = 0,
) -> float:
    """Return the largest error of a sum of `terms` floats whose magnitudes sum to `magnitude`.

    By a tree of height h it is gamma_h * sum |x_i| (Higham, section 4.2); in any order, however
    many there are, (n - 1) u * sum |x_i| (Jeannerod and Rump, SIAM J. Matrix Anal. Appl. 34, 2013):
    the smaller of the two, as long as no partial sum overflows. A float atomic on global memory
    also flushes subnormal operands and results to zero (PTX ISA, atom).

    Parameters
    ----------
    height
        The most additions that a term goes through.
    dtype
        What is added in.
    atomics
        Additions that are float atomics on global memory.
    """
    kind = np.finfo(dtype)
    in_any_order = max(terms - 1, 0) * float(kind.eps) / 2
    return min(gamma(height, dtype), in_any_order) * magnitude + 2 * atomics * float(kind.tiny)
