"""Distributions of prompt and output lengths, in tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist, fmean

_NORMAL = NormalDist()
_MEAN_POINTS = 2_000


@dataclass(frozen=True)
class Lengths:
    """Lengths in tokens, between two bounds.

    Attributes:
        low: shortest.
        high: longest.
    """

    low: int
    high: int

    def at(self, quantile: float) -> int:
        """The length below which this share of lengths lies; ``quantile`` is within (0, 1)."""
        return self.low + round((self.high - self.low) * quantile)

    def mean(self) -> float:
        """Mean length, from evenly spaced quantiles."""
        return fmean(self.at((i + 0.5) / _MEAN_POINTS) for i in range(_MEAN_POINTS))


@dataclass(frozen=True)
class Lognormal(Lengths):
    """Lognormal lengths, cut at the bounds.

    Attributes:
        median: median length.
        sigma: standard deviation of the logarithm.
    """

    median: float
    sigma: float

    def at(self, quantile: float) -> int:
        """See :meth:`Lengths.at`."""
        length = self.median * math.exp(self.sigma * _NORMAL.inv_cdf(quantile))
        return min(self.high, max(self.low, round(length)))


def fixed(tokens: int) -> Lengths:
    """All of one length."""
    return Lengths(tokens, tokens)
