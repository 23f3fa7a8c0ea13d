"""How many services' activators the operator cannot ask. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headway_operator.observe.activators import Activators
from headway_operator.observe.records import PodRecord, ServiceKey


def unreached_services(
    activators: Mapping[ServiceKey, Iterable[PodRecord]], told: Activators
) -> int:
    """Services with activator pods that are ready, none of which has told anything.

    Kubernetes reaches those pods, or they would not be ready; whoever cannot is the operator.
    """
    ready = (
        [pod.uid for pod in pods if pod.ready and not pod.deleting] for pods in activators.values()
    )
    return sum(bool(uids) and not told.of(uids) for uids in ready)
