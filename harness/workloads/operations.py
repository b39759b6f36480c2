"""The common kernels of kernels/roofline.cu in float64, and how far off float32 may be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from harness.models.accuracy import ROUNDOFF, gamma

Exact = NDArray[np.float64]

SECOND_ORDER: Final = 1.001  # what products of errors add to their sum, at the most
TINY: Final = 1e-37  # what the exponential of a very negative number may be off by
# Relative error of the kernel's exponential of a float32 from -87 to 0. Its polynomial is off by
# 1e-7 at most where |f| <= ln(2) / 2. Of its steps' roundings the last counts in full, the one
# before it |1 - e^-f| < 0.42 times, those before that less than 0.1 together; that of f itself
# |f| < 0.35 times.
EXPONENTIAL: Final = 1e-7 + 2 * ROUNDOFF
# Of the chain v -> a v + b: it moves v slowly towards b / (1 - a) = 1/2 and never far.
A: Final = 1 - 2.0**-12
B: Final = 2.0**-13
EPSILON: Final = 1e-5


@dataclass(frozen=True)
class Operation:
    """One of the common kernels, on rows of floats.

    Attributes
    ----------
    flop, bytes
        Of an element, at the least: each operand read once from memory, each result written once;
        what all rows share, and what one row shares, is not counted.
    inputs
        The shape of each input: "rows" a value an element, "row" one row for all.
    scalars
        The kernel's last arguments.
    result
        What it computes, in float64, of inputs shaped (rows, columns) and (columns,).
    allowed
        How far off float32 may be: of the additions a sum of a row goes through, the result, and
        the same inputs.
    reduces
        The result is one value a row.
    """

    flop: int
    bytes: int
    inputs: tuple[str, ...]
    result: Callable[..., Exact]
    allowed: Callable[..., Exact]
    scalars: tuple[float, ...] = ()
    reduces: bool = False


def _softmax(x: Exact) -> Exact:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    quotient: Exact = powers / powers.sum(axis=-1, keepdims=True)
    return quotient


def _normalised(x: Exact) -> tuple[Exact, Exact]:
    """Return the rows with mean 0 and variance 1, and what they were divided by."""
    centred = x - x.mean(axis=-1, keepdims=True)
    deviation = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + EPSILON)
    return centred / deviation, deviation


def _softmax_allowed(height: int, y: Exact, x: Exact) -> Exact:
    # Rounding t = x - max by t u moves e^t by the factor 1 + t u. The sum of all e^t is off by the
    # mean of their errors, weighted by e^t, and by its additions; then a division and a product.
    t = x.max(axis=-1, keepdims=True) - x
    mean = (t * y).sum(axis=-1, keepdims=True)
    relative = 2 * EXPONENTIAL + (t + mean + height + 2) * ROUNDOFF
    allowed: Exact = SECOND_ORDER * relative * y + TINY
    return allowed


def _layer_norm_allowed(height: int, y: Exact, x: Exact, gamma: Exact, beta: Exact) -> Exact:
    # An error of the mean, at most that of a sum of the row, moves every element by as much. The
    # squares' sum counts half, since its root is taken; five more roundings stand around it.
    z, deviation = _normalised(x)
    moved = 1 + np.abs(x).max(axis=-1, keepdims=True) / deviation
    roundings = SECOND_ORDER * (height + 5) * ROUNDOFF
    allowed: Exact = roundings * ((1 + np.abs(z)) * np.abs(gamma) * moved + np.abs(beta))
    return allowed


def _sum_allowed(height: int, magnitude: Exact) -> Exact:
    allowed: Exact = gamma(height) * magnitude  # a multiply-add rounds once
    return allowed


OPERATIONS: Final = {
    "relu": Operation(
        *(3, 8, ("rows",)),
        lambda x: np.maximum(A * x + B, 0),
        lambda height, y, x: ROUNDOFF * (np.abs(x) + 1),
        scalars=(A, B),
    ),
    "dot": Operation(
        *(2, 8, ("rows", "rows")),
        lambda x, y: (x * y).sum(axis=-1),
        lambda height, s, x, y: _sum_allowed(height, np.abs(x * y).sum(axis=-1)),
        reduces=True,
    ),
    "gemv": Operation(
        *(2, 4, ("rows", "row")),
        lambda a, x: a @ x,
        lambda height, y, a, x: _sum_allowed(height, np.abs(a) @ np.abs(x)),
        reduces=True,
    ),
    "softmax": Operation(
        *(5, 8, ("rows",)),
        _softmax,
        _softmax_allowed,
    ),
    "layer_norm": Operation(
        *(7, 8, ("rows", "row", "row")),
        lambda x, gamma, beta: _normalised(x)[0] * gamma + beta,
        _layer_norm_allowed,
        scalars=(EPSILON,),
    ),
}
