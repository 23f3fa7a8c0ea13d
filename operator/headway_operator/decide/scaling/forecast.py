"""How much work there will be when a pod that is added now is ready."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import linear_regression

from headway_operator.observe.scaling import LoadPoint

SEEN_SECONDS = 120.0
"""Growth is read off the last so many seconds."""

LEAST_POINTS = 4
LEAST_SPAN_SECONDS = 20.0
"""Fewer points, or closer ones, tell no growth from chance."""

MOST_GROWTH = 2.0
"""Nothing is believed to grow by more than this factor."""


def seen(loads: Sequence[LoadPoint], latest: LoadPoint) -> tuple[LoadPoint, ...]:
    """The points that growth is read off, with the latest."""
    return (*(each for each in loads if latest.at - SEEN_SECONDS < each.at < latest.at), latest)


def forecast(loads: Sequence[LoadPoint], ahead_seconds: float) -> float:
    """Engine-seconds of work a second in so many seconds, never less than now.

    A straight line through the last points: load that falls is not counted on to go on falling,
    since too few pods cost more than too many.

    Args:
        loads: at least one point, oldest first.
        ahead_seconds: how far ahead.
    """
    now = loads[-1].engines
    if len(loads) < LEAST_POINTS or loads[-1].at - loads[0].at < LEAST_SPAN_SECONDS:
        return now
    slope, _ = linear_regression(
        [each.at - loads[0].at for each in loads], [each.engines for each in loads]
    )
    return min(max(now, now + slope * ahead_seconds), MOST_GROWTH * now)
