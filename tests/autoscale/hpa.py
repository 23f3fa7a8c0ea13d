"""The HorizontalPodAutoscaler's algorithm for a metric of pods, as in Kubernetes 1.30 and later.

After ``pkg/controller/podautoscaler/replica_calculator.go`` (``calcPlainMetricReplicas``) and
``horizontal.go`` (behaviour), with the defaults of the controller manager and of ``behavior``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

SYNC_SECONDS = 15.0
TOLERANCE = 0.1
STABILIZATION_SECONDS = 300.0
"""``behavior.scaleDown.stabilizationWindowSeconds``."""
UP_PODS, UP_PERCENT, POLICY_SECONDS = 4, 100, 15.0
"""``behavior.scaleUp``: the larger of so many pods and percents in so many seconds."""


def recommended(replicas: int, values: Sequence[float], missing: int, target: float) -> int:
    """Pods that the metric asks for.

    Pods that run and tell nothing yet count as filled to the target where fewer pods are asked for,
    and as idle where more are.

    Args:
        replicas: pods there are to be now.
        values: of the metric, one of each pod that tells it.
        missing: pods that run and do not tell it.
        target: ``averageValue``.
    """
    if not values:
        return replicas
    ratio = sum(values) / len(values) / target
    if not missing:
        return replicas if _is_tolerated(ratio) else math.ceil(ratio * len(values))
    assumed = target if ratio < 1 else 0.0
    counted = len(values) + missing
    filled = (sum(values) + assumed * missing) / counted / target
    if _is_tolerated(filled) or (ratio < 1 < filled) or (filled < 1 < ratio):
        return replicas
    found = math.ceil(filled * counted)
    if (filled < 1 and found > replicas) or (filled > 1 and found < replicas):
        return replicas
    return found


@dataclass(frozen=True)
class Memory:
    """What the controller remembers.

    Attributes:
        recommendations: of the last minutes, each with its time in seconds.
        added: pods that were added lately, each with its time in seconds.
    """

    recommendations: tuple[tuple[float, int], ...] = ()
    added: tuple[tuple[float, int], ...] = ()


def stabilized(
    memory: Memory, now_s: float, replicas: int, found: int, bounds: tuple[int, int]
) -> tuple[int, Memory]:
    """Pods after stabilisation and within the policy, and what is remembered of it."""
    before = memory.recommendations or ((now_s, replicas),)
    recent = tuple(each for each in before if each[0] > now_s - STABILIZATION_SECONDS)
    recommendations = (*recent, (now_s, found))
    wanted = max(replicas, found) if found > replicas else _not_yet_fewer(recommendations, replicas)
    added = tuple(each for each in memory.added if each[0] > now_s - POLICY_SECONDS)
    least, most = bounds
    allowed = min(max(wanted, least), most)
    if allowed > replicas:
        began = replicas - sum(pods for _, pods in added)
        limit = max(began + UP_PODS, math.ceil(began * (1 + UP_PERCENT / 100)))
        allowed = min(allowed, max(limit, replicas))
        added = (*added, (now_s, allowed - replicas))
    return allowed, replace(memory, recommendations=recommendations, added=added)


def _not_yet_fewer(recommendations: Sequence[tuple[float, int]], replicas: int) -> int:
    return min(replicas, max(pods for _, pods in recommendations))


def _is_tolerated(ratio: float) -> bool:
    return abs(1.0 - ratio) <= TOLERANCE
