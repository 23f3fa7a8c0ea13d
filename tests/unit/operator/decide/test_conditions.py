"""What the conditions say of a service."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headway_operator.decide import decide
from headway_operator.observe.records import ConditionRecord, RolloutRecord
from headway_operator.snapshot import Snapshot
from tests.unit.operator.samples import (
    CRASHING,
    NOW,
    STALLING,
    carried_out,
    condition,
    loading_pod,
    pod,
    ready_pod,
    service,
    settled,
    snapshot,
    spec,
)


def with_rollout(before: Snapshot, **changes: Any) -> Snapshot:
    deployment = before.children["Deployment"]
    assert deployment.rollout is not None
    rollout = replace(deployment.rollout, **changes)
    return replace(
        before, children={**before.children, "Deployment": replace(deployment, rollout=rollout)}
    )


def test_new_service_is_starting() -> None:
    plan = decide(snapshot(children={}), NOW)
    assert condition(plan, "Ready")[:2] == ("False", "PodsStarting")
    assert condition(plan, "Progressing")[:2] == ("True", "PodsStarting")
    assert condition(plan, "ModelLoaded")[:2] == ("False", "ModelLoading")
    assert condition(plan, "PolicyApplied")[:2] == ("Unknown", "NoPods")
    assert condition(plan, "Stalled")[:2] == ("False", "AsExpected")


def test_service_is_ready_when_its_pods_answer() -> None:
    plan = decide(settled(snapshot(None, ready_pod())), NOW)
    assert condition(plan, "Ready")[:2] == ("True", "PodsReady")
    assert condition(plan, "Progressing")[:2] == ("False", "UpToDate")
    assert condition(plan, "ModelLoaded")[:2] == ("True", "ModelLoaded")
    assert condition(plan, "PolicyApplied")[:2] == ("True", "PolicyApplied")
    assert plan.status.policy_generation == 1
    assert plan.status.ready_replicas == 1


def test_old_pods_do_not_make_a_new_spec_ready() -> None:
    old = ready_pod(template="old")
    plan = decide(snapshot(None, old), NOW)
    assert condition(plan, "Ready")[:2] == ("False", "RollingOut")
    assert condition(plan, "Progressing")[:2] == ("True", "RollingOut")
    assert plan.status.ready_replicas == 0


def test_loading_pod_is_not_ready() -> None:
    plan = decide(snapshot(None, loading_pod()), NOW)
    assert condition(plan, "ModelLoaded")[:2] == ("False", "ModelLoading")
    assert condition(plan, "Ready")[0] == "False"


def test_no_replicas_is_not_ready_and_says_so() -> None:
    plan = decide(snapshot(service(spec(replicas=0))), NOW)
    assert condition(plan, "Ready")[:2] == ("False", "ScaledToZero")
    assert condition(plan, "Progressing")[:2] == ("False", "UpToDate")
    assert condition(plan, "Stalled")[0] == "False"


def test_what_will_not_heal_stalls_and_clears_when_fixed() -> None:
    plan = decide(snapshot(None, STALLING), NOW)
    assert condition(plan, "Ready")[:2] == ("False", "InvalidImageName")
    assert condition(plan, "Stalled")[:2] == ("True", "InvalidImageName")
    assert condition(plan, "Progressing")[0] == "False"
    fixed = decide(carried_out(snapshot(None, ready_pod()), plan), NOW)
    assert condition(fixed, "Ready")[0] == "True"
    assert condition(fixed, "Stalled")[0] == "False"


def test_what_may_heal_does_not_stall() -> None:
    plan = decide(snapshot(None, CRASHING), NOW)
    assert condition(plan, "Ready")[:2] == ("False", "EngineCrashed")
    assert condition(plan, "Stalled")[0] == "False"


def test_problem_outlasting_the_start_up_time_stalls() -> None:
    late = {"Progressing": ConditionRecord("False", "ProgressDeadlineExceeded")}
    gpu = pod(scheduled=("False", "Unschedulable", "0/1 nodes are available: 1 Insufficient x/gpu"))
    plan = decide(with_rollout(snapshot(None, gpu), conditions=late, observed_generation=1), NOW)
    assert condition(plan, "Stalled")[:2] == ("True", "InsufficientGPU")
    plan = decide(with_rollout(snapshot(), conditions=late, observed_generation=1), NOW)
    assert condition(plan, "Stalled")[:2] == ("True", "ProgressDeadlineExceeded")
    stale = with_rollout(snapshot(), conditions=late, observed_generation=0)
    assert condition(decide(stale, NOW), "Stalled")[0] == "False"


def test_invalid_stored_spec_is_told_and_touches_nothing() -> None:
    record = service({"model": {"uri": "pvc://x"}, "engine": {"image": 7, "args": "secret"}})
    plan = decide(snapshot(record, ready_pod()), NOW)
    assert condition(plan, "Ready")[:2] == ("False", "InvalidSpec")
    assert condition(plan, "Stalled")[:2] == ("True", "InvalidSpec")
    assert "spec.engine.image" in condition(plan, "Ready")[2]
    assert "secret" not in condition(plan, "Ready")[2]
    assert (plan.applications, plan.recipients) == ((), ())


@pytest.mark.parametrize("rollout", [None, RolloutRecord(None, 1, 0, 0, {})])
def test_missing_or_new_deployment_is_survived(rollout: RolloutRecord | None) -> None:
    before = snapshot()
    deployment = replace(before.children["Deployment"], rollout=rollout)
    plan = decide(replace(before, children={**before.children, "Deployment": deployment}), NOW)
    assert condition(plan, "Ready")[0] == "False"
