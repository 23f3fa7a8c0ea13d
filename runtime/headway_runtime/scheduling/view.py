"""What the planner sees of an engine before a step."""

from __future__ import annotations

import enum
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


class Readiness(enum.Enum):
    """Whether the engine admits a waiting request when its turn comes, or passes over it."""

    READY = enum.auto()
    """It is admitted."""
    PENDING = enum.auto()
    """It is passed over, and may be ready at any moment: its grammar is being compiled."""
    BLOCKED = enum.auto()
    """It is passed over until somebody acts: a paused session, a grammar that is none."""


@dataclass(frozen=True)
class WaitingRequest:
    """A request that waits for admission.

    Attributes:
        request_id: the engine's id of it.
        arrival_s: when it arrived, seconds since the epoch.
        traffic_class: the class it belongs to, None when it has no objective.
        readiness: whether the engine would admit it now.
    """

    request_id: str
    arrival_s: float
    traffic_class: TrafficClass | None = None
    readiness: Readiness = Readiness.READY


@dataclass(frozen=True)
class Lane:
    """The requests of one class with a limit that wait behind those that may run.

    Attributes:
        class_name: the class.
        room: how many more of its requests may run; none when it is 0 or less.
        waiting: its waiting requests in order of urgency, read lazily.
        urgencies: the same requests' urgencies, which cost less to read.
    """

    class_name: str
    room: int
    waiting: Sequence[WaitingRequest] = ()
    urgencies: Sequence[Urgency] = ()


@dataclass(frozen=True)
class StepView:
    """One engine just before a step.

    The waiting queue is ``settled``, then the lanes one after the other, then ``unsettled``, then
    ``unseen`` ones. Requests stay settled, or in their lane, from step to step, so that a step
    costs what has newly arrived and not what is waiting.

    Attributes:
        ceilings: limits the engine was started with; nothing goes above them.
        wanted: limits the policy asks for.
        running: requests that are running.
        tokens_per_decode: tokens a decoding request takes in a step: 1, and one more for each
            draft token of speculative decoding.
        settled: urgencies of the waiting requests that were put in order before, read lazily.
        unsettled: waiting requests to be put in order now, in order of arrival.
        lanes: one for each class with a limit; empty when no class has one.
        front: the settled requests themselves, read lazily; needed with lanes only. They may be of
            a class with a limit: let through before, or preempted.
        unseen: waiting requests that are to be put in order in later steps.
    """

    ceilings: Limits
    wanted: Limits
    running: int
    tokens_per_decode: int = 1
    settled: Sequence[Urgency] = ()
    unsettled: Sequence[WaitingRequest] = ()
    lanes: Sequence[Lane] = ()
    front: Sequence[WaitingRequest] = ()
    unseen: int = 0
