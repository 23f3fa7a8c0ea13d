"""How many services' activators the operator cannot ask. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headway_operator.observe.activators import Activators
from headway_operator.observe.records import PodRecord, ServiceKey


def unreached_services(
    activators: Mapping[ServiceKey, Iterable[PodRecord]], told: Activators
) -> int:
    """Services with activator pods that are ready, all of which are silent.

    Kubernetes reaches those pods, or they would not be ready; whoever cannot is the operator. One
    answer that is missing is no silence: counted by that, a single pod that answers now and then
    would make many services change what they say of it, and begin their patience anew each time.
    """
    ready = (
        {pod.uid for pod in pods if pod.ready and not pod.deleting} for pods in activators.values()
    )
    return sum(bool(uids) and told.silent(uids) == uids for uids in ready)
