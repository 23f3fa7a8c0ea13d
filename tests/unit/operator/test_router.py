"""The router: what is made of it, where the Service points to, and what goes with it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from headway_operator.api import InferenceServiceSpec
from headway_operator.api.labels import (
    CHILD_KINDS,
    CHILD_SLOTS,
    COMPONENT_LABEL,
    DISCOVERY,
    ENGINES,
    ROUTER,
    ROUTER_SLOTS,
    SERVICE_LABEL,
    child_name,
    kind_of,
    service_of,
    slot_of,
)
from headway_operator.decide import Plan, decide
from headway_operator.memory.memory import Memory
from headway_operator.observe.cluster import Cluster
from headway_operator.observe.engine_metrics.sample import ServiceMetrics
from headway_operator.observe.records import PodRecord, RolloutRecord, ServiceKey
from headway_operator.observe.trimming import child_record
from headway_operator.observer import Observer
from headway_operator.render.deployment import template_hash
from headway_operator.snapshot import Snapshot
from tests.unit.operator.fakes import FakeCluster
from tests.unit.operator.samples import (
    NOW,
    OPERATOR,
    applied,
    carried_out,
    condition,
    ended,
    pod,
    ready_pod,
    rendered,
    service,
    settled,
    snapshot,
    spec,
    waiting,
)

ON = spec(router={"enabled": True})
OFF = spec()
DEMO = ServiceKey("team", "demo")


def router_pod(name: str = "demo-router-1", **more: Any) -> PodRecord:
    return pod(name, template="router", **more)


READY_ROUTER = router_pod(ready=True)
UNREADY_ROUTER = router_pod()


def with_spec(before: Snapshot, fields: dict[str, Any]) -> Snapshot:
    record = replace(service(fields, generation=2), status=before.service.status)
    return replace(before, service=record, spec=InferenceServiceSpec.model_validate(fields))


def pointed_to(plan: Plan, before: Snapshot) -> str:
    """Where the Service points to once the plan is carried out."""
    for each in plan.applications:
        if each.slot == "Service":
            return str(each.body["spec"]["selector"][COMPONENT_LABEL])
    return before.children["Service"].points_to


def reasons(plan: Plan) -> list[str]:
    return [notice.reason for notice in plan.notices]


# --- names


def test_every_slot_has_a_name_of_its_own() -> None:
    names = {(kind_of(slot), child_name(slot, "demo")) for slot in CHILD_SLOTS}
    assert len(names) == len(CHILD_SLOTS)
    for slot in CHILD_SLOTS:
        assert service_of(slot, child_name(slot, "demo")) == "demo"


def test_labels_and_name_together_tell_the_slot() -> None:
    routers = {COMPONENT_LABEL: ROUTER}
    assert slot_of("Deployment", "demo-router", routers) == f"{ROUTER} Deployment"
    assert slot_of("Deployment", "demo-router", {COMPONENT_LABEL: ENGINES}) == "Deployment"
    # Whoever relabels the engines' Deployment must not make it one that may be deleted.
    assert slot_of("Deployment", "demo", routers) == "Deployment"
    assert slot_of("ConfigMap", "demo-policy", routers) == "ConfigMap"


# --- the spec


@pytest.mark.parametrize(
    "router",
    [
        {"policy": "PowerOfTwo"},
        {"replicas": 0},
        {"retries": 21},
        {"drainSeconds": 1},
        {"image": ""},
    ],
)
def test_what_a_router_cannot_be(router: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        InferenceServiceSpec.model_validate(spec(router=router))


# --- rendering


def test_without_a_router_there_is_nothing_of_it() -> None:
    assert set(rendered(OFF)) == set(CHILD_KINDS)
    assert rendered(OFF) == rendered(spec(router={"enabled": False, "replicas": 5}))


def test_a_router_has_objects_of_its_own_and_changes_no_engine() -> None:
    on, off = rendered(ON), rendered(OFF)
    assert list(on) == [*off, *ROUTER_SLOTS]
    assert on["Deployment"] == off["Deployment"]
    for slot in ROUTER_SLOTS:
        labels = on[slot]["metadata"]["labels"]
        assert (labels[SERVICE_LABEL], labels[COMPONENT_LABEL]) == ("demo", ROUTER)
        assert (
            on[slot]["metadata"]["ownerReferences"] == off["Service"]["metadata"]["ownerReferences"]
        )


def router_pod_spec(**router: Any) -> dict[str, Any]:
    fields = spec(router={"enabled": True, **router})
    found: dict[str, Any] = rendered(fields)[f"{ROUTER} Deployment"]["spec"]["template"]["spec"]
    return found


def arguments(**router: Any) -> list[str]:
    (container,) = router_pod_spec(**router)["containers"]
    args: list[str] = container["args"]
    return args


def value_of(flag: str, args: list[str]) -> str:
    return args[args.index(flag) + 1]


def test_the_command_line_says_what_the_spec_says() -> None:
    args = arguments(policy="ConsistentHash", retries=0)
    assert value_of("--policy", args) == "consistent_hash"
    assert value_of("--retry-max-retries", args) == "1"
    assert value_of("--retry-max-retries", arguments(retries=6)) == "7"
    # It would take engines that refuse for broken ones.
    assert "--disable-circuit-breaker" in args


def test_a_router_needs_no_rights_and_is_restricted() -> None:
    found = router_pod_spec()
    assert found["automountServiceAccountToken"] is False
    assert "serviceAccountName" not in found
    assert found["securityContext"]["runAsNonRoot"] is True
    for container in (*found["containers"], *found["initContainers"]):
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["readOnlyRootFilesystem"] is True
        assert context["capabilities"] == {"drop": ["ALL"]}


def test_images_are_the_users_or_the_operators() -> None:
    found = router_pod_spec()
    assert found["containers"][0]["image"] == OPERATOR.router_image
    (discovery,) = found["initContainers"]
    assert (discovery["name"], discovery["image"]) == (DISCOVERY, OPERATOR.runtime_image)
    assert router_pod_spec(image="mine:1")["containers"][0]["image"] == "mine:1"


def test_discovery_is_told_the_name_of_the_headless_service() -> None:
    (discovery,) = router_pod_spec()["initContainers"]
    told = {each["name"]: each["value"] for each in discovery["env"]}
    headless = rendered(ON)[f"{ROUTER} Service"]
    assert told["HEADWAY_ENGINES_NAME"] == headless["metadata"]["name"]
    assert headless["spec"]["clusterIP"] == "None"
    assert (
        headless["spec"]["selector"]
        == rendered(ON)["Deployment"]["spec"]["selector"]["matchLabels"]
    )


def test_a_router_reaches_its_engines_and_name_servers_only() -> None:
    policy = rendered(ON)[f"{ROUTER} NetworkPolicy"]["spec"]
    engines, names = policy["egress"]
    (peer,) = engines["to"]
    assert peer == {
        "podSelector": {"matchLabels": {SERVICE_LABEL: "demo", COMPONENT_LABEL: ENGINES}}
    }
    assert {each["port"] for each in names["ports"]} == {53, 5353}
    assert policy["podSelector"]["matchLabels"][COMPONENT_LABEL] == ROUTER


def test_grace_period_covers_the_drain() -> None:
    assert router_pod_spec(drainSeconds=100)["terminationGracePeriodSeconds"] > 100


# --- an upgrade of the operator


def test_an_upgrade_restarts_no_router_and_a_change_of_the_spec_does() -> None:
    before = snapshot(service(ON), ready_pod(), routers=(READY_ROUTER,))
    newer = replace(OPERATOR, router_image="registry/router:2", runtime_image="registry/runtime:2")
    upgraded = replace(settled(before), operator=newer)
    assert decide(upgraded, NOW).applications == ()
    moved = with_spec(upgraded, spec(router={"enabled": True, "retries": 3}))
    plan = decide(moved, NOW)
    (body,) = (each.body for each in plan.applications if each.slot == f"{ROUTER} Deployment")
    assert body["spec"]["template"]["spec"]["containers"][0]["image"] == "registry/router:2"


def test_more_pods_of_a_router_replace_none() -> None:
    few, many = (
        rendered(spec(router={"enabled": True, "replicas": count}))[f"{ROUTER} Deployment"]["spec"]
        for count in (1, 3)
    )
    assert template_hash(few["template"]) == template_hash(many["template"])
    assert (few["replicas"], many["replicas"]) == (1, 3)


# --- where the Service points to


def test_the_service_waits_for_a_router_that_is_ready() -> None:
    start = settled(snapshot(service(OFF), ready_pod()))
    on = with_spec(start, ON)
    plan = decide(on, NOW)
    assert [each.slot for each in plan.applications] == ["ConfigMap", *ROUTER_SLOTS]
    assert condition(plan, "RouterReady")[:2] == ("False", "RouterStarting")
    begun = replace(carried_out(on, plan), routers=(UNREADY_ROUTER,))
    assert pointed_to(decide(begun, NOW), begun) == ENGINES
    ready = replace(settled(begun), routers=(READY_ROUTER,))
    plan = decide(ready, NOW)
    assert pointed_to(plan, ready) == ROUTER
    assert "RouterInUse" in reasons(plan)
    assert condition(plan, "RouterReady")[0] == "True"
    assert condition(plan, "Ready")[0] == "True"


def test_a_router_that_is_gone_is_gone_round() -> None:
    using = settled(snapshot(service(ON), ready_pod(), routers=(READY_ROUTER,)))
    assert using.children["Service"].points_to == ROUTER
    plan = decide(replace(using, routers=()), NOW)
    assert pointed_to(plan, using) == ENGINES
    assert "RouterBypassed" in reasons(plan)
    assert condition(plan, "Ready")[0] == "True"


def test_a_router_pod_that_is_being_stopped_does_not_count() -> None:
    stopping = replace(READY_ROUTER, deleting=True)
    before = settled(snapshot(service(ON), ready_pod(), routers=(stopping,)))
    assert before.children["Service"].points_to == ENGINES


def test_where_nobody_is_ready_nothing_is_turned() -> None:
    using = settled(snapshot(service(ON), ready_pod(), routers=(READY_ROUTER,)))
    nobody = replace(using, pods=(), routers=(UNREADY_ROUTER,))
    plan = decide(nobody, NOW)
    assert pointed_to(plan, using) == ROUTER
    assert condition(plan, "RouterReady")[:2] == ("False", "NoEngineReady")


def test_a_router_loses_its_pods_once_the_service_points_elsewhere() -> None:
    using = settled(snapshot(service(ON), ready_pod(), routers=(READY_ROUTER,)))
    off = with_spec(using, OFF)
    plan = decide(off, NOW)
    assert [each.slot for each in plan.applications] == ["ConfigMap", "Service"]
    assert pointed_to(plan, off) == ENGINES
    turned = carried_out(off, plan)
    plan = decide(turned, NOW)
    (application,) = plan.applications
    assert (application.slot, application.body["spec"]["replicas"]) == (f"{ROUTER} Deployment", 0)
    # It keeps its template: nothing is rolled that is about to go, or comes back.
    before, after = (
        template_hash(each["spec"]["template"])
        for each in (rendered(ON)[f"{ROUTER} Deployment"], application.body)
    )
    assert after == before
    assert "RouterReady" not in {each.type for each in plan.status.conditions}
    assert decide(carried_out(turned, plan), NOW).applications == ()


def test_what_keeps_a_router_from_starting_is_told_and_the_service_is_ready() -> None:
    stuck = router_pod(router=waiting("ImagePullBackOff", "not found"))
    before = settled(snapshot(service(ON), ready_pod()))
    plan = decide(replace(before, routers=(stuck,)), NOW)
    truth, reason, message = condition(plan, "RouterReady")
    assert (truth, reason[:5]) == ("False", "Image")
    assert message.endswith("Requests go to the engines directly")
    assert condition(plan, "Ready")[0] == "True"
    assert any(notice.warning for notice in plan.notices)


@pytest.mark.parametrize(
    ("container", "reason", "named"),
    [
        (ended("Error", 1, restartCount=5), "RouterCrashed", "The router exited with code 1"),
        (ended("OOMKilled", 137), "OOMKilled", "raise router.resources.limits.memory"),
    ],
)
def test_a_router_that_ends_is_told(container: dict[str, Any], reason: str, named: str) -> None:
    before = settled(snapshot(service(ON), ready_pod()))
    plan = decide(replace(before, routers=(router_pod(router=container),)), NOW)
    assert condition(plan, "RouterReady")[:2] == ("False", reason)
    assert named in condition(plan, "RouterReady")[2]
    assert condition(plan, "Stalled")[0] == "False"


ENGINE_PODS = {"ready": ready_pod(), "loading": pod(), "none": None}
ROUTER_PODS = {
    "ready": READY_ROUTER,
    "unready": UNREADY_ROUTER,
    "stopping": replace(READY_ROUTER, deleting=True),
    "none": None,
}
WORLD = st.tuples(
    st.booleans(), st.sampled_from(sorted(ENGINE_PODS)), st.sampled_from(sorted(ROUTER_PODS))
)


@given(st.lists(WORLD, min_size=1, max_size=8))
def test_the_service_points_to_who_was_ready_when_anybody_was(
    steps: list[tuple[bool, str, str]],
) -> None:
    now = settled(snapshot(service(OFF), ready_pod()))
    for enabled, engine, router in steps:
        pods, routers = ENGINE_PODS[engine], ROUTER_PODS[router]
        now = replace(
            with_spec(now, ON if enabled else OFF),
            pods=(pods,) if pods else (),
            routers=(routers,) if routers else (),
        )
        plan = decide(now, NOW)
        target = pointed_to(plan, now)
        ready = {ENGINES: engine == "ready", ROUTER: enabled and router == "ready"}
        if enabled:
            assert ready[target] or not any(ready.values())
        else:
            assert target == ENGINES
        # No pod is taken away from a router that the Service points to, before and after.
        stopped = any(
            each.slot == f"{ROUTER} Deployment" and not each.body["spec"]["replicas"]
            for each in plan.applications
        )
        assert not stopped or {target, now.children["Service"].points_to} == {ENGINES}
        turned = target != now.children["Service"].points_to
        assert turned == bool({"RouterInUse", "RouterBypassed"} & set(reasons(plan)))
        now = carried_out(now, plan)
        # The router's Deployment is there whenever the Service points to the router.
        if now.children["Service"].points_to == ROUTER:
            assert f"{ROUTER} Deployment" in now.children


# --- observing and acting


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
