"""Pods that hang: they neither get ready nor end. Pure.

A Deployment tells of a rollout that gets no further only once: when a service wakes from zero, or a
pod is replaced, its rollout is long complete, and nothing but the pod itself shows that it hangs.
"""

from __future__ import annotations

from collections.abc import Iterable

from headway_operator.api.labels import ENGINE, INSTALL, PREFLIGHT, SIDECAR
from headway_operator.observe.classify import sorted_by_name
from headway_operator.observe.instant import Instant
from headway_operator.observe.problems import shown
from headway_operator.observe.records import PodRecord

_START_ORDER = (INSTALL, PREFLIGHT, SIDECAR, ENGINE)


def late_pod(pods: Iterable[PodRecord], startup_seconds: float, now: Instant) -> PodRecord | None:
    """The first by name of those that were not ready for so long, as far as their nodes say."""
    limit = now.unix - startup_seconds
    late = (
        each
        for each in sorted_by_name(pods)
        if each.unready_since is not None and each.unready_since <= limit
    )
    return next(late, None)


def told_late(pod: PodRecord, startup_seconds: int) -> str:
    """What a late pod waits for, as far as that is seen from outside, and the remedy."""
    name = shown("name", pod.name)
    text = f"Pod {name} has not got ready for {startup_seconds} s (engine.startupTimeoutSeconds)"
    container = _unready_container(pod)
    if container is None:
        gate = "all its containers are ready, so a readiness gate of it is not met"
        cause = gate if pod.containers else "none of its containers has been started"
        return f"{text}: {cause}. `kubectl describe pod {name}` says more"
    longer = "; raise engine.startupTimeoutSeconds if the model takes longer to load"
    return (
        f"{text}, for its container {container}: `kubectl logs {name} -c {container}` says what "
        f"that does{longer if container == ENGINE else ''}. Delete a pod that hangs"
    )


def _unready_container(pod: PodRecord) -> str | None:
    """The first to start of those that are not ready; an init container that has ended is."""
    names = (*_START_ORDER, *sorted(pod.containers.keys() - {*_START_ORDER}))
    unready = (each for each in names if each in pod.containers and not pod.containers[each].ready)
    name = next(unready, None)
    return None if name is None else shown("name", name)
