"""Only what a user controls replaces pods: an operator upgrade alone never does."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from headway_operator.api import InferenceServiceSpec
from headway_operator.api.labels import APPLIED_TEMPLATE, TEMPLATE_INPUTS, TEMPLATE_LABEL
from headway_operator.decide import Plan, decide
from headway_operator.decide.plan import Cause
from headway_operator.memory.memo import Memo
from headway_operator.observe.records import AppliedTemplate
from headway_operator.observe.trimming import child_record
from headway_operator.render import deployment as rendering
from headway_operator.render.takeover import inputs_hash, kept_template
from headway_operator.snapshot import Snapshot
from tests.unit.operator.samples import (
    NOW,
    OPERATOR,
    UID,
    applied,
    condition,
    ready_pod,
    rendered,
    service,
    settled,
    snapshot,
    spec,
)

UPGRADED = replace(OPERATOR, runtime_image="registry/runtime:2")


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Snapshot:
    """A service as the release before has left it; from now on pods are rendered otherwise."""
    before = settled(snapshot(None, ready_pod()))
    monkeypatch.setattr(rendering, "_STOP_MARGIN_SECONDS", 99)
    return before


def upgraded(before: Snapshot, **changes: Any) -> Snapshot:
    """The same service under the next release, perhaps with another spec."""
    record = before.service
    if changes:
        record = replace(record, spec=spec(**changes), generation=2)
    parsed = InferenceServiceSpec.model_validate(record.spec)
    return replace(before, service=record, spec=parsed, operator=UPGRADED, memo=Memo())


def template(plan: Plan) -> dict[str, Any]:
    (body,) = (each.body for each in plan.applications if each.kind == "Deployment")
    found: dict[str, Any] = body["spec"]["template"]
    return found


def grace_period(plan: Plan) -> int:
    seconds: int = template(plan)["spec"]["terminationGracePeriodSeconds"]
    return seconds


def test_operator_upgrade_alone_changes_no_object(running: Snapshot) -> None:
    plan = decide(upgraded(running), NOW)
    assert plan.applications == ()
    assert not plan.status_changed
    assert condition(plan, "Ready")[0] == "True"


def test_change_of_scale_after_an_upgrade_keeps_the_pods(running: Snapshot) -> None:
    plan = decide(upgraded(running, replicas=3), NOW)
    assert template(plan) == rendered_before(running)
    assert condition(plan, "Progressing")[2].startswith("1 of 3")


def rendered_before(running: Snapshot) -> dict[str, Any]:
    rollout = running.rollout
    assert rollout is not None
    assert rollout.template is not None
    found: dict[str, Any] = json.loads(rollout.template.text)
    return found


@pytest.mark.parametrize(
    "change",
    [
        {"model": {"uri": "pvc://models/other"}},
        {"engine": {"args": ["--enforce-eager"]}},
        {"runtime": {"image": "mine:1"}},
    ],
)
def test_change_by_the_user_brings_the_new_rendering(
    running: Snapshot, change: dict[str, Any]
) -> None:
    plan = decide(upgraded(running, **change), NOW)
    assert grace_period(plan) == 30 + 30 + 99
    images = {each["image"] for each in template(plan)["spec"]["initContainers"]}
    assert change.get("runtime", {}).get("image", UPGRADED.runtime_image) in images
    assert condition(plan, "Ready")[:2] == ("False", "RollingOut")


def test_what_somebody_else_changed_is_put_back_as_it_was(running: Snapshot) -> None:
    deployment = running.children["Deployment"]
    tree = json.loads(deployment.owned_fields)
    del tree["f:spec"]["f:template"]["f:spec"]["f:containers"]
    edited = replace(deployment, owned_fields=json.dumps(tree))
    plan = decide(
        replace(upgraded(running), children={**running.children, "Deployment": edited}), NOW
    )
    (application,) = plan.applications
    assert application.cause is Cause.TAKEN
    assert template(plan) == rendered_before(running)


def test_rollout_restart_survives(running: Snapshot) -> None:
    body = applied(rendered()["Deployment"])
    body["spec"]["template"]["metadata"]["annotations"] = {
        "kubectl.kubernetes.io/restartedAt": "now"
    }
    restarted = {**running.children, "Deployment": child_record(body)}
    assert decide(replace(running, children=restarted, memo=Memo()), NOW).applications == ()


def written(**changes: str) -> AppliedTemplate:
    annotations = rendered()["Deployment"]["metadata"]["annotations"]
    made = AppliedTemplate(annotations[TEMPLATE_INPUTS], annotations[APPLIED_TEMPLATE])
    return replace(made, **changes)


def test_applied_template_is_the_template() -> None:
    deployment = rendered()["Deployment"]
    kept = kept_template(written(), written().inputs)
    assert kept == deployment["spec"]["template"]


@pytest.mark.parametrize(
    "text",
    ["", "{", "7", "[]", '{"metadata":{}}', '{"metadata":{"labels":7}}', "[" * 100_000],
)
def test_annotation_that_is_no_template_is_not_obeyed(text: str) -> None:
    assert kept_template(written(text=text), written().inputs) is None


def test_edited_annotation_is_not_obeyed() -> None:
    edited = written().text.replace("vllm/vllm-openai", "elsewhere/vllm-openai")
    assert edited != written().text
    assert kept_template(written(text=edited), written().inputs) is None


def test_template_too_large_for_an_annotation_is_applied_all_the_same() -> None:
    env = [{"name": f"V{at}", "value": "x" * 8192} for at in range(20)]
    deployment = rendered(spec(engine={"env": env}))["Deployment"]
    assert APPLIED_TEMPLATE not in deployment["metadata"]["annotations"]
    assert TEMPLATE_LABEL in deployment["spec"]["template"]["metadata"]["labels"]


def test_fields_at_their_defaults_are_no_inputs() -> None:
    plain, explicit = (
        InferenceServiceSpec.model_validate(spec(engine=engine))
        for engine in ({}, {"drainSeconds": 30, "maxNumSeqs": 1024, "args": []})
    )
    assert inputs_hash("demo", UID, plain) == inputs_hash("demo", UID, explicit)


def test_another_service_of_the_name_has_other_inputs() -> None:
    parsed = InferenceServiceSpec.model_validate(service().spec)
    assert inputs_hash("demo", UID, parsed) != inputs_hash("demo", "other", parsed)


def test_memo_keeps_one_result_by_name() -> None:
    memo, calls = Memo(), list[int]()

    def double(number: int) -> int:
        calls.append(number)
        return 2 * number

    for argument in (1, 1, 2, 1):
        assert memo.last("double", argument, double) == 2 * argument
    assert calls == [1, 2, 1]
