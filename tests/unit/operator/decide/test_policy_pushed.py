"""To whom the policy goes, and what is said of who does not have it."""

from __future__ import annotations

from dataclasses import replace

from headway_operator.decide import decide
from headway_operator.memory.tuning import OperatingPoint, Tuning
from headway_operator.observe.sidecars import Outcome, SidecarReport
from headway_runtime.policy import Stamp
from tests.unit.operator.samples import (
    NOW,
    OPERATOR,
    carried_out,
    condition,
    later,
    loading_pod,
    pod,
    ready_pod,
    service,
    settled,
    snapshot,
    spec,
)


def test_policy_goes_to_every_pod_with_a_sidecar() -> None:
    bare, deleting = pod("demo-1"), replace(ready_pod("demo-4"), deleting=True)
    plan = decide(snapshot(None, bare, loading_pod("demo-2"), ready_pod("demo-3"), deleting), NOW)
    assert [each.name for each in plan.recipients] == ["demo-2", "demo-3"]
    assert plan.published is not None
    assert plan.published.policy.stamp == Stamp(1, OPERATOR.epoch, 1)


def test_acknowledged_policy_is_not_pushed_again() -> None:
    assert decide(settled(snapshot(None, ready_pod())), NOW).recipients == ()


def test_live_change_is_pushed_to_running_pods() -> None:
    before = settled(snapshot(None, ready_pod()))
    record = replace(
        service(spec(scheduling={"mode": "Off"}), generation=2), status=before.service.status
    )
    plan = decide(replace(before, service=record, spec=snapshot(record).spec), NOW)
    assert [each.name for each in plan.recipients] == ["demo-1"]
    assert [each.kind for each in plan.applications] == ["ConfigMap"]
    assert condition(plan, "PolicyApplied")[0] == "True"
    assert plan.status.policy_generation == 1


def test_policy_nobody_acknowledges_shows_after_15_seconds() -> None:
    before = snapshot(None, ready_pod())
    plan = decide(before, NOW)
    waits = replace(
        before, published=plan.published, service=replace(before.service, status=plan.status)
    )
    refused = {ready_pod().uid: SidecarReport(refusal=Outcome.UNREACHABLE)}
    waits = replace(waits, reports=refused)
    assert condition(decide(waits, later(14)), "PolicyApplied")[0] != "False"
    late = decide(waits, later(15))
    assert condition(late, "PolicyApplied")[:2] == ("False", "NotAcknowledged")
    assert "demo-1" in condition(late, "PolicyApplied")[2]
    assert "Unreachable" in condition(late, "PolicyApplied")[2]
    assert condition(late, "Ready")[0] == "True"


def test_policies_that_follow_each_other_fast_hide_no_pod_that_is_cut_off() -> None:
    now = settled(snapshot(None, ready_pod(), loading_pod("demo-2")))
    cut_off = "uid-of-demo-2"
    for tick in range(1, 7):
        tuning = Tuning(OperatingPoint(theta_ppm=tick))
        moment = later(5 * tick)
        plan = decide(replace(now, tuning=tuning), moment)
        assert {each.uid for each in plan.recipients} == {ready_pod().uid, cut_off}
        heard = now.reports[cut_off]
        now = carried_out(replace(now, tuning=tuning), plan)
        now = replace(now, reports={**now.reports, cut_off: heard})
        truth = condition(decide(now, moment), "PolicyApplied")
        # The first policy it missed was decided at 5 s.
        assert (truth[0] == "False") == (5 * tick >= 20), tick
    assert "demo-2" in truth[2]
    assert "demo-1" not in truth[2]


def test_a_push_that_fails_once_is_no_alarm_however_old_the_policy_before_it() -> None:
    before = settled(snapshot(None, ready_pod()))
    newer = decide(replace(before, tuning=Tuning(OperatingPoint(theta_ppm=1))), later(60))
    failed = replace(before.reports[ready_pod().uid], refusal=Outcome.UNREACHABLE)
    now = replace(
        before,
        tuning=newer.tuning,
        published=newer.published,
        reports={ready_pod().uid: failed},
    )
    assert condition(decide(now, later(62)), "PolicyApplied")[0] == "True"
    assert condition(decide(now, later(76)), "PolicyApplied")[:2] == ("False", "NotAcknowledged")


def test_other_policy_of_the_same_stamp_is_no_acknowledgement() -> None:
    before = settled(snapshot(None, ready_pod()))
    report = replace(before.reports["uid-of-demo-1"], refusal=Outcome.OUTDATED)
    plan = decide(replace(before, reports={"uid-of-demo-1": report}), NOW)
    assert [each.name for each in plan.recipients] == ["demo-1"]


def test_engine_that_schedules_by_itself_is_told() -> None:
    before = settled(snapshot(None, ready_pod()))
    report = replace(before.reports["uid-of-demo-1"], stock_reason="PipelineParallel")
    plan = decide(replace(before, reports={"uid-of-demo-1": report}), NOW)
    assert condition(plan, "PolicyApplied")[:2] == ("False", "EngineRunsStock")
    assert "PipelineParallel" in condition(plan, "PolicyApplied")[2]
