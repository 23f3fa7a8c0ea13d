"""When the Service points to the router, and what is said of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_operator.api.labels import ENGINES, ROUTER, ROUTER_SLOTS
from headway_operator.decide import decide
from headway_operator.render.deployment import template_hash
from tests.unit.operator.router.routers import (
    OFF,
    ON,
    READY_ROUTER,
    UNREADY_ROUTER,
    pointed_to,
    reasons,
    router_pod,
    with_spec,
)
from tests.unit.operator.samples import (
    NOW,
    carried_out,
    condition,
    ended,
    pod,
    ready_pod,
    rendered,
    service,
    settled,
    snapshot,
    waiting,
)


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
