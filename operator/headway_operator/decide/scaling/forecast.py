"""How much work there will be when a pod that is added now is ready."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, linear_regression

from headway_operator.memory.scaling import LoadPoint

SEEN_SECONDS = 120.0
"""Growth is read off the last so many seconds."""

LEAST_POINTS = 4
LEAST_SPAN_SECONDS = 20.0
"""Fewer points, or closer ones, tell no growth from chance."""

INDEPENDENT_SECONDS = 30.0
"""What pods tell is a mean over some 15 s, so that points closer than about twice that are as good
as one."""

MOST_GROWTH = 2.0
"""Nothing is believed to grow by more than this factor."""


def seen(loads: Sequence[LoadPoint], latest: LoadPoint) -> tuple[LoadPoint, ...]:
    """The points that growth is read off, with the latest."""
    return (*(each for each in loads if latest.at - SEEN_SECONDS < each.at < latest.at), latest)


def forecast(loads: Sequence[LoadPoint], ahead_seconds: float) -> float:
    """Engine-seconds of work a second in so many seconds, never less than now.

    A straight line through the last points, as much as it rises more than by chance: its standard
    error is taken off. Load that falls is not counted on to go on falling, since too few pods cost
    more than too many.

    Args:
        loads: at least one point, oldest first.
        ahead_seconds: how far ahead.
    """
    now = loads[-1].engines
    if len(loads) < LEAST_POINTS or loads[-1].at - loads[0].at < LEAST_SPAN_SECONDS:
        return now
    return min(now + max(0.0, _sure_slope(loads)) * ahead_seconds, MOST_GROWTH * now)


def _sure_slope(loads: Sequence[LoadPoint]) -> float:
    """Slope of the line through the points, less its standard error."""
    at = [each.at - loads[0].at for each in loads]
    engines = [each.engines for each in loads]
    slope, start = linear_regression(at, engines)
    middle = fmean(at)
    width = fmean((each - middle) ** 2 for each in at)
    off = fmean((told - start - slope * each) ** 2 for each, told in zip(at, engines, strict=True))
    independent = max(1.0, at[-1] / INDEPENDENT_SECONDS)
    return slope - sqrt(off / width / independent)
