"""What the planner decided for one step, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headway_runtime.scheduling.reason import Reason
from headway_runtime.scheduling.view import Carried, Limits


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
        prompt_tokens: that the token budget has room for; None where nothing was decided about
            prompts.
        admits: waiting requests were given prompt tokens.
        first: id of a waiting request that goes in front of all others in this step.
        in_turn: ids of waiting requests without a TTFT that go before all others of their kind, in
            this order.
        late: ids of waiting requests that cannot keep their TTFT any more: they give way to those
            that can.
        late_prefills: ids of running requests whose prompts are not computed, likewise.
        background_last: running requests that were promised neither TTFT nor TPOT go behind all
            others in the batch, from whose end an engine preempts.
        carried: for the next step; None leaves it as it is.
    """

    limits: Limits
    placements: tuple[Placement, ...] = ()
    reasons: tuple[Reason, ...] = ()
    turns: tuple[Turn, ...] = ()
    chunks: Mapping[str, int] = field(default_factory=dict)
    prompt_tokens: int | None = None
    admits: bool = False
    first: str | None = None
    in_turn: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    late_prefills: tuple[str, ...] = ()
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
