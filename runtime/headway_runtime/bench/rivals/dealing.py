"""What rival planners share: the prompts there are, what of them fits into a time, who gets it."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from headway_runtime.scheduling.lazy import Remembered, merged
from headway_runtime.scheduling.limits import decide_limits
from headway_runtime.scheduling.order import overtakes
from headway_runtime.scheduling.plan import Placement, StepPlan
from headway_runtime.scheduling.planner import PlanOverdueError
from headway_runtime.scheduling.reason import Reason
from headway_runtime.scheduling.timing.prefill_cost import chunk_seconds, chunk_tokens
from headway_runtime.scheduling.view import Limits, Prefill, StepView, WaitingRequest, Work

LEAST_STEP_TOKENS = 128
"""Tokens of a step, decodes included, below which no target lowers it: the smallest that Niyama's
authors allow. Without it a target that cannot be met would stop all prompts."""

LOOKS = 64
"""Most waiting requests that a step looks at, as many as Headway's planner."""


@dataclass(frozen=True)
class Prompt:
    """A request with prompt tokens to compute.

    Attributes:
        request: the request.
        computed_tokens: tokens before its chunk.
        remaining_tokens: tokens to compute.
        is_running: it is in the batch, so that its chunk can be limited.
    """

    request: Prefill | WaitingRequest
    computed_tokens: int
    remaining_tokens: int
    is_running: bool


@dataclass(frozen=True)
class Room:
    """What a step has room for whatever it takes.

    Attributes:
        limits: its limits.
        decode_tokens: of them for requests that decode.
        prefill_tokens: of them left for prompts.
        slots: requests that may be admitted.
        reasons: why the limits are not the engine's ceilings.
    """

    limits: Limits
    decode_tokens: int
    prefill_tokens: int
    slots: int
    reasons: tuple[Reason, ...]


def room_of(view: StepView) -> Room:
    """The room of the next step.

    Raises:
        ValueError: classes have limits, which no rival knows of; their requests would wait for
            ever.
    """
    if view.lanes:
        raise ValueError("rival planners know no limits of classes")
    limits, reasons = decide_limits(
        view.ceilings, view.wanted, view.running, view.tokens_per_decode
    )
    decode_tokens = view.work.decodes * view.tokens_per_decode if view.work else 0
    return Room(
        limits,
        decode_tokens,
        prefill_tokens=max(0, limits.token_budget - decode_tokens),
        slots=max(0, limits.max_batch_size - view.running),
        reasons=reasons,
    )


def queue_of(view: StepView, placements: Sequence[Placement]) -> Sequence[WaitingRequest]:
    """What waits once the newcomers are in their places, read lazily; none leaves them behind."""
    newcomers = {each.request_id: each for each in view.unsettled}
    if placements:
        arrived = [newcomers[each.request_id] for each in placements]
        positions = [each.position for each in placements]
    else:
        arrived = list(view.unsettled)
        positions = [len(view.front) + index for index in range(len(arrived))]
    return Remembered(merged(view.front, arrived, positions))


def running_prompts(work: Work) -> list[Prompt]:
    """Prompts of running requests, in order of admission."""
    return [
        Prompt(each, each.computed_tokens, each.remaining_tokens, is_running=True)
        for each in work.prefills
    ]


def waiting_prompts(
    queue: Iterable[WaitingRequest], room: Room, late: Container[str] = ()
) -> list[Prompt]:
    """Prompts from the front of the queue, as many as a step can use at all.

    Args:
        queue: what waits, in order.
        room: of the step.
        late: ids of requests that are left out, since they go to the end of the queue.
    """
    found: list[Prompt] = []
    tokens = 0
    for each in islice(queue, LOOKS):
        if tokens >= room.prefill_tokens or len(found) >= room.slots:
            break
        if each.request_id in late or each.prefill_tokens <= 0:
            continue
        found.append(Prompt(each, 0, each.prefill_tokens, is_running=False))
        tokens += each.prefill_tokens
    return found


def fitting_tokens(work: Work, prompts: Iterable[Prompt], step_s: float, most_tokens: int) -> int:
    """Prompt tokens of a step that is predicted to take so long, at most so many.

    Time that these prompts, in this order, leave over is for others that nobody has looked at. A
    step larger than the largest CUDA graph takes as long as its launch at least: whoever profiles
    the lengths of steps, as the rivals' authors do, sees that too.

    Args:
        work: what runs.
        prompts: in order.
        step_s: seconds that the step may take; infinite without a limit.
        most_tokens: that it has room for.
    """
    tokens = _computed_in(work, prompts, step_s - work.base_s, most_tokens)
    graph_room = work.graph_tokens - work.decodes
    if 0 < graph_room < tokens and step_s < work.eager_launch_s:
        return graph_room
    return tokens


def _computed_in(work: Work, prompts: Iterable[Prompt], left_s: float, most_tokens: int) -> int:
    """Prompt tokens that the GPU computes in so many seconds."""
    cost, tokens = work.cost, 0
    for each in prompts:
        fitting = min(chunk_tokens(cost, each.computed_tokens, left_s), most_tokens - tokens)
        if fitting < each.remaining_tokens:
            return tokens + int(fitting)
        tokens += each.remaining_tokens
        left_s -= chunk_seconds(cost, each.computed_tokens, each.remaining_tokens)
    return tokens + int(min(chunk_tokens(cost, 0, left_s), most_tokens - tokens))


def at_least(tokens: int, room: Room) -> int:
    """Prompt tokens raised to the least that a step has; never more than there is room for."""
    least = LEAST_STEP_TOKENS - room.decode_tokens
    return min(room.prefill_tokens, max(tokens, least, 0))


def dealt(  # noqa: PLR0913 - each is one part of a plan
    view: StepView,
    room: Room,
    placements: tuple[Placement, ...],
    prompts: Iterable[Prompt],
    tokens: int,
    *,
    late: tuple[str, ...] = (),
) -> StepPlan:
    """The plan that deals so many tokens out to these prompts in this order."""
    chunks, left, admits = {}, tokens, False
    for each in prompts:
        chunk = min(each.remaining_tokens, left)
        left -= chunk
        admits |= chunk > 0 and not each.is_running
        if each.is_running:
            chunks[each.request.request_id] = chunk
    plan = ordered(view, room, placements)
    if view.work is None:
        return plan
    carried = view.work.carried
    lowered = (Reason.TOKENS_DUE,) if tokens < room.prefill_tokens else ()
    return replace(
        plan,
        limits=Limits(max(1, room.decode_tokens + tokens), room.limits.max_batch_size),
        reasons=(*plan.reasons, *lowered),
        chunks=chunks,
        admits=admits,
        late=late,
        carried=replace(carried, running_first_steps=max(0, carried.running_first_steps - 1)),
    )


def ordered(view: StepView, room: Room, placements: tuple[Placement, ...]) -> StepPlan:
    """The plan that decides nothing but the order of what waits."""
    if not overtakes(placements, len(view.settled), view.unsettled):
        return StepPlan(room.limits, reasons=room.reasons)
    return StepPlan(room.limits, placements, (*room.reasons, Reason.DEADLINE_FIRST))


def stop_if_late(is_overdue: Callable[[], bool]) -> None:
    """Give up a plan that took too long, as Headway's planner does.

    Raises:
        PlanOverdueError: it did.
    """
    if is_overdue():
        raise PlanOverdueError
