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


@dataclass(frozen=True)
class Placement:
    """Where a waiting request goes.

    Attributes:
        request_id: the request.
        position: its index in the waiting queue once all placements before this one were made.
    """

    request_id: str
    position: int


@dataclass(frozen=True)
class StepPlan:
    """Limits and order for one step. What the engine then did is a :class:`StepOutcome`.

    Attributes:
        limits: limits for this step alone.
        placements: where each unsettled request of the view goes, earliest position first; empty
            when nothing has to move.
        reasons: why, each at most once.
    """

    limits: Limits
    placements: tuple[Placement, ...] = ()
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True)
class StepOutcome:
    """What a step did, to be held against its plan.

    Attributes:
        scheduled_tokens: tokens the engine put into the step.
        preemptions: running requests that lost their KV blocks.
    """

    scheduled_tokens: int
    preemptions: int
