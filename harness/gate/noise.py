"""How far runs of the same code lie apart: few runs of one benchmark say little, all together more.

Variances here are those of the logarithms of seconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median, variance
from typing import Any, Final

import numpy as np

MANY: Final = 30  # benchmarks, from which on they say what is usual
UNSEEN: Final = 5e-4  # a spread so small allows less than the least limit, whatever it is


@dataclass(frozen=True)
class Noise:
    """A variance between runs, as good as one estimated with so many degrees of freedom.

    Without any, nothing is known.
    """

    variance: float = 0.0
    freedom: float = 0.0

    def and_of(self, runs: Sequence[float]) -> Noise:
        """Return what is known with the seconds of some runs as well: the mean, by freedom."""
        more = len(runs) - 1
        total = self.freedom + more
        weighted = self.freedom * self.variance + more * _variance(runs)
        return Noise(weighted / total, total)


UNKNOWN: Final = Noise()


def usual(benchmarks: Iterable[Sequence[float]]) -> Noise:
    """Return what the runs of all benchmarks say of the noise of any, before its own are seen.

    Where variances are scattered as an inverse chi-square, estimates of them follow a scaled F
    distribution, and the noise of one benchmark is best known by the mean of `Noise.and_of`
    (Smyth, Statistical Applications in Genetics and Molecular Biology 3, 2004, article 3). Both
    parameters are those of the greatest likelihood; of a spread below UNSEEN only that counts. The
    freedom is never more than all runs have together.
    """
    from scipy.optimize import minimize  # takes a second to import

    groups = [
        runs for runs in benchmarks if len(runs) > 1 and 0 < min(runs) <= max(runs) < math.inf
    ]
    if len(groups) < MANY:
        return UNKNOWN
    found = np.maximum([_variance(runs) for runs in groups], UNSEEN**2)
    freedom = np.array([len(runs) - 1 for runs in groups])
    bounds = [tuple(np.log((UNSEEN**2, found.max()))), tuple(np.log((0.1, freedom.sum())))]
    start = math.log(median(found)), 0.0
    fitted = minimize(_unlikely, start, (found, freedom), "Nelder-Mead", bounds=bounds)
    return Noise(*map(float, np.exp(fitted.x)))


def _unlikely(logarithms: Any, found: Any, freedom: Any) -> float:
    """Return the negative logarithm of the likelihood of some variances."""
    from scipy.stats import f

    scale, prior = np.exp(logarithms)
    density = f.logpdf(found / scale, freedom, prior) - math.log(scale)
    below = f.logcdf(found / scale, freedom, prior)
    return -float(np.where(found > UNSEEN**2, density, below).sum())


def _variance(runs: Sequence[float]) -> float:
    return variance(map(math.log, runs))
