"""Histograms of measured time over promised time, in buckets of equal ratio.

A ratio of 1 is exactly on target, and is the upper bound of a bucket, so that a quantile never
looks better than the target when it is not. A bucket is 4.4 % wide.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

PER_OCTAVE = 16
_OCTAVES_BELOW = 4
_OCTAVES_ABOVE = 6

_ON_TARGET = _OCTAVES_BELOW * PER_OCTAVE
BUCKETS = (_OCTAVES_BELOW + _OCTAVES_ABOVE) * PER_OCTAVE + 2
"""One for all up to 1/16 of the target, ten octaves, and one for all beyond 64 times the target."""


def bucket_of(ratio: float) -> int:
    """The bucket a ratio falls into; a negative one, from a clock that was set back, the lowest."""
    if ratio <= 2.0**-_OCTAVES_BELOW:
        return 0
    if ratio > 2.0**_OCTAVES_ABOVE:
        return BUCKETS - 1
    return math.ceil(math.log2(ratio) * PER_OCTAVE) + _ON_TARGET


def upper_bound(bucket: int) -> float:
    """Highest ratio of a bucket; of the last one, which has none, the one it begins at."""
    return float(2.0 ** ((min(bucket, BUCKETS - 2) - _ON_TARGET) / PER_OCTAVE))


def quantile(counts: Sequence[int], share: float) -> float | None:
    """Upper bound of the bucket below which ``share`` of what was counted lies; None of nothing."""
    rank = math.ceil(share * sum(counts))
    for bucket, count in enumerate(counts):
        rank -= count
        if count and rank <= 0:
            return upper_bound(bucket)
    return None
