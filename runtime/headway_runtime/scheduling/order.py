"""Order of waiting work: what can still keep its TTFT by that deadline, then the rest by its own.

The rest is what has no TTFT and what cannot keep it any more. Earliest deadline first among all of
them would be worst exactly when it matters: with more work than time, everybody is served a little
too late.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from math import inf

from headway_runtime.policy import TrafficClass
from headway_runtime.scheduling.plan import Placement
from headway_runtime.scheduling.view import Prefill, Urgency, WaitingRequest

WITH_TTFT = 0
BACKGROUND = 1

MISFIT: Urgency = (BACKGROUND, inf)
"""Of a request that stops all others when it comes to the front."""

LATE_FACTOR = 10
"""A late request is due so many times its TTFT after its arrival, so that it is not forgotten."""

NO_DEADLINE_S = 600.0
"""What has no deadline is due so long after its arrival: it yields to what has one, and not for
ever."""


def urgency(
    arrival_s: float,
    traffic_class: TrafficClass | None,
    *,
    is_late: bool = False,
    due_s: float | None = None,
) -> Urgency:
    """Sort key of a request whose first token has not come; smaller goes earlier.

    ``due_s``, where there is one, takes the place of the deadline of a class without a TTFT.
    """
    if due_s is not None and (traffic_class is None or traffic_class.ttft_ms is None):
        return (BACKGROUND, due_s)
    if traffic_class is None:
        return (BACKGROUND, arrival_s + NO_DEADLINE_S)
    if traffic_class.ttft_ms is not None:
        ttft_s = traffic_class.ttft_ms / 1000
        if is_late:
            return (BACKGROUND, arrival_s + LATE_FACTOR * ttft_s)
        return (WITH_TTFT, arrival_s + ttft_s)
    deadline_s = traffic_class.deadline_s
    return (BACKGROUND, arrival_s + (NO_DEADLINE_S if deadline_s is None else deadline_s))


def is_background(promised: TrafficClass | None, *, is_late: bool) -> bool:
    """Whether a request has no TTFT to keep."""
    return is_late or promised is None or promised.ttft_ms is None


def urgency_of(request: WaitingRequest | Prefill) -> Urgency:
    """Sort key of a request."""
    if isinstance(request, WaitingRequest) and request.is_misfit:
        return MISFIT
    return urgency(
        request.arrival_s, request.traffic_class, is_late=request.is_late, due_s=request.due_s
    )


def place(settled: Sequence[Urgency], unsettled: Sequence[WaitingRequest]) -> tuple[Placement, ...]:
    """Positions for the unsettled requests among the settled ones.

    Equal urgencies keep their order, settled ones first. Costs O(u log u + u log s) for u unsettled
    and s settled requests. A settled sequence that is not quite in order (an engine moves a request
    that it cannot run yet to the front) gives an approximate but always valid position.

    Returns:
        One placement for each unsettled request, earliest position first.
    """
    ranked = sorted(
        ((urgency_of(each), each.request_id) for each in unsettled), key=lambda pair: pair[0]
    )
    return tuple(
        Placement(request_id, bisect_right(settled, key) + placed_before)
        for placed_before, (key, request_id) in enumerate(ranked)
    )


def overtakes(
    placements: Sequence[Placement], settled_count: int, unsettled: Sequence[WaitingRequest]
) -> bool:
    """Whether the placements put any request in front of one that stood before it."""
    return any(
        placement.position != settled_count + index
        or placement.request_id != unsettled[index].request_id
        for index, placement in enumerate(placements)
    )
