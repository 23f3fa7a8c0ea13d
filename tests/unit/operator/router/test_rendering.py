"""What is made of a router."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
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
from headway_operator.decide import decide
from headway_operator.render.deployment import template_hash
from tests.unit.operator.router.routers import OFF, ON, READY_ROUTER, with_spec
from tests.unit.operator.samples import (
    NOW,
    OPERATOR,
    ready_pod,
    rendered,
    service,
    settled,
    snapshot,
    spec,
)


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
