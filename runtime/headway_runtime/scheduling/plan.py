"""What the planner decided for one step, and why."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from headway_runtime.scheduling.view import Carried, Limits


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
    TOKENS_DUE = "TokensDue"
    """The budget was lowered: with more prefill in the step, a token would come late."""
    GRAPH_SIZE = "GraphSize"
    """The budget was lowered to the largest CUDA graph: a larger step takes so long to launch that
    it would be late, or get less done in its time."""
    FILLS_LAUNCH = "FillsLaunch"
    """The budget was raised: so many tokens are computed while the step is launched."""
    PREFILL_FLOOR = "PrefillFloor"
    """The budget was raised above what tokens that are due leave: prompts must go on."""
    DECODE_ONLY = "DecodeOnly"
    """Nothing but decodes: what tokens that are due leave is too little for a prompt, and prompts
    have time."""
    BACKGROUND_SHARE = "BackgroundShare"
    """A request without a TTFT goes first: it has waited for its share."""
    URGENT_PREFILL_FIRST = "UrgentPrefillFirst"
    """A running prompt was held back for a more urgent one."""
    RESERVED = "Reserved"
    """Slots or KV blocks are kept free for requests with a TTFT."""
    BACKGROUND_LAST = "BackgroundLast"
    """KV blocks run out: running requests without TTFT and TPOT lose theirs first."""
    CLASS_LIMIT = "ClassLimit"
    """Requests are held back: as many of their class run as may."""
    TENANTS_IN_TURN = "TenantsInTurn"
    """Requests of several tenants wait: those without a TTFT go by turns."""


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
        chunks: most tokens of a running request whose prompt is being computed, by request id; 0
            leaves it out of the step. Those that are not in it get what the budget leaves them.
        admits: waiting requests were given prompt tokens.
        first: id of a waiting request that goes in front of all others in this step.
        in_turn: ids of waiting requests without a TTFT that go before all others of their kind, in
            this order.
        late: ids of waiting requests that cannot keep their TTFT any more: they give way to those
            that can.
        background_last: running requests that were promised neither TTFT nor TPOT go behind all
            others in the batch, from whose end an engine preempts.
        carried: for the next step; None leaves it as it is.
    """

    limits: Limits
    placements: tuple[Placement, ...] = ()
    reasons: tuple[Reason, ...] = ()
    turns: tuple[Turn, ...] = ()
    chunks: Mapping[str, int] = field(default_factory=dict)
    admits: bool = False
    first: str | None = None
    in_turn: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    background_last: bool = False
    carried: Carried | None = None


@dataclass(frozen=True)
class StepOutcome:
    """What a step did, to be held against its plan.

    Attributes:
        scheduled_tokens: tokens the engine put into the step.
        preemptions: running requests that lost their KV blocks.
    """

    scheduled_tokens: int
    preemptions: int
