"""Classes, tenants and priorities: from what a user declares to what pods are told."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from headway_operator.api import InferenceServiceSpec
from headway_operator.api.labels import APPLIED_TEMPLATE, TEMPLATE_LABEL
from headway_operator.decide import decide
from headway_operator.observe.records import AppliedTemplate
from headway_operator.observe.sidecars import Outcome, SidecarReport
from headway_operator.render import render_children
from headway_operator.render.arguments import DOOR_CLASS, SCHEDULER_CLASS
from headway_operator.render.hashing import content_hash
from headway_operator.render.takeover import inputs_hash, policy_version
from headway_runtime.policy import (
    Policy,
    PriorityCoefficients,
    Stamp,
    Tenant,
    TrafficClass,
    WhenUnmet,
    decode,
    encode,
)
from tests.unit.operator.samples import (
    NOW,
    OPERATOR,
    UID,
    blueprint,
    condition,
    later,
    ready_pod,
    rendered,
    service,
    settled,
    snapshot,
    spec,
)

REPOSITORY = Path(__file__).parents[3]
HASH = "0123456789abcdef" * 4
SHARED = spec(
    classes=[
        {
            "name": "chat",
            "ttftMilliseconds": 500,
            "weight": 4,
            "whenUnmet": "Shed",
            "maxQueued": 200,
        },
        {"name": "bulk"},
    ],
    tenants=[{"name": "red", "weight": 3, "apiKeySHA256": HASH}, {"name": "blue"}],
    trustHeaders=True,
    scheduling={
        "fairnessWindow": 50,
        "priority": {"basePercent": 20, "depthPercent": 50, "progressPercent": 30, "learn": True},
    },
)


def baseline(children: dict[str, Any]) -> Policy:
    return decode(children["ConfigMap"]["data"]["baseline.json"].encode())


def says_what_was_declared(policy: Policy) -> bool:
    return (
        policy.classes
        == (
            TrafficClass("chat", 500, weight=4, when_unmet=WhenUnmet.SHED, max_queued=200),
            TrafficClass("bulk"),
        )
        and policy.tenants == (Tenant("red", 3, HASH), Tenant("blue"))
        and policy.trust_headers
        and policy.fairness_window == 50
        and policy.priority == PriorityCoefficients(20, 50, 30, learn=True)
    )


# --- what is declared


def test_what_is_not_declared_has_the_documented_defaults() -> None:
    read = InferenceServiceSpec.model_validate(spec(classes=[{"name": "chat"}]))
    (chat,), scheduling = read.classes, read.scheduling
    assert (chat.weight, chat.when_unmet, chat.max_queued) == (1, "Queue", None)
    assert (read.tenants, read.trust_headers, scheduling.fairness_window) == ((), False, 100)
    assert scheduling.priority.model_dump() == {
        "base_percent": 50,
        "depth_percent": 30,
        "progress_percent": 20,
        "learn": False,
    }


@pytest.mark.parametrize(
    "change",
    [
        {"classes": [{"name": "chat", "weight": 0}]},
        {"classes": [{"name": "chat", "weight": 101}]},
        {"classes": [{"name": "chat", "whenUnmet": "Drop"}]},
        {"classes": [{"name": "chat", "maxQueued": 0}]},
        {"classes": [{"name": "chat", "maxQueued": 100_001}]},
        {"tenants": [{"name": "Team Red"}]},
        {"tenants": [{"name": "red", "weight": 0}]},
        {"tenants": [{"name": "red", "apiKeySHA256": "sk-an-api-key-itself"}]},
        {"tenants": [{"name": "red", "apiKeySHA256": HASH.upper()}]},
        {"tenants": [{"name": f"t{number}"} for number in range(65)]},
        {"scheduling": {"fairnessWindow": 0}},
        {"scheduling": {"fairnessWindow": 10_001}},
        {"scheduling": {"priority": {"basePercent": 101}}},
    ],
    ids=str,
)
def test_what_is_out_of_bounds_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        InferenceServiceSpec.model_validate(spec(**change))


def test_a_key_written_where_its_hash_belongs_is_not_repeated() -> None:
    fields = spec(tenants=[{"name": "red", "apiKeySHA256": "sk-an-api-key-itself"}])
    plan = decide(snapshot(service(fields)), NOW)
    told = condition(plan, "Ready")
    assert told[:2] == ("False", "InvalidSpec")
    assert "spec.tenants.0.apiKeySHA256" in told[2]
    assert "sk-an" not in str([plan.status, plan.notices])


# --- what pods are told


def test_the_baseline_says_what_was_declared() -> None:
    assert says_what_was_declared(baseline(rendered(SHARED)))


def test_pushed_policies_say_what_was_declared() -> None:
    plan = decide(snapshot(service(SHARED), ready_pod()), NOW)
    assert plan.published is not None
    assert says_what_was_declared(plan.published.policy)
    assert [each.name for each in plan.recipients] == ["demo-1"]


def test_a_service_that_uses_nothing_new_is_told_in_the_first_version() -> None:
    data = rendered(spec(classes=[{"name": "chat", "ttftMilliseconds": 9}]))["ConfigMap"]["data"]
    assert json.loads(data["baseline.json"])["version"] == 1


def test_sharing_is_live() -> None:
    plain, shared = (InferenceServiceSpec.model_validate(each) for each in (spec(), SHARED))
    assert inputs_hash("demo", UID, plain) == inputs_hash("demo", UID, shared)
    assert rendered(SHARED)["Deployment"] == rendered(spec())["Deployment"]


def test_the_example_says_what_it_shows() -> None:
    example = yaml.safe_load((REPOSITORY / "examples" / "tenants.yaml").read_text("utf-8"))
    policy = baseline(rendered(example["spec"]))
    assert [each.name for each in policy.tenants] == ["research", "support"]
    assert [each.when_unmet for each in policy.classes].count(WhenUnmet.SHED) == 1


@pytest.mark.parametrize("path", [SCHEDULER_CLASS, DOOR_CLASS])
def test_engines_are_started_with_classes_that_there_are(path: str) -> None:
    module, _, name = path.rpartition(".")
    source = REPOSITORY / "runtime" / f"{module.replace('.', '/')}.py"
    assert name in {
        each.name for each in ast.parse(source.read_bytes()).body if isinstance(each, ast.ClassDef)
    }


# --- pods of the release before, which reads the first version alone


def before_doors(deployment: dict[str, Any]) -> dict[str, Any]:
    """The pod template of a Deployment as the release before would have rendered it."""
    template: dict[str, Any] = json.loads(json.dumps(deployment["spec"]["template"]))
    for container in template["spec"]["containers"]:
        arguments = container["args"]
        at = arguments.index("--middleware")
        assert arguments[at + 1] == DOOR_CLASS
        del arguments[at : at + 2]
    del template["metadata"]["labels"][TEMPLATE_LABEL]
    template["metadata"]["labels"][TEMPLATE_LABEL] = content_hash(template)
    return template


def children_beside(
    template: dict[str, Any], fields: dict[str, Any], generation: int = 1
) -> dict[str, Any]:
    """What is rendered while pods of that template run and nothing asks to replace them."""
    parsed = InferenceServiceSpec.model_validate(fields)
    applied = AppliedTemplate(inputs_hash("demo", UID, parsed), json.dumps(template))
    found = render_children(replace(blueprint(fields, generation=generation), applied=applied))
    return {child["kind"]: child for child in found}


def test_older_pods_are_kept_and_get_a_baseline_that_they_can_start_with() -> None:
    older = before_doors(rendered()["Deployment"])
    children = children_beside(older, SHARED)
    assert children["Deployment"]["spec"]["template"] == older
    assert json.loads(children["ConfigMap"]["data"]["baseline.json"])["version"] == 1
    assert [each.name for each in baseline(children).classes] == ["chat", "bulk"]
    assert baseline(children).classes[0].ttft_ms == 500


def test_older_pods_that_run_keep_the_policy_they_have() -> None:
    older = before_doors(rendered()["Deployment"])
    told_before = baseline(children_beside(older, spec(), generation=1))
    assert told_before.stamp == Stamp(1, 0, 0)
    assert baseline(children_beside(older, SHARED, generation=2)).stamp < told_before.stamp
    assert baseline(children_beside(older, spec(), generation=3)).stamp == Stamp(3, 0, 0)


def test_pods_that_replace_them_start_with_all_that_was_declared() -> None:
    older = before_doors(rendered()["Deployment"])
    replaced = {**SHARED, "runtime": {"image": "registry/runtime:1"}}
    changed = AppliedTemplate("of other inputs", json.dumps(older))
    children = {
        child["kind"]: child
        for child in render_children(replace(blueprint(replaced), applied=changed))
    }
    assert says_what_was_declared(baseline(children))


def test_a_template_of_this_release_reads_the_newest_version() -> None:
    deployment = rendered()["Deployment"]
    assert policy_version(deployment["spec"]["template"]) == 2
    kept = json.loads(deployment["metadata"]["annotations"][APPLIED_TEMPLATE])
    assert policy_version(kept) == 2
    assert policy_version(before_doors(deployment)) == 1
    assert policy_version({"metadata": {}}) == 1


@pytest.mark.parametrize("refusal", [Outcome.BAD_FORMAT, Outcome.UNREACHABLE])
def test_pods_that_cannot_read_the_policy_are_told_with_the_remedy(refusal: Outcome) -> None:
    before = settled(snapshot(service(), ready_pod()))
    record = replace(service(SHARED, generation=2), status=before.service.status)
    plan = decide(replace(before, service=record, spec=snapshot(record).spec), NOW)
    assert plan.published is not None
    assert json.loads(encode(plan.published.policy))["version"] == 2
    report = SidecarReport(before.reports[ready_pod().uid].stamp, refusal, asked=True)
    refused = replace(
        before,
        service=record,
        spec=snapshot(record).spec,
        published=plan.published,
        reports={ready_pod().uid: report},
    )
    status, reason, message = condition(decide(refused, later(15)), "PolicyApplied")
    assert (status, reason) == ("False", "NotAcknowledged")
    assert refusal.value in message
    remedy = f"set runtime.image to {OPERATOR.runtime_image}"
    assert (remedy in message) == (refusal is Outcome.BAD_FORMAT)
