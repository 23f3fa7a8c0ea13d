from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_operator.decide import decide
from headway_operator.decide.children import applied_hash
from headway_operator.decide.notices import decide_notices
from headway_operator.decide.plan import Cause, Plan
from headway_operator.decide.retune import Change, Reason, Retuned, What
from headway_operator.memory.refusal import Refusal
from headway_operator.memory.tuning import OperatingPoint, Tuning
from headway_operator.observe.engine_metrics.sample import EngineSample, ServiceMetrics, Source
from headway_operator.observe.records import ConditionRecord, PodRecord, RolloutRecord
from headway_operator.observe.sidecars import HeldPoint, Outcome, SidecarReport
from headway_operator.snapshot import Snapshot
from headway_runtime.policy import Stamp
from tests.unit.operator.samples import (
    NOW,
    OPERATOR,
    carried_out,
    condition,
    ended,
    later,
    loading_pod,
    pod,
    ready_pod,
    service,
    settled,
    snapshot,
    spec,
    waiting,
)

STALLING = pod(engine=waiting("InvalidImageName"))
CRASHING = pod(engine=ended("Error", 1))


def with_rollout(before: Snapshot, **changes: Any) -> Snapshot:
    deployment = before.children["Deployment"]
    assert deployment.rollout is not None
    rollout = replace(deployment.rollout, **changes)
    return replace(
        before, children={**before.children, "Deployment": replace(deployment, rollout=rollout)}
    )


# --- what is applied


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
    assert any(notice.reason == "Restored" and notice.warning for notice in plan.notices)


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


# --- conditions


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


# --- policy


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


# --- retuning

CLASSES = [
    {"name": "chat", "ttftMilliseconds": 500, "tpotMilliseconds": 30},
    {"name": "batch", "deadlineSeconds": 600},
]
POINT = OperatingPoint(250_000, token_budget=256, max_batch_size=8, background_limit=4)


def tuned(mode: str = "Act", **scheduling: int) -> Snapshot:
    fields = spec(
        classes=CLASSES,
        scheduling={"mode": mode, **scheduling},
        engine={"maxNumSeqs": 64, "maxNumBatchedTokens": 2048},
    )
    return snapshot(service(fields), ready_pod(), tuning=Tuning(POINT))


@pytest.mark.parametrize("mode", ["Act", "Shadow"])
def test_policy_says_what_was_tuned(mode: str) -> None:
    plan = decide(tuned(mode), NOW)
    assert plan.published is not None
    policy = plan.published.policy
    assert (policy.theta_ppm, policy.token_budget, policy.max_batch_size) == (250_000, 256, 8)
    assert {each.name: each.max_running for each in policy.classes} == {"chat": None, "batch": 4}
    assert policy.classes[0].tpot_ms == 30


def test_mode_off_leaves_engines_as_declared_and_forgets_nothing() -> None:
    plan = decide(tuned("Off", tokenBudget=1024), NOW)
    assert plan.published is not None
    policy = plan.published.policy
    assert (policy.theta_ppm, policy.token_budget, policy.max_batch_size) == (None, 1024, None)
    assert all(each.max_running is None for each in policy.classes)
    assert plan.tuning is not None
    assert plan.tuning.point == POINT


def test_what_was_tuned_never_exceeds_what_the_user_allows() -> None:
    plan = decide(tuned(tokenBudget=128, maxBatchSize=2), NOW)
    assert plan.published is not None
    assert (plan.published.policy.token_budget, plan.published.policy.max_batch_size) == (128, 2)


def test_a_new_operator_asks_the_pods_before_it_decides() -> None:
    unknown = replace(tuned(), tuning=None)
    plan = decide(unknown, NOW)
    assert (plan.published, plan.recipients, plan.tuning) == (None, (), None)
    held = HeldPoint(250_000, 256, 8, (("batch", 4),))
    older, newer = Stamp(1, 5, 9), Stamp(1, 6, 1)
    reports = {
        "uid-of-demo-1": SidecarReport(newer, held=held, asked=True),
        "uid-of-demo-2": SidecarReport(older, held=HeldPoint(token_budget=64), asked=True),
        "uid-of-demo-3": SidecarReport(asked=True),  # it did not answer
    }
    pods = tuple(ready_pod(f"demo-{n}") for n in (1, 2, 3))
    plan = decide(replace(unknown, pods=pods, reports=reports), NOW)
    assert plan.tuning is not None
    assert plan.tuning.point == POINT
    assert plan.published is not None
    assert plan.published.policy.stamp == Stamp(1, OPERATOR.epoch, 1)
    assert len(plan.recipients) == 3


def test_a_value_at_the_users_own_is_not_taken_for_tuned() -> None:
    held = HeldPoint(token_budget=2048, max_batch_size=64)
    report = SidecarReport(Stamp(1, 6, 1), held=held, asked=True)
    before = replace(tuned(), tuning=None, reports={ready_pod().uid: report})
    plan = decide(before, NOW)
    assert plan.tuning == Tuning()


def test_a_leader_that_returns_asks_again() -> None:
    before = settled(tuned())
    stamp = Stamp(1, OPERATOR.epoch + 1, 3)
    held = HeldPoint(theta_ppm=300_000, token_budget=512)
    report = SidecarReport(stamp, held=held, asked=True)
    returned = replace(OPERATOR, epoch=OPERATOR.epoch + 2)
    plan = decide(replace(before, operator=returned, reports={ready_pod().uid: report}), NOW)
    assert plan.tuning is not None
    assert plan.tuning.point == OperatingPoint(theta_ppm=300_000, token_budget=512)


def test_leaving_the_declared_value_and_coming_back_are_events() -> None:
    down = Change(What.TOKEN_BUDGET, None, 768, Reason.TPOT_MISSED, "TPOT of chat is 2.00")
    further = Change(What.TOKEN_BUDGET, 768, 600, Reason.TPOT_MISSED, "TPOT of chat is 1.20")
    theta = Change(What.THETA, None, 200_000, Reason.UTILISATION, "GPUs are 50 % busy")
    status = snapshot().service.status
    retuned = Retuned(Tuning(), (down, further, theta))
    notices = decide_notices(status, status, {}, (), retuned)
    assert [(each.reason, each.message) for each in notices] == [
        ("Retuned", "Token budget as declared -> 768: TPOT of chat is 2.00")
    ]


def test_a_target_out_of_reach_is_a_warning() -> None:
    status = snapshot().service.status
    retuned = Retuned(Tuning(), (), out_of_reach="TPOT of class chat is 3.00 of its target")
    (notice,) = decide_notices(status, status, {}, (), retuned)
    assert notice.warning
    assert (notice.reason, notice.message) == ("TargetOutOfReach", retuned.out_of_reach)


# --- metrics

SAMPLE = EngineSample(*([0.0] * 13))


def measured(source: Source | None, since: float = 0.0, **more: Any) -> ServiceMetrics:
    pods = {ready_pod().uid: (SAMPLE,)} if source else {}
    more = {"collected": True, **more}
    return ServiceMetrics(collection=9, pods=pods, source=source, since=since, **more)


def metrics_condition(before: Snapshot, now: Any = NOW) -> tuple[str, str, str]:
    return condition(decide(before, now), "MetricsAvailable")


def test_condition_says_where_metrics_come_from() -> None:
    before = snapshot(None, ready_pod())
    assert metrics_condition(snapshot())[:2] == ("Unknown", "NoPods")
    seen = replace(before, metrics=measured(Source.PROMETHEUS))
    assert metrics_condition(seen)[:2] == ("True", "Prometheus")
    trouble = "Prometheus answers HTTP 503"
    asked = measured(Source.DIRECT_SCRAPE, trouble=trouble, expected=True)
    found = metrics_condition(replace(before, metrics=asked))
    assert found[:2] == ("True", "DirectScrape")
    assert trouble in found[2]
    assert metrics_condition(replace(before, metrics=measured(None)))[:2] == ("False", "NoMetrics")
    waiting_for_its_turn = replace(before, metrics=measured(None, unasked=True))
    assert metrics_condition(waiting_for_its_turn)[0] == "Unknown"
    missing = replace(before, metrics=measured(None, missing="headway_steps_total"))
    found = metrics_condition(missing)
    assert found[:2] == ("False", "MetricsMissing")
    assert "headway_steps_total" in found[2]


def test_one_late_scrape_is_no_news() -> None:
    seen = settled(replace(snapshot(None, ready_pod()), metrics=measured(Source.PROMETHEUS)))
    late = replace(seen, metrics=measured(Source.DIRECT_SCRAPE, NOW.unix, expected=True))
    assert metrics_condition(late, later(10))[1] == "Prometheus"
    assert not decide(late, later(10)).status_changed
    lasting = decide(late, later(20))
    assert condition(lasting, "MetricsAvailable")[1] == "DirectScrape"
    assert [(each.warning, each.reason) for each in lasting.notices] == [(True, "DirectScrape")]
    back = replace(carried_out(late, lasting), metrics=measured(Source.PROMETHEUS, later(30).unix))
    told = decide(back, later(60)).notices
    assert [(each.warning, each.reason) for each in told] == [(False, "Prometheus")]


def test_without_metrics_everything_is_held() -> None:
    before = replace(tuned(), metrics=measured(None))
    plan = decide(before, NOW)
    assert plan.tuning == before.tuning
    assert plan.changes == ()


# --- invariants

PODS: dict[str, PodRecord] = {
    "none": pod(),
    "loading": loading_pod(),
    "ready": ready_pod(),
    "stalling": STALLING,
    "crashing": CRASHING,
    "old": ready_pod(template="old"),
}
STATES = st.tuples(
    st.lists(st.sampled_from(sorted(PODS)), max_size=4),
    st.integers(0, 3),
    st.sampled_from(["Act", "Off"]),
    st.booleans(),
)


def made(state: tuple[list[str], int, str, bool]) -> Snapshot:
    kinds, replicas, mode, is_new = state
    pods = [
        replace(PODS[kind], name=f"demo-{at}", uid=f"uid-{at}") for at, kind in enumerate(kinds)
    ]
    record = service(spec(replicas=replicas, scheduling={"mode": mode}))
    return snapshot(record, *pods, **({"children": {}} if is_new else {}))


@given(STATES)
def test_same_snapshot_gives_the_same_plan(state: tuple[list[str], int, str, bool]) -> None:
    assert decide(made(state), NOW) == decide(made(state), NOW)


@given(STATES, st.integers(0, 100_000))
def test_nothing_happens_while_nothing_changes(
    state: tuple[list[str], int, str, bool], seconds: int
) -> None:
    before = settled(made(state))
    plan = decide(before, later(seconds))
    assert not plan.status_changed
    assert (plan.notices, plan.applications, plan.recipients) == ((), (), ())
    assert plan.published == before.published


@given(STATES, STATES, st.integers(1, 1000))
def test_transition_time_moves_only_with_the_status(
    old: tuple[list[str], int, str, bool],
    new: tuple[list[str], int, str, bool],
    seconds: int,
) -> None:
    before = settled(made(old))
    after = replace(made(new), service=replace(made(new).service, status=before.service.status))
    plan = decide(after, later(seconds))
    for was, now in zip(before.service.status.conditions, plan.status.conditions, strict=True):
        moved = was.last_transition_time != now.last_transition_time
        assert moved == (was.status != now.status)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["Act", "Shadow", "Off"])), max_size=8)
)
def test_stamp_rises_exactly_when_something_changed(steps: list[tuple[int, str]]) -> None:
    generation, epoch, mode = 1, 1, "Act"
    published, stamps = None, []
    for step, wanted in steps:
        epoch += step == 0
        generation += wanted != mode
        mode = wanted
        before = snapshot(
            service(spec(scheduling={"mode": mode}), generation=generation),
            published=published,
            operator=replace(OPERATOR, epoch=epoch),
        )
        published = decide(before, NOW).published
        assert published is not None
        assert published.policy.mode.value == mode
        stamps.append((published.policy.stamp, (generation, epoch)))
    for (earlier, old), (following, new) in itertools.pairwise(stamps):
        assert following >= earlier
        assert (following > earlier) == (old != new)


def test_content_change_within_a_term_raises_the_counter() -> None:
    first = decide(snapshot(), NOW).published
    assert first is not None
    other = replace(first, policy=replace(first.policy, max_batch_size=5))
    again = decide(snapshot(published=other), later(9)).published
    assert again is not None
    assert again.policy.stamp == replace(first.policy.stamp, counter=2)
    assert again.since == later(9).unix


# --- events


def reasons(plan: Plan) -> list[tuple[str, bool]]:
    return [(notice.reason, notice.warning) for notice in plan.notices]


def test_events_follow_a_service_through_its_life() -> None:
    start = snapshot(children={})
    plan = decide(start, NOW)
    assert reasons(plan) == [("Applied", False)]
    broken = replace(carried_out(start, plan), pods=(CRASHING,))
    plan = decide(broken, NOW)
    assert reasons(plan) == [("EngineCrashed", True)]
    healed = replace(carried_out(broken, plan), pods=(ready_pod(),))
    plan = decide(healed, NOW)
    assert reasons(plan) == [("PodsReady", False)]
    plan = decide(carried_out(healed, plan), NOW)
    assert reasons(plan) == [("PolicyApplied", False)]


def test_that_a_crash_will_not_heal_is_told_once_and_after_the_crash_itself() -> None:
    first = snapshot(None, CRASHING)
    plan = decide(first, NOW)
    assert ("EngineCrashed", True) in reasons(plan)
    again = replace(carried_out(first, plan), pods=(pod(engine=ended("Error", 1, restartCount=3)),))
    plan = decide(again, NOW)
    assert reasons(plan) == [("Stalled", True)]
    assert plan.notices[0].message.startswith("EngineCrashed: The engine exited with code 1")
    assert reasons(decide(carried_out(again, plan), NOW)) == []


def test_what_stalls_from_the_first_moment_is_one_event() -> None:
    plan = decide(snapshot(None, STALLING), NOW)
    assert [each for each in reasons(plan) if each[1]] == [("InvalidImageName", True)]


@pytest.mark.parametrize("rollout", [None, RolloutRecord(None, 1, 0, 0, {})])
def test_missing_or_new_deployment_is_survived(rollout: RolloutRecord | None) -> None:
    before = snapshot()
    deployment = replace(before.children["Deployment"], rollout=rollout)
    plan = decide(replace(before, children={**before.children, "Deployment": deployment}), NOW)
    assert condition(plan, "Ready")[0] == "False"
