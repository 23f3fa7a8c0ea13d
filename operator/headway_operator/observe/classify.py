"""The one place that says what is wrong with a service's pods, and how it is dealt with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headway_operator.api.labels import ENGINE, INSTALL, PREFLIGHT, SIDECAR
from headway_operator.observe.container_problems import container_problem
from headway_operator.observe.creation_problems import creation_problem
from headway_operator.observe.problems import Problem
from headway_operator.observe.records import ContainerRecord, PodRecord, RolloutRecord
from headway_operator.observe.scheduling_problems import (
    node_problem,
    preparation_problem,
    scheduling_problem,
)

# In the order in which they start: the first that fails is why the later ones do not run.
_START_ORDER = {name: at for at, name in enumerate((INSTALL, PREFLIGHT, SIDECAR, ENGINE))}


def worst_problem(
    rollout: RolloutRecord | None, pods: Iterable[PodRecord], now: float
) -> Problem | None:
    """The problem to show: what will not heal by itself first, then in order of pod names.

    The order depends on nothing that changes from one moment to the next, so that a service
    with several problems does not show them in turns. ``now`` is Unix time in seconds.
    """
    found = [
        *_creation(rollout),
        *(p for pod in sorted_by_name(pods) for p in _problems_of(pod, now)),
    ]
    return min(found, key=lambda problem: not problem.stalls, default=None)


def sorted_by_name(pods: Iterable[PodRecord]) -> list[PodRecord]:
    """The pods in a fixed order."""
    return sorted(pods, key=lambda pod: pod.name)


def _creation(rollout: RolloutRecord | None) -> Iterator[Problem]:
    failure = rollout.conditions.get("ReplicaFailure") if rollout else None
    problem = creation_problem(failure)
    if problem is not None:
        yield problem


def _problems_of(pod: PodRecord, now: float) -> Iterator[Problem]:
    if pod.ready or pod.deleting:
        return
    candidates = (
        scheduling_problem(pod.scheduled),
        *(container_problem(each) for each in _in_start_order(pod)),
        preparation_problem(pod, now),
        node_problem(pod),
    )
    first = next((problem for problem in candidates if problem is not None), None)
    if first is not None:
        yield first


def _in_start_order(pod: PodRecord) -> list[ContainerRecord]:
    last = len(_START_ORDER)
    return sorted(pod.containers.values(), key=lambda c: _START_ORDER.get(c.name, last))
