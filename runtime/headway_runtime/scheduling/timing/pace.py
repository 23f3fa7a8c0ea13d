"""How fast a request's tokens should come."""

from __future__ import annotations

from collections.abc import Iterable

from headway_runtime.policy import TrafficClass

TPOT_MARGIN = 0.02
"""Tokens are aimed at so much faster than promised: all the time there is gets spent, so that
without a margin every error of a prediction is a miss."""

LATE_TPOT_FACTOR = 2
"""A request that missed its TTFT has missed its objectives: its tokens may come so much later,
which leaves time to those that have not."""


def aimed_tpot_s(traffic_class: TrafficClass | None, *, is_late: bool) -> float | None:
    """The time between tokens to aim at, in seconds; None without a target."""
    if traffic_class is None or traffic_class.tpot_ms is None:
        return None
    factor = LATE_TPOT_FACTOR if is_late else 1
    return (1 - TPOT_MARGIN) * factor * traffic_class.tpot_ms / 1000


def has_pace(traffic_class: TrafficClass | None) -> bool:
    """Whether its requests were promised when tokens come, be it the first or the next ones."""
    return traffic_class is not None and not (
        traffic_class.ttft_ms is None and traffic_class.tpot_ms is None
    )


def tightest_ttft_s(classes: Iterable[TrafficClass]) -> float | None:
    """The least TTFT that is promised, in seconds; None if none is."""
    promised = [each.ttft_ms for each in classes if each.ttft_ms is not None]
    return min(promised) / 1000 if promised else None


def tightest_tpot_s(classes: Iterable[TrafficClass]) -> float | None:
    """The least time between tokens to aim at, in seconds; None if none is promised."""
    aimed = [aimed_tpot_s(each, is_late=False) for each in classes]
    return min([each for each in aimed if each is not None], default=None)
