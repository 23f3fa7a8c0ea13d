"""Which objects are applied, and why."""

from __future__ import annotations

from dataclasses import replace

from headway_operator.decide import applied_notices, decide
from headway_operator.decide.children import applied_hash
from headway_operator.decide.plan import Cause
from headway_operator.memory.refusal import Refusal
from tests.unit.operator.samples import (
    NOW,
    condition,
    later,
    ready_pod,
    service,
    settled,
    snapshot,
    spec,
)


def test_everything_is_applied_to_a_new_service() -> None:
    plan = decide(snapshot(children={}), NOW)
    assert [each.kind for each in plan.applications] == [
        "ConfigMap",
        "NetworkPolicy",
        "Service",
        "PodDisruptionBudget",
        "Deployment",
    ]
    assert {each.cause for each in plan.applications} == {Cause.MISSING}


def test_nothing_is_applied_twice() -> None:
    assert decide(snapshot(), NOW).applications == ()


def test_only_what_changed_is_applied() -> None:
    before = snapshot()
    after = replace(before, service=service(spec(replicas=3), generation=2))
    after = replace(after, spec=snapshot(after.service).spec)
    kinds = [each.kind for each in decide(after, NOW).applications]
    assert kinds == ["ConfigMap", "Deployment"]


def test_field_taken_by_somebody_else_is_taken_back() -> None:
    before = snapshot()
    lost = '{"f:metadata":{"f:labels":{}},"f:spec":{"f:ports":{}}}'
    taken = replace(before.children["Service"], owned_fields=lost)
    plan = decide(replace(before, children={**before.children, "Service": taken}), NOW)
    assert [(each.kind, each.cause) for each in plan.applications] == [("Service", Cause.TAKEN)]
    (notice,) = applied_notices(plan.applications)
    assert (notice.warning, notice.reason) == (True, "Restored")


def test_pinned_runtime_image_wins() -> None:
    record = service(spec(runtime={"image": "mine:1"}), generation=2)
    before = replace(snapshot(), service=record, spec=snapshot(record).spec)
    (deployment,) = (each for each in decide(before, NOW).applications if each.kind == "Deployment")
    images = {
        each["image"] for each in deployment.body["spec"]["template"]["spec"]["initContainers"]
    }
    assert "mine:1" in images


def test_somebody_elses_object_is_left_alone() -> None:
    plan = decide(snapshot(children={}, foreign=("Deployment",)), NOW)
    assert "Deployment" not in [each.kind for each in plan.applications]
    assert condition(plan, "Ready")[:2] == ("False", "NameTaken")
    assert condition(plan, "Stalled")[0] == "True"


def test_service_made_again_at_once_waits_for_the_old_objects_and_does_not_stall() -> None:
    before = snapshot(children={}, leftovers=("Deployment",))
    plan = decide(before, NOW)
    assert "Deployment" not in [each.kind for each in plan.applications]
    assert condition(plan, "Ready")[:2] == ("False", "WaitingForDeletion")
    assert condition(plan, "Progressing")[:2] == ("True", "WaitingForDeletion")
    assert condition(plan, "Stalled")[0] == "False"
    assert not any(notice.warning for notice in plan.notices)
    gone = decide(replace(before, leftovers=()), NOW)
    assert "Deployment" in [each.kind for each in gone.applications]


def test_refused_object_is_not_sent_again_at_once() -> None:
    first = decide(snapshot(children={}), NOW)
    body = first.applications[-1].body
    refusal = Refusal(
        kind="Deployment",
        applied_hash=body["metadata"]["annotations"]["headway.dev/applied-hash"],
        status=422,
        fields=("spec.template.spec.containers[0].resources",),
        resource_version=None,
        retry_at=later(60).unix,
    )
    before = snapshot(children={}, refusals=(refusal,))
    plan = decide(before, NOW)
    assert "Deployment" not in [each.kind for each in plan.applications]
    assert condition(plan, "Ready")[1] == "ObjectRefused"
    assert "resources" in condition(plan, "Ready")[2]
    assert "Deployment" in [each.kind for each in decide(before, later(61)).applications]
    changed = replace(refusal, applied_hash="other")
    again = decide(replace(before, refusals=(changed,)), NOW)
    assert "Deployment" in [each.kind for each in again.applications]


def test_what_the_operator_may_not_do_is_told() -> None:
    body = decide(snapshot(children={}), NOW).applications[-1].body
    refusal = Refusal("Deployment", applied_hash(body), 403, (), None, later(60).unix)
    told = condition(decide(snapshot(children={}, refusals=(refusal,)), NOW), "Ready")
    assert told[:2] == ("False", "Forbidden")
    assert "the operator's role" in told[2]


def test_refusal_of_a_spec_that_was_put_back_is_history() -> None:
    before = settled(snapshot(None, ready_pod()))
    refusal = Refusal("Deployment", "of the spec in between", 422, (), 20, later(60).unix)
    plan = decide(replace(before, refusals=(refusal,)), NOW)
    assert condition(plan, "Ready")[0] == "True"
    assert condition(plan, "Stalled")[0] == "False"
