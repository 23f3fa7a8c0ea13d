"""Order of waiting work: what can still keep its TTFT by that deadline, then the rest by its own.

The rest is what has no TTFT and what cannot keep it any more. Earliest deadline first among all of
them would be worst exactly when it matters: with more work than time, everybody is served a little
too late.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from headway_runtime.scheduling.plan import Placement
from headway_runtime.scheduling.view import Urgency, WaitingRequest


def place(settled: Sequence[Urgency], unsettled: Sequence[WaitingRequest]) -> tuple[Placement, ...]:
    """Positions for the unsettled requests among the settled ones.

    Equal urgencies keep their order, settled ones first. Costs O(u log u + u log s) for u unsettled
    and s settled requests. A settled sequence that is not quite in order (an engine moves a request
    that it cannot run yet to the front) gives an approximate but always valid position.

    Returns:
        One placement for each unsettled request, earliest position first.
    """
    ranked = sorted(
        ((each.urgency, each.request_id) for each in unsettled), key=lambda pair: pair[0]
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
