"""Headway's planner with one part off, to measure what the part does.

What a part sees is changed before :func:`scheduling.planner.plan_step`, or a constant or function
of the product is replaced for the length of that call and put back whatever happens; the product
itself has no switches. An engine plans in one thread, so nobody else meets a replacement. What is
replaced must exist when this module is read: a part that was renamed fails there, and not in a step
that would then silently run with it.

Some things around the planner stay as they are: the engine clock goes on learning, and requests
whose first token came late may take twice their TPOT.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import inf
from types import ModuleType
from typing import Any

from headway_runtime.bench.rivals.rival import Rival
from headway_runtime.scheduling import (
    candidates,
    decode_only,
    lateness,
    planner,
    reserve,
    step_size,
)
from headway_runtime.scheduling.plan import StepPlan
from headway_runtime.scheduling.planner import Planner, plan_step
from headway_runtime.scheduling.timing import decode_clock, pace, slack
from headway_runtime.scheduling.timing.step_time_model import StepTimeModel
from headway_runtime.scheduling.view import Candidate, StepView, Work

_Overdue = Callable[[], bool]

_UNTAUGHT = StepTimeModel()
_MANY = 2**31
"""More slots than any engine has."""


def _seeing(change: Callable[[Work], Work]) -> Planner:
    """The planner with its view of the work changed."""

    def plan(view: StepView, is_overdue: _Overdue) -> StepPlan:
        if view.work is not None:
            view = replace(view, work=change(view.work))
        return plan_step(view, is_overdue)

    return plan


def _replacing(module: ModuleType, **values: Any) -> Planner:
    """The planner with names of a module bound to something else while it is called."""
    for name in values:
        # As early as this: AttributeError where there is no such name.
        getattr(module, name)

    def plan(view: StepView, is_overdue: _Overdue) -> StepPlan:
        kept = {name: getattr(module, name) for name in values}
        try:
            vars(module).update(values)
            return plan_step(view, is_overdue)
        finally:
            vars(module).update(kept)

    return plan


def _free_now(work: Work) -> Work:
    return replace(work, free_s=work.now_s)


def _launched_at_once(work: Work) -> Work:
    return replace(work, graph_launch_s=0.0)


def _nobody_comes(work: Work) -> Work:
    return replace(work, arrivals_per_s=0.0)


def _without_graphs(work: Work) -> Work:
    return replace(work, graph_tokens=0)


def _with_the_prior(work: Work) -> Work:
    return replace(work, step_time=_UNTAUGHT)


def _without_share(view: StepView, is_overdue: _Overdue) -> StepPlan:
    """Background prompts save up nothing: they are infinitely in debt while the planner looks."""
    if view.work is None:
        return plan_step(view, is_overdue)
    in_debt = replace(view.work.carried, background_credit_tokens=-inf)
    plan = plan_step(replace(view, work=replace(view.work, carried=in_debt)), is_overdue)
    carried = plan.carried or view.work.carried
    return replace(plan, carried=replace(carried, background_credit_tokens=0.0))


def _without_margin(view: StepView, is_overdue: _Overdue) -> StepPlan:
    if pace.TPOT_MARGIN:
        raise RuntimeError("the margin is in the clocks of requests: off only where it is in force")
    return plan_step(view, is_overdue)


@contextmanager
def _no_margin() -> Iterator[None]:
    """Requests that begin to decode meanwhile are given no margin.

    Their clocks start outside of the planner, so that it is off for as long as the arm is seated.
    """
    kept = pace.TPOT_MARGIN
    pace.TPOT_MARGIN = 0.0
    try:
        yield
    finally:
        pace.TPOT_MARGIN = kept


def _without_early(view: StepView, is_overdue: _Overdue) -> StepPlan:
    if decode_clock.KEPT_SHARE:
        raise RuntimeError(
            "what is due is in the clocks of requests: off only where it is in force"
        )
    return plan_step(view, is_overdue)


@contextmanager
def _nothing_early() -> Iterator[None]:
    """Each token of requests that begin to decode meanwhile is due by itself, and no earlier."""
    kept = decode_clock.EARLY_TOKENS, decode_clock.KEPT_SHARE
    decode_clock.EARLY_TOKENS, decode_clock.KEPT_SHARE = 1, 0.0
    try:
        yield
    finally:
        decode_clock.EARLY_TOKENS, decode_clock.KEPT_SHARE = kept


def _candidates_by_arrival(*args: Any) -> list[Candidate]:
    """Candidates as in an engine without an order: those that run, then as they came."""
    found = candidates.candidates(*args)
    return sorted(found, key=lambda each: (not each.is_running, each.arrival_s))


def _nowhere_else(*_: Sequence[Any]) -> tuple[()]:
    """No placements: newcomers stay behind what came before them."""
    return ()


ABLATIONS: Mapping[str, Rival] = {
    "clock": Rival(_seeing(_free_now)),
    "margin": Rival(_without_margin, _no_margin),
    "early": Rival(_without_early, _nothing_early),
    "launch": Rival(_seeing(_launched_at_once)),
    "alternation": Rival(_replacing(decode_only, GAIN=inf)),
    "gather": Rival(_seeing(_nobody_comes)),
    "graph": Rival(_seeing(_without_graphs)),
    "share": Rival(_without_share),
    "lateness": Rival(_replacing(lateness, LATE_A_STEP=0)),
    "reserve": Rival(_replacing(reserve, RESERVED_SLOTS=_MANY, KV_FOR_BACKGROUND=inf)),
    "ttftcap": Rival(_replacing(slack, STEPS_IN_A_TTFT=1e-9)),
    "floor": Rival(_replacing(step_size, MOST_FLOOR_TOKENS=1, LEAST_FLOOR_TOKENS=1)),
    "order": Rival(_replacing(planner, place=_nowhere_else, candidates=_candidates_by_arrival)),
    "learning": Rival(_seeing(_with_the_prior)),
    "tenants": Rival(plan_step),
    "programs": Rival(plan_step),
    "door": Rival(plan_step),
}
"""By the part that is off:

- ``clock``: the engine is thought to be free now, whatever is under way.
- ``margin``: tokens are aimed at as promised, not a little faster.
- ``early``: the second token of an answer is due by itself, and each token when it was promised.
- ``launch``: steps with prefill are thought to be launched at once.
- ``alternation``: no step is left to decodes alone so that the next one may be larger.
- ``gather``: prompts do not wait for others to share a launch.
- ``graph``: steps may be a little larger than the largest CUDA graph, whatever that costs.
- ``share``: background prompts get nothing while prompts with a TTFT take all there is.
- ``lateness``: no waiting request is given up for others.
- ``reserve``: background work may take every slot and KV block.
- ``ttftcap``: steps may be longer than arrivals can wait; tokens that are due still limit them.
- ``floor``: prompts get one token where tokens that are due leave no time.
- ``order``: prompts are computed in order of arrival. Without limits of classes only.
- ``learning``: plans use the step-time model as it is before any step was seen; the engine clock
  uses the taught one still.
- ``tenants``, ``programs``, ``door``: nobody is told apart, nothing of programs is declared, nobody
  is refused; :mod:`headway_runtime.bench.hidden` keeps it from the engine.
"""
