"""What is not told to an engine, to measure what comes of knowing it. Pure.

The other parts of :mod:`headway_runtime.bench.rivals.ablations` are off in the planner; these are
off because nobody speaks of them, which is the same in a simulated engine and a real one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from headway_runtime.bench.arms import Arm
from headway_runtime.bench.outcome import Outcome
from headway_runtime.bench.workload import Workload
from headway_runtime.policy import WhenUnmet


def _without_tenants(workload: Workload) -> Workload:
    requests = tuple(replace(each, tenant="") for each in workload.requests)
    return replace(workload, requests=requests, tenants=())


def _without_programs(workload: Workload) -> Workload:
    requests = tuple(replace(each, call=None) for each in workload.requests)
    return replace(workload, requests=requests)


def _without_door(workload: Workload) -> Workload:
    classes = tuple(
        replace(each, when_unmet=WhenUnmet.QUEUE, max_queued=None) for each in workload.classes
    )
    return replace(workload, classes=classes)


HIDING: Mapping[str, Callable[[Workload], Workload]] = {
    "tenants": _without_tenants,
    "programs": _without_programs,
    "door": _without_door,
}
"""By the part of an ablation."""


def shown(arm: Arm, workload: Workload) -> Workload:
    """The workload as an engine under this arm is told of it; equal requests at equal times."""
    hide = HIDING.get(arm.part or "")
    return workload if hide is None else hide(workload)


def restored(workload: Workload, outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Outcomes that know again whose they are.

    Args:
        workload: with nothing hidden.
        outcomes: one for each of its requests, in order.
    """
    return [
        outcome
        if (outcome.tenant, outcome.program) == (request.tenant, request.program)
        else replace(outcome, tenant=request.tenant, program=request.program)
        for request, outcome in zip(workload.requests, outcomes, strict=True)
    ]
