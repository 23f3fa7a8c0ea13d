"""Quantiles of Prometheus histograms."""

from __future__ import annotations

import re
from collections.abc import Mapping

_LIMIT = re.compile(r"\ble=([^,}]+)")


def buckets_of(metrics: Mapping[str, float], name: str, label: str) -> dict[float, float]:
    """A histogram's counts by upper limit, from samples named ``name{a=b,c=d}``.

    Args:
        metrics: all samples.
        name: of the histogram.
        label: such as ``outcome=done``; only series with it are taken.
    """
    return {
        float(found[1]): value
        for key, value in metrics.items()
        if key.startswith(f"{name}_bucket{{") and label in key and (found := _LIMIT.search(key))
    }


def since(now: Mapping[float, float], before: Mapping[float, float]) -> dict[float, float]:
    """What was counted since an earlier reading."""
    return {limit: count - before.get(limit, 0.0) for limit, count in now.items()}


def quantile(buckets: Mapping[float, float], share: float) -> float | None:
    """As Prometheus's ``histogram_quantile``: within a bucket, counts are taken as spread evenly.

    Args:
        buckets: how many observations were at or below each upper limit.
        share: 0..1.

    Returns:
        None without observations. One beyond the last finite limit is given as that limit.
    """
    limits = sorted(buckets)
    if not limits or buckets[limits[-1]] == 0:
        return None
    rank, below, floor = share * buckets[limits[-1]], 0.0, 0.0
    for limit in limits:
        if buckets[limit] >= rank and buckets[limit] > below:
            if limit == float("inf"):
                return floor
            return floor + (limit - floor) * (rank - below) / (buckets[limit] - below)
        below, floor = buckets[limit], limit
    return floor
