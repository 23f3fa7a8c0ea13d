"""What the planner sees of an engine before a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headway_runtime.policy import TrafficClass

Urgency = tuple[int, float]
"""Sort key of a waiting request; smaller runs earlier. See :func:`order.urgency`."""


@dataclass(frozen=True)
class Limits:
    """How much one step may take on.

    Attributes:
        token_budget: most tokens the step processes.
        max_batch_size: most requests running at once.
    """

    token_budget: int
    max_batch_size: int


@dataclass(frozen=True)
class WaitingRequest:
    """A request that waits for admission.

    Attributes:
        request_id: the engine's id of it.
        arrival_s: when it arrived, seconds since the epoch.
        traffic_class: the class it belongs to, None when it has no objective.
    """

    request_id: str
    arrival_s: float
    traffic_class: TrafficClass | None = None


@dataclass(frozen=True)
class StepView:
    """One engine just before a step.

    The waiting queue is ``settled`` followed by ``unsettled``: requests stay settled from step to
    step, so that a step costs what has newly arrived and not what is waiting.

    Attributes:
        ceilings: limits the engine was started with; nothing goes above them.
        wanted: limits the policy asks for.
        running: requests that are running.
        tokens_per_decode: tokens a decoding request takes in a step: 1, and one more for each
            draft token of speculative decoding.
        settled: urgencies of the waiting requests that were put in order before, read lazily.
        unsettled: waiting requests to be put in order now, in order of arrival.
    """

    ceilings: Limits
    wanted: Limits
    running: int
    tokens_per_decode: int = 1
    settled: Sequence[Urgency] = ()
    unsettled: Sequence[WaitingRequest] = ()
