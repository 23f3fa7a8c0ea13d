"""What the planner decided for one step, and why."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from headway_runtime.scheduling.view import Limits


class Reason(str, enum.Enum):
    """Why a plan differs from what the engine would do by itself."""

    BUDGET_FROM_POLICY = "BudgetFromPolicy"
    """The policy's token budget is below the ceiling."""
    BUDGET_COVERS_RUNNING = "BudgetCoversRunning"
    """The budget was raised above the policy's: each running request needs its next token, and an
    engine that runs none must be able to admit one."""
    BATCH_FROM_POLICY = "BatchFromPolicy"
    """The policy's batch size is below the ceiling."""
    BATCH_FITS_BUDGET = "BatchFitsBudget"
    """The batch size was lowered: a larger batch could not decode within the budget."""
    DEADLINE_FIRST = "DeadlineFirst"
    """A request was put in front of one that arrived earlier."""
    CLASS_LIMIT = "ClassLimit"
    """Requests are held back: as many of their class run as may."""


@dataclass(frozen=True)
class Placement:
    """Where a waiting request goes.

    Attributes:
        request_id: the request.
        position: its index, among the settled requests or in its lane, once all placements before
            this one were made.
        lane: number of the lane, None for the settled requests.
    """

    request_id: str
    position: int
    lane: int | None = None


@dataclass(frozen=True)
class Stay:
    """The next request at the front stays where it is."""


@dataclass(frozen=True)
class LetIn:
    """The first request of a lane goes in front of the next one at the front.

    Attributes:
        lane: number of the lane.
    """

    lane: int


@dataclass(frozen=True)
class HoldBack:
    """The next request at the front goes to its lane.

    Attributes:
        lane: number of the lane.
        position: its index in what is then in the lane.
    """

    lane: int
    position: int


Turn = Stay | LetIn | HoldBack
"""A step of the walk along the front of the queue; the next turn is about what follows."""


@dataclass(frozen=True)
class StepPlan:
    """Limits and order for one step. What the engine then did is a :class:`StepOutcome`.

    Attributes:
        limits: limits for this step alone.
        placements: where each unsettled request of the view goes, settled ones first, then lane
            by lane, earliest position first; empty when nothing has to move.
        reasons: why, each at most once.
        turns: what to do at the front of the queue once the placements are made, so that it begins
            with requests that may run.
    """

    limits: Limits
    placements: tuple[Placement, ...] = ()
    reasons: tuple[Reason, ...] = ()
    turns: tuple[Turn, ...] = ()


@dataclass(frozen=True)
class StepOutcome:
    """What a step did, to be held against its plan.

    Attributes:
        scheduled_tokens: tokens the engine put into the step.
        preemptions: running requests that lost their KV blocks.
    """

    scheduled_tokens: int
    preemptions: int
