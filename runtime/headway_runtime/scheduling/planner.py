"""One step, from view to plan.

view -> limits (what the policy lets a step take on) -> order (who goes next) -> class limits (who
has to wait) -> lateness (whose TTFT is given up) -> candidates (whose prompts there are; those of
several tenants by fairness) -> prefill (how much of which, by what is due and what a step takes, or
none for now) -> reserve (what background work leaves free) -> plan
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from headway_runtime.scheduling.candidates import LOOKS, by_turns, candidates
from headway_runtime.scheduling.lanes import admit, place_newcomers, without_background
from headway_runtime.scheduling.lateness import NOBODY_LATE, late_requests, next_look_s
from headway_runtime.scheduling.lazy import Remembered, merged
from headway_runtime.scheduling.limits import decide_limits
from headway_runtime.scheduling.order import overtakes, place
from headway_runtime.scheduling.plan import Placement, StepPlan
from headway_runtime.scheduling.prefill_budget import decide_prefill
from headway_runtime.scheduling.reason import Reason
from headway_runtime.scheduling.reserve import kv_is_short, may_start, most_running
from headway_runtime.scheduling.tenants.fairness import in_turn, with_room, with_running
from headway_runtime.scheduling.view import (
    BackgroundRequest,
    Candidate,
    Limits,
    StepView,
    WaitingRequest,
    Work,
)

Planner = Callable[[StepView, Callable[[], bool]], StepPlan]
"""Decides a step; see :func:`plan_step`."""


class PlanOverdueError(Exception):
    """Planning took longer than the engine can wait; the step runs the engine's own decision."""


def plan_step(view: StepView, is_overdue: Callable[[], bool]) -> StepPlan:
    """Decide what one step may take on and in which order waiting requests are admitted.

    Args:
        view: the engine before the step.
        is_overdue: asked between stages; the caller's clock, so that planning itself has none.

    Raises:
        PlanOverdueError: ``is_overdue`` said so after a stage.
    """
    limits, reasons = decide_limits(
        view.ceilings, view.wanted, view.running, view.tokens_per_decode
    )
    _stop_if_late(is_overdue)
    if view.lanes and view.tenants.waiting:
        able = with_room(view.tenants.waiting, _room(view))
        view = replace(view, tenants=replace(view.tenants, waiting=able))
    turns = _turns(view, limits)
    if view.lanes:
        plan = _with_class_limits(view, limits, reasons, turns)
    else:
        plan = _in_order(view, limits, reasons)
    _stop_if_late(is_overdue)
    if view.work is None:
        return plan
    plan = _with_prefill(view, view.work, plan, turns)
    _stop_if_late(is_overdue)
    return plan


def _in_order(view: StepView, limits: Limits, reasons: tuple[Reason, ...]) -> StepPlan:
    if not view.unsettled:
        return StepPlan(limits, reasons=reasons)
    placements = place(view.settled, view.unsettled)
    if overtakes(placements, len(view.settled), view.unsettled):
        return StepPlan(limits, placements, (*reasons, Reason.DEADLINE_FIRST))
    return StepPlan(limits, reasons=reasons)


def _turns(view: StepView, limits: Limits) -> list[BackgroundRequest] | None:
    """Requests without a TTFT whose prompts may be computed, as it is their tenants' turn.

    None where their order alone says who goes next.
    """
    tenants, work = view.tenants.waiting, view.work
    if not tenants or work is None:
        return None
    slots = max(0, limits.max_batch_size - view.running)
    tokens = limits.token_budget - work.decodes * view.tokens_per_decode
    if not work.carried.running_first_steps:
        tenants = with_running(tenants, work.prefills)
    # Where nobody may run the order alone says who comes first when somebody may.
    return in_turn(tenants, slots, tokens, _room(view)) or None


def _room(view: StepView) -> dict[str, int]:
    return {each.class_name: each.room for each in view.lanes}


def _with_class_limits(
    view: StepView,
    limits: Limits,
    reasons: tuple[Reason, ...],
    turns: Sequence[BackgroundRequest] | None,
) -> StepPlan:
    if turns is not None:
        view = replace(view, lanes=without_background(view.lanes))
    places = place_newcomers(view)
    admission = admit(view, places, limits.max_batch_size)
    ready = admission.ready + _out_of_lanes(view, turns or ())
    # Never 0: where nothing runs every class has room.
    most = max(1, view.running + ready)
    if overtakes(places.front, len(view.settled), places.unlimited):
        reasons = (*reasons, Reason.DEADLINE_FIRST)
    if not admission.all_may_run and most < limits.max_batch_size:
        limits = Limits(limits.token_budget, most)
        reasons = (*reasons, Reason.CLASS_LIMIT)
    return StepPlan(limits, places.placements, reasons, admission.turns)


def _out_of_lanes(view: StepView, turns: Sequence[BackgroundRequest]) -> int:
    """How many of those whose turn it is come out of the lanes of their classes."""
    limited = {each.class_name for each in view.lanes}
    waiting = [each for each in turns if isinstance(each, WaitingRequest)]
    named = [each.traffic_class.name for each in waiting if each.traffic_class is not None]
    return sum([name in limited for name in named])


def _with_prefill(
    view: StepView, work: Work, plan: StepPlan, turns: Sequence[BackgroundRequest] | None
) -> StepPlan:
    """The plan with prompt tokens chosen by what is due.

    Args:
        view: the engine before the step.
        work: what it has in hand.
        plan: what is decided so far.
        turns: what goes next of waiting work without a TTFT; None where its order alone says so.
    """
    decode_tokens = work.decodes * view.tokens_per_decode
    most_tokens = max(0, plan.limits.token_budget - decode_tokens)
    waiting = Remembered(_front(view, plan.placements))
    late = NOBODY_LATE
    look_s = work.carried.next_look_s
    if work.now_s >= look_s:
        late = late_requests(work, waiting, view.tenants)
        found_late = len(late.waiting) + len(late.running)
        look_s = next_look_s(work, len(waiting), found_late, view.tenants)
    slots = max(0, plan.limits.max_batch_size - view.running)
    found = candidates(work, waiting, late, min(slots, LOOKS), most_tokens)
    if turns is not None:
        found = by_turns(found, turns)
    found = may_start(work, found, view.running)
    more_wait = slots > LOOKS and len(waiting) + view.unseen > LOOKS
    prefill = decide_prefill(work, found, most_tokens, more_wait=more_wait)
    batch = most_running(work, found, view.running, plan.limits.max_batch_size)
    reserved = (Reason.RESERVED,) if batch < plan.limits.max_batch_size else ()
    yields = (Reason.BACKGROUND_LAST,) if kv_is_short(work) else ()
    budget = min(plan.limits.token_budget, max(1, decode_tokens + prefill.tokens))
    carried = prefill.carried
    return StepPlan(
        limits=Limits(budget, batch),
        placements=plan.placements,
        reasons=(*plan.reasons, *prefill.reasons, *reserved, *yields, *_shared(turns)),
        turns=plan.turns,
        chunks=prefill.chunks,
        # Without candidates the budget is left as it is, which says nothing of other steps.
        prompt_tokens=prefill.tokens if found else None,
        admits=prefill.admits,
        first=prefill.first,
        in_turn=() if turns is None else _waiting_background(found),
        late=late.waiting,
        late_prefills=late.running,
        background_last=bool(yields),
        carried=carried if look_s == carried.next_look_s else replace(carried, next_look_s=look_s),
    )


def _waiting_background(found: Sequence[Candidate]) -> tuple[str, ...]:
    """Waiting requests without a TTFT, in the order in which they are to be admitted."""
    return tuple([each.request_id for each in found if each.is_background and not each.is_running])


def _shared(turns: Sequence[BackgroundRequest] | None) -> tuple[Reason, ...]:
    return (Reason.TENANTS_IN_TURN,) if turns else ()


def _front(view: StepView, placements: Sequence[Placement]) -> Sequence[WaitingRequest]:
    """What waits in front of all lanes once the newcomers are in their places, read lazily."""
    if not view.unsettled:
        return view.front
    if not placements:
        behind = range(len(view.front), len(view.front) + len(view.unsettled))
        return merged(view.front, view.unsettled, behind)
    newcomers = {each.request_id: each for each in view.unsettled}
    ahead = [each for each in placements if each.lane is None]
    return merged(
        view.front,
        [newcomers[each.request_id] for each in ahead],
        [each.position for each in ahead],
    )


def _stop_if_late(is_overdue: Callable[[], bool]) -> None:
    if is_overdue():
        raise PlanOverdueError
