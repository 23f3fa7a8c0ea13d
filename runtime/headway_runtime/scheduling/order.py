"""Order of waiting requests: earliest deadline first, then those without one as they came."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from headway_runtime.policy import TrafficClass
from headway_runtime.scheduling.plan import Placement
from headway_runtime.scheduling.view import Urgency, WaitingRequest

_WITH_OBJECTIVE = 0
_WITHOUT_OBJECTIVE = 1


def urgency(arrival_s: float, traffic_class: TrafficClass | None) -> Urgency:
    """Sort key of a waiting request.

    A promised time to first token is the deadline that matters while a request waits; without one
    it is the deadline of the whole request.
    """
    if traffic_class is None:
        return (_WITHOUT_OBJECTIVE, arrival_s)
    if traffic_class.ttft_ms is not None:
        return (_WITH_OBJECTIVE, arrival_s + traffic_class.ttft_ms / 1000)
    if traffic_class.deadline_s is not None:
        return (_WITH_OBJECTIVE, arrival_s + traffic_class.deadline_s)
    return (_WITHOUT_OBJECTIVE, arrival_s)


def urgency_of(request: WaitingRequest) -> Urgency:
    """Sort key of a waiting request."""
    return urgency(request.arrival_s, request.traffic_class)


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
