"""The activator: what is made of it, beside a router and without one, and how it is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from headway_operator.api import InferenceServiceSpec
from headway_operator.api.labels import (
    ACTIVATOR,
    ACTIVATOR_SLOTS,
    CHILD_KINDS,
    COMPONENT_LABEL,
    ENGINES,
    ENGINES_SERVICE_SLOT,
    ROUTER,
    ROUTER_SLOTS,
    SERVICE_LABEL,
    slot_of,
)
from headway_operator.decide import decide
from headway_operator.decide.router import decide_target
from headway_operator.memory.memory import Memory
from headway_operator.observe.activators import ActivatorReport
from headway_operator.observe.cluster import Cluster
from headway_operator.observe.engine_metrics.sample import ServiceMetrics
from headway_operator.observe.records import ServiceKey
from headway_operator.observe.trimming import child_record
from headway_operator.observer import Observer
from headway_operator.render.deployment import template_hash
from headway_operator.snapshot import Snapshot
from headway_runtime.activator.settings import Settings
from tests.unit.operator.fakes import FakeCluster
from tests.unit.operator.samples import (
    NOW,
    OPERATOR,
    applied,
    pod,
    ready_pod,
    rendered,
    service,
    settled,
    snapshot,
    spec,
)

ZERO = spec(scaling={"minReplicas": 0})
BOTH = spec(scaling={"minReplicas": 0}, router={"enabled": True})
DEMO = ServiceKey("team", "demo")
READY = pod("demo-activator-1", template="activator", ready=True)
UNREADY = replace(READY, ready=False)
ROUTER_POD = pod("demo-router-1", template="router", ready=True)


def zero(**activator: Any) -> dict[str, Any]:
    return spec(scaling={"minReplicas": 0, "activator": activator})


def pod_spec(fields: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = rendered(fields)[f"{ACTIVATOR} Deployment"]["spec"]["template"]["spec"]
    return found


# --- the spec


@pytest.mark.parametrize(
    "scaling",
    [
        {"minReplicas": -1},
        {"idleSeconds": 5},
        {"activator": {"replicas": 0}},
        {"activator": {"maxHeldRequests": -1}},
        {"activator": {"holdSeconds": 0}},
        {"activator": {"maxHeldMebibytes": 0}},
    ],
)
def test_what_scaling_to_zero_cannot_be(scaling: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        InferenceServiceSpec.model_validate(spec(scaling=scaling))


# --- rendering


def test_without_zero_there_is_nothing_of_it_and_it_changes_no_engine() -> None:
    assert set(rendered(spec())) == set(CHILD_KINDS)
    assert rendered(spec())["Deployment"] == rendered(ZERO)["Deployment"]
    assert rendered(ZERO)["Deployment"] == rendered(zero(replicas=3, holdSeconds=5))["Deployment"]


def test_it_shares_the_name_of_all_engines_with_the_router() -> None:
    alone = [*CHILD_KINDS, ENGINES_SERVICE_SLOT, *ACTIVATOR_SLOTS]
    assert list(rendered(ZERO)) == alone
    assert list(rendered(BOTH)) == [*CHILD_KINDS, *ROUTER_SLOTS, *ACTIVATOR_SLOTS]
    assert rendered(ZERO)[ENGINES_SERVICE_SLOT] == rendered(BOTH)[ENGINES_SERVICE_SLOT]


def test_its_objects_are_its_own() -> None:
    found = rendered(ZERO)
    for slot in ACTIVATOR_SLOTS:
        metadata = found[slot]["metadata"]
        assert metadata["name"] == "demo-activator"
        assert metadata["labels"][COMPONENT_LABEL] == ACTIVATOR
        assert slot_of(found[slot]["kind"], metadata["name"], metadata["labels"]) == slot
        assert metadata["ownerReferences"] == found["Service"]["metadata"]["ownerReferences"]
    chosen = found[f"{ACTIVATOR} Deployment"]["spec"]["selector"]["matchLabels"]
    assert chosen == {SERVICE_LABEL: "demo", COMPONENT_LABEL: ACTIVATOR}


def test_it_needs_no_rights_and_is_restricted() -> None:
    found = pod_spec(ZERO)
    assert found["automountServiceAccountToken"] is False
    assert "serviceAccountName" not in found
    assert found["securityContext"]["runAsNonRoot"] is True
    (container,) = found["containers"]
    context = container["securityContext"]
    assert context["allowPrivilegeEscalation"] is False
    assert context["readOnlyRootFilesystem"] is True
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert container["image"] == OPERATOR.runtime_image


def test_the_process_understands_what_it_is_told() -> None:
    fields = spec(
        model={"uri": "pvc://models/tiny", "servedName": "small"},
        scaling={
            "minReplicas": 0,
            "forecastSeconds": 90,
            "activator": {"maxHeldRequests": 7, "maxHeldMebibytes": 3, "holdSeconds": 20},
        },
    )
    (container,) = pod_spec(fields)["containers"]
    told = Settings.from_environment({each["name"]: each["value"] for each in container["env"]})
    assert told.engines.name == rendered(fields)[ENGINES_SERVICE_SLOT]["metadata"]["name"]
    assert (told.served_name, told.start_s) == ("small", 90)
    assert (told.limits.requests, told.limits.body_bytes) == (7, 3 * 1024 * 1024)
    assert told.limits.hold_s == 20
    assert told.drain_s < pod_spec(fields)["terminationGracePeriodSeconds"]
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert ports == {
        "http": told.http_port,
        "control": told.control_port,
        "metrics": told.metrics_port,
    }
    assert container["resources"]["limits"] == {"memory": "169Mi"}


def test_only_the_operator_reaches_its_control_port_and_it_only_its_engines() -> None:
    policy = rendered(ZERO)[f"{ACTIVATOR} NetworkPolicy"]["spec"]
    everybody, operator = policy["ingress"]
    assert "from" not in everybody
    assert {each["port"] for each in everybody["ports"]} == {8000, 8901}
    assert operator["ports"] == [{"port": 8900, "protocol": "TCP"}]
    assert operator == rendered(ZERO)["NetworkPolicy"]["spec"]["ingress"][1]
    assert policy["egress"] == rendered(BOTH)[f"{ROUTER} NetworkPolicy"]["spec"]["egress"]


def test_more_pods_of_it_replace_none_and_other_bounds_do() -> None:
    few, many, other = (
        rendered(fields)[f"{ACTIVATOR} Deployment"]["spec"]
        for fields in (zero(replicas=1), zero(replicas=3), zero(replicas=1, holdSeconds=5))
    )
    assert template_hash(few["template"]) == template_hash(many["template"])
    assert template_hash(few["template"]) != template_hash(other["template"])
    assert (few["replicas"], many["replicas"]) == (1, 3)


def test_an_upgrade_of_the_operator_replaces_none() -> None:
    before = settled(snapshot(service(ZERO), ready_pod(), activators=(READY,)))
    newer = replace(OPERATOR, runtime_image="registry/runtime:2")
    assert decide(replace(before, operator=newer), NOW).applications == ()
    moved = replace(
        before, operator=newer, spec=InferenceServiceSpec.model_validate(zero(holdSeconds=5))
    )
    (body,) = (
        each.body
        for each in decide(moved, NOW).applications
        if each.slot == f"{ACTIVATOR} Deployment"
    )
    (container,) = body["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry/runtime:2"


# --- where the Service points to

PODS = {"ready": (ready_pod(),), "unready": (replace(ready_pod(), ready=False),), "none": ()}
ACTIVATORS = {"ready": (READY,), "unready": (UNREADY,), "none": ()}
ROUTERS = {"ready": (ROUTER_POD,), "none": ()}


WHO = st.tuples(*(st.sampled_from(sorted(each)) for each in (PODS, ACTIVATORS, ROUTERS)))


@given(
    st.sampled_from([ENGINES, ROUTER, ACTIVATOR]),
    WHO,
    st.booleans(),
    st.booleans(),
    st.integers(0, 1),
)
def test_it_points_to_somebody_who_answers_where_anybody_does(
    before: str, who: tuple[str, str, str], leaving: bool, may_be_zero: bool, replicas: int
) -> None:
    engine, activator, router = who
    fields = BOTH if may_be_zero else spec(router={"enabled": True})
    fields = {**fields, "replicas": replicas}
    is_off = not may_be_zero and not replicas
    start = snapshot(service(fields))
    children = {**start.children}
    children["Service"] = replace(children["Service"], points_to=before)
    now: Snapshot = replace(
        start,
        children=children,
        pods=PODS[engine],
        activators=ACTIVATORS[activator],
        routers=ROUTERS[router],
    )
    assert now.spec is not None
    target = decide_target(now, now.spec, leaving=leaving and may_be_zero)
    answers = {
        ENGINES: engine == "ready",
        # A router without engines is not ready; it may not have noticed yet.
        ROUTER: router == "ready",
        ACTIVATOR: activator == "ready" and (may_be_zero or (before == ACTIVATOR and not is_off)),
    }
    assert answers[target] or not any(answers.values()) or engine != "ready"
    if engine != "ready" and activator == "ready" and may_be_zero:
        assert target == ACTIVATOR
    if engine == "ready" and not leaving:
        assert target != ACTIVATOR
    if (engine == "ready" and not may_be_zero) or is_off:
        assert target != ACTIVATOR


# --- observing


def observing(server: FakeCluster, fields: dict[str, Any], *children: Any) -> Observer:
    cluster, memory = Cluster(), Memory()
    cluster.services.put(DEMO, service(fields))
    for child in children:
        cluster.children.put(child.key, child)
    for component, each in ((ENGINES, ready_pod()), (ROUTER, ROUTER_POD), (ACTIVATOR, READY)):
        cluster.pods_of(component).put(DEMO, each)
    memory.activators.told(READY.uid, ActivatorReport(3, 0, None))
    return Observer(cluster, server, memory, lambda _: ServiceMetrics())


async def test_it_is_told_apart_and_what_it_told_is_there() -> None:
    bodies = {slot: applied(body) for slot, body in rendered(BOTH).items()}
    for slot, body in bodies.items():
        body["metadata"]["uid"] = f"uid-of-{slot}"
    records = [child_record(body) for body in bodies.values()]
    found = await observing(FakeCluster(), BOTH, *records).snapshot(DEMO, OPERATOR)
    assert found is not None
    assert set(found.children) == {*CHILD_KINDS, *ROUTER_SLOTS, *ACTIVATOR_SLOTS}
    assert [each.name for each in found.pods] == ["demo-1"]
    assert [each.name for each in found.routers] == ["demo-router-1"]
    assert [each.name for each in found.activators] == ["demo-activator-1"]
    assert found.activator_reports == {READY.uid: ActivatorReport(3, 0, None)}
    assert found.activator_rollout is not None
    assert found.activator_rollout.wanted == 2


async def test_what_is_not_watched_is_asked_for_where_it_is_to_be() -> None:
    class Counting(FakeCluster):
        def __init__(self) -> None:
            super().__init__()
            self.asked: list[str] = []

        async def read_child(self, slot: str, service: ServiceKey) -> Any:
            self.asked.append(slot)
            return await super().read_child(slot, service)

    for fields, expected in (
        (spec(), CHILD_KINDS),
        (ZERO, (*CHILD_KINDS, ENGINES_SERVICE_SLOT, *ACTIVATOR_SLOTS)),
    ):
        server = Counting()
        await observing(server, fields).snapshot(DEMO, OPERATOR)
        assert server.asked == [*expected]
