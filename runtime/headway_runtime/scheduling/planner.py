"""One step, from view to plan.

view -> limits (what the step may take on) -> order (who goes next) -> class limits (who has to
wait) -> plan
"""

from __future__ import annotations

from collections.abc import Callable

from headway_runtime.scheduling.lanes import admit, place_newcomers
from headway_runtime.scheduling.limits import decide_limits
from headway_runtime.scheduling.order import overtakes, place
from headway_runtime.scheduling.plan import Reason, StepPlan
from headway_runtime.scheduling.view import Limits, StepView


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
    if view.lanes:
        return _with_class_limits(view, limits, reasons, is_overdue)
    placements = place(view.settled, view.unsettled)
    _stop_if_late(is_overdue)
    if overtakes(placements, len(view.settled), view.unsettled):
        return StepPlan(limits, placements, (*reasons, Reason.DEADLINE_FIRST))
    return StepPlan(limits, reasons=reasons)


def _with_class_limits(
    view: StepView, limits: Limits, reasons: tuple[Reason, ...], is_overdue: Callable[[], bool]
) -> StepPlan:
    places = place_newcomers(view)
    _stop_if_late(is_overdue)
    admission = admit(view, places, limits.max_batch_size)
    _stop_if_late(is_overdue)
    # Never 0: where nothing runs every class has room.
    most = max(1, view.running + admission.ready)
    if overtakes(places.front, len(view.settled), places.unlimited):
        reasons = (*reasons, Reason.DEADLINE_FIRST)
    if not admission.all_may_run and most < limits.max_batch_size:
        limits = Limits(limits.token_budget, most)
        reasons = (*reasons, Reason.CLASS_LIMIT)
    return StepPlan(limits, places.placements, reasons, admission.turns)


def _stop_if_late(is_overdue: Callable[[], bool]) -> None:
    if is_overdue():
        raise PlanOverdueError
