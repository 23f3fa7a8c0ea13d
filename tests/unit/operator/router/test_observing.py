"""What is known of routers, and whose objects they are."""

from __future__ import annotations

from typing import Any

from headway_operator.api.labels import CHILD_KINDS, ROUTER, ROUTER_SLOTS, SERVICE_LABEL
from headway_operator.decide import decide
from headway_operator.memory.memory import Memory
from headway_operator.observe.cluster import Cluster
from headway_operator.observe.engine_metrics.sample import ServiceMetrics
from headway_operator.observe.records import RolloutRecord, ServiceKey
from headway_operator.observe.trimming import child_record
from headway_operator.observer import Observer
from tests.unit.operator.fakes import FakeCluster
from tests.unit.operator.router.routers import DEMO, OFF, ON, READY_ROUTER
from tests.unit.operator.samples import (
    NOW,
    OPERATOR,
    applied,
    condition,
    ready_pod,
    rendered,
    service,
)


def observing(server: FakeCluster, fields: dict[str, Any], *children: Any) -> Observer:
    cluster = Cluster()
    cluster.services.put(DEMO, service(fields))
    for child in children:
        cluster.children.put(child.key, child)
    cluster.pods.put(DEMO, ready_pod())
    cluster.routers.put(DEMO, READY_ROUTER)
    return Observer(cluster, server, Memory(), lambda _: ServiceMetrics())


def records() -> list[Any]:
    bodies = {slot: applied(body) for slot, body in rendered(ON).items()}
    for slot, body in bodies.items():
        body["metadata"]["uid"] = f"uid-of-{slot}"
    return [child_record(body) for body in bodies.values()]


async def test_engines_and_routers_are_told_apart() -> None:
    found = await observing(FakeCluster(), ON, *records()).snapshot(DEMO, OPERATOR)
    assert found is not None
    assert set(found.children) == {*CHILD_KINDS, *ROUTER_SLOTS}
    assert [each.name for each in found.pods] == ["demo-1"]
    assert [each.name for each in found.routers] == ["demo-router-1"]
    assert isinstance(found.router_rollout, RolloutRecord)
    assert found.rollout is not found.router_rollout


async def test_without_a_router_nobody_asks_for_its_objects() -> None:
    class Counting(FakeCluster):
        asked = 0

        async def read_child(self, slot: str, service: ServiceKey) -> Any:
            self.asked += slot in ROUTER_SLOTS
            return await super().read_child(slot, service)

    server = Counting()
    await observing(server, OFF).snapshot(DEMO, OPERATOR)
    assert server.asked == 0
    await observing(server, ON).snapshot(DEMO, OPERATOR)
    assert server.asked == len(ROUTER_SLOTS)


async def test_a_router_that_was_turned_off_is_still_known() -> None:
    found = await observing(FakeCluster(), OFF, *records()).snapshot(DEMO, OPERATOR)
    assert found is not None
    assert set(found.children) == {*CHILD_KINDS, *ROUTER_SLOTS}


async def test_the_engines_of_a_service_called_router_are_somebody_elses() -> None:
    server = FakeCluster()
    other = applied(rendered(OFF)["Deployment"])
    labels = {**other["metadata"]["labels"], SERVICE_LABEL: "demo-router"}
    owner = {**other["metadata"]["ownerReferences"][0], "uid": "another"}
    other["metadata"] |= {"name": "demo-router", "labels": labels, "ownerReferences": [owner]}
    server.objects["Deployment", "team", "demo-router"] = other
    found = await observing(server, ON).snapshot(DEMO, OPERATOR)
    assert found is not None
    assert found.foreign == (f"{ROUTER} Deployment",)
    plan = decide(found, NOW)
    assert condition(plan, "Ready")[:2] == ("False", "NameTaken")
    assert "router Deployment demo-router belongs to somebody else" in condition(plan, "Ready")[2]
