"""How urgent waiting work is: who can keep a TTFT by that deadline, the rest by its own."""

from __future__ import annotations

from math import inf

from headway_runtime.policy import TrafficClass

WITH_TTFT = 0
BACKGROUND = 1

MISFIT = (BACKGROUND, inf)
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
) -> tuple[int, float]:
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


def ttft_deadline_s(
    arrival_s: float, traffic_class: TrafficClass | None, *, is_late: bool
) -> float | None:
    """When a request's first token was promised; None if it has no TTFT to keep."""
    if traffic_class is None or traffic_class.ttft_ms is None or is_late:
        return None
    return arrival_s + traffic_class.ttft_ms / 1000
