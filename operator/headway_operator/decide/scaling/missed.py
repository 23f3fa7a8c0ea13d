"""Objectives that are missed although there should be pods enough."""

from __future__ import annotations

from collections.abc import Sequence

from headway_operator.decide.retune.class_ratios import worst_tpot, worst_ttft
from headway_operator.decide.retune.targets import ClassTargets
from headway_operator.memory.scaling import LoadPoint
from headway_operator.observe.engine_metrics.sample import History, ServiceMetrics

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
    return _ratio(tuple(metrics.pods[uid] for uid in sorted(metrics.pods)), classes) > 1.0


def most_miss(metrics: ServiceMetrics, classes: tuple[ClassTargets, ...]) -> bool:
    """Whether most pods that had requests are over a target, as they are where work is too much.

    Pods share the work. Those that were there before others came work off what waited in them
    during a burst, and may miss for minutes what all together could keep.
    """
    ratios = [_ratio((history,), classes) for history in metrics.pods.values()]
    told = [ratio for ratio in ratios if ratio > 0.0]
    return 2 * sum(ratio > 1.0 for ratio in told) > len(told)


def _ratio(pods: Sequence[History], classes: tuple[ClassTargets, ...]) -> float:
    """What was measured over its target, of the class and target that is worst; 0 of nothing."""
    found = (
        worst_ttft(pods, [each for each in classes if each.ttft_ms is not None]),
        worst_tpot(pods, classes),
    )
    return max((worst.ratio for worst in found if worst is not None), default=0.0)


def corrected(correction: float, engines: float, room: float, replicas: int) -> float:
    """The correction by which so many pods that missed objectives were one too few."""
    too_few = BARELY_MORE * replicas * room / engines if engines > 0 else 1.0
    return min(max(correction, too_few), MOST_CORRECTION)


def faded(correction: float) -> float:
    """The correction a tick later: what made it may be over."""
    return 1.0 + KEPT_A_TICK * (correction - 1.0)


def ticks_missed(before: int, *, holds: bool) -> int:
    """The count after a tick, see :class:`headway_operator.memory.scaling.Scaling`.

    Args:
        before: the count until now.
        holds: objectives are missed by engines that are filled and all there.
    """
    if before < 0 or holds:
        return before + 1
    return 0
