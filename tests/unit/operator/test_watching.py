"""Where watched pods are kept."""

from __future__ import annotations

from typing import Any

import kopf
import pytest

from headway_operator.api.labels import COMPONENT_LABEL, ENGINES, ROUTER, SERVICE_LABEL
from headway_operator.observe.cluster import Cluster
from headway_operator.observe.records import ServiceKey
from headway_operator.watching import Listener, watch_registry
from tests.unit.operator.samples import pod_body

DEMO = ServiceKey("team", "demo")


def pod_handler(cluster: Cluster, changed: list[ServiceKey]) -> Any:
    def nothing(*_: Any) -> None:
        pass

    listener = Listener(changed.append, nothing, nothing, nothing, nothing, nothing)
    registry: Any = watch_registry(cluster, listener, ())
    assert isinstance(registry, kopf.OperatorRegistry)
    handlers = registry._watching.get_all_handlers()
    (found,) = (each for each in handlers if each.fn.__name__ == "pod_changed")
    return found.fn


@pytest.mark.parametrize("component", [ENGINES, ROUTER])
async def test_pods_of_engines_and_of_routers_are_kept_apart(component: str) -> None:
    cluster, changed = Cluster(), list[ServiceKey]()
    handler = pod_handler(cluster, changed)
    labels = {SERVICE_LABEL: "demo", COMPONENT_LABEL: component}
    event = {"type": "ADDED", "object": pod_body()}
    await handler(event=event, labels=labels)
    kept, empty = cluster.pods, cluster.routers
    if component == ROUTER:
        kept, empty = empty, kept
    assert [each.name for each in kept[DEMO]] == ["demo-1"]
    assert DEMO not in empty
    assert cluster.uids() == {"uid-of-demo-1"}
    assert changed == [DEMO]
    await handler(event={**event, "type": "DELETED"}, labels=labels)
    assert cluster.uids() == set()
