"""One step, from view to plan.

view -> limits (what the step may take on) -> order (who goes next) -> plan
"""

from __future__ import annotations

from collections.abc import Callable

from headway_runtime.scheduling.limits import decide_limits
from headway_runtime.scheduling.order import overtakes, place
from headway_runtime.scheduling.plan import Reason, StepPlan
from headway_runtime.scheduling.view import StepView


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
    placements = place(view.settled, view.unsettled)
    _stop_if_late(is_overdue)
    if overtakes(placements, len(view.settled), view.unsettled):
        return StepPlan(limits, placements, (*reasons, Reason.DEADLINE_FIRST))
    return StepPlan(limits, reasons=reasons)


def _stop_if_late(is_overdue: Callable[[], bool]) -> None:
    if is_overdue():
        raise PlanOverdueError
