"""Objectives that are missed although there should be pods enough."""

from __future__ import annotations

from collections.abc import Sequence

from headway_operator.decide.retune.class_ratios import worst_tpot, worst_ttft
from headway_operator.decide.retune.targets import ClassTargets
from headway_operator.observe.engine_metrics.sample import ServiceMetrics
from headway_operator.observe.scaling import LoadPoint

TICKS_TO_ADD = 4
"""Objectives missed in so many ticks in a row get another pod."""

TICKS_TO_SETTLE = 12
"""For so many ticks the last pod that was added for it is given time: it takes load over, and what
pods tell is of requests that ended in the last half minute."""

BARELY_MORE = 1.01
MOST_CORRECTION = 3.0
KEPT_A_TICK = 0.999
"""Half of a correction is forgotten within an hour."""

MEASURED_SECONDS = 30.0
"""What pods tell of latencies is of so many last seconds: it is held against the most work there
was in them, so that what waited for a burst does not speak against the load after it."""

LEAST_FILLED = 0.5
"""Engines that are filled less than this share of their target miss objectives for another reason
than load, and more of them would miss the same."""


def measured_load(loads: Sequence[LoadPoint]) -> float:
    """The most work that was asked for while the latencies were measured that pods tell now."""
    return max(each.engines for each in loads if each.at > loads[-1].at - MEASURED_SECONDS)


def misses(metrics: ServiceMetrics, classes: tuple[ClassTargets, ...]) -> bool:
    """Whether a class is over one of its targets, at the 95th percentile."""
    pods = tuple(metrics.pods[uid] for uid in sorted(metrics.pods))
    found = (
        worst_ttft(pods, [each for each in classes if each.ttft_ms is not None]),
        worst_tpot(pods, classes),
    )
    return any(worst is not None and worst.ratio > 1.0 for worst in found)


def corrected(correction: float, engines: float, room: float, replicas: int) -> float:
    """The correction by which so many pods that missed objectives were one too few."""
    too_few = BARELY_MORE * replicas * room / engines if engines > 0 else 1.0
    return min(max(correction, too_few), MOST_CORRECTION)


def faded(correction: float) -> float:
    """The correction a tick later: what made it may be over."""
    return 1.0 + KEPT_A_TICK * (correction - 1.0)


def ticks_missed(before: int, *, holds: bool) -> int:
    """The count after a tick, see :class:`headway_operator.observe.scaling.Scaling`.

    Args:
        before: the count until now.
        holds: objectives are missed by engines that are filled and all there.
    """
    if before < 0 or holds:
        return before + 1
    return 0
