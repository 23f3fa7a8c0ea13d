"""The degradation ladder, step by step."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from headway_operator.api.status import TakenStep
from headway_operator.decide import Plan
from headway_operator.memory.claims import Claims, GpuClaim, GpuQuota
from headway_operator.observe.records import PodRecord, ServiceKey
from tests.unit.operator.degradation.world import (
    CALM,
    CLASSES,
    PRESSED,
    Load,
    MakePod,
    World,
    found,
    heard,
    killed,
    loading_pod,
    pending,
    ready_pod,
)
from tests.unit.operator.samples import OPERATOR, condition, ended, pod, running, spec

FALLBACK = {"step": "FallbackModel", "model": {"uri": "pvc://models/tinier"}}
UP_TO_FOUR = {"mode": "Operator", "minReplicas": 1, "maxReplicas": 4}
GPU = {"resources": {"limits": {"nvidia.com/gpu": "1", "memory": "8Gi"}}}


def taken(world: World) -> list[str]:
    return [each.step.value for each in world.steps]


def deployments(plan: Plan) -> list[str]:
    return [each.kind for each in plan.applications if each.kind == "Deployment"]


# --- memory


def test_an_engine_that_is_killed_for_its_memory_gets_less_of_it() -> None:
    world = World()
    decided = world.look(killed)
    assert [each.memory_percent for each in decided.status.degradation] == [80]
    assert deployments(decided) == []
    told = condition(decided, "Degraded")
    assert told[:2] == ("True", "SmallerMemory")
    assert told[2].startswith("OOMKilled: ")
    assert "80 %" in told[2]
    assert decided.rung == 3
    applied = world.look(killed)
    assert deployments(applied) == ["Deployment"]
    assert world.engine["args"][-1] == "--gpu-memory-utilization=0.720"
    (event,) = heard(world.plans)
    assert (event.warning, event.reason) == (True, "Degraded")


def test_what_has_happened_once_may_be_chance() -> None:
    world = World()
    world.look(lambda name, **more: killed(name, restarts=1, **more))
    assert taken(world) == []


def test_an_engine_that_served_for_long_has_ended_once_whatever_happened_long_ago() -> None:
    world = World()

    def after_weeks(name: str, **more: Any) -> PodRecord:
        last = ended("OOMKilled", 137, ran_s=20 * 86_400)["state"]
        state = {**running(started=False), "restartCount": 2, "lastState": last}
        return loading_pod(name, engine=state, **more)

    world.looks(3, lambda name, **more: killed(name, ran_s=20 * 86_400, **more))
    world.looks(3, after_weeks)
    assert taken(world) == []
    # It does not get up again: that is a second end, and a failed start.
    world.look(lambda name, **more: killed(name, restarts=3, **more))
    assert taken(world) == ["SmallerMemory"]


def test_tries_are_bounded_and_then_it_is_stalled() -> None:
    world, percents = World(), []
    for _ in range(20):
        plan = world.look(lambda name, **more: killed(name, restarts=3, **more), after_s=600)
        percents.append(world.steps[0].memory_percent)
    assert list(dict.fromkeys(percents)) == [80, 60, 40]
    assert [each.reason for each in heard(world.plans)] == ["Degraded"] * 3
    assert condition(plan, "Stalled")[:2] == ("True", "OOMKilled")


def test_nobody_serves_so_pods_are_replaced_without_a_spare_one() -> None:
    world = World()
    world.looks(2, killed)
    assert world.deployment["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}
    template = world.hash
    world.looks(2, ready_pod)
    assert world.deployment["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert world.hash == template
    assert len(heard(world.plans)) == 1


def test_somebody_serves_so_the_spare_one_comes_first() -> None:
    world = World()
    world.looks(2, killed, old=1)
    assert taken(world) == ["SmallerMemory"]
    assert world.deployment["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}


def test_it_serves_with_less_and_stays_so_until_the_spec_is_another_one() -> None:
    world = World()
    world.looks(2, killed)
    smaller = world.hash
    plan = world.looks(100, ready_pod, after_s=60)[-1]
    assert condition(plan, "Ready")[0] == "True"
    assert condition(plan, "Degraded")[0] == "True"
    assert world.hash == smaller
    world.change(engine={"args": ["--gpu-memory-utilization=0.5"]})
    plan = world.look(ready_pod)
    assert condition(plan, "Degraded")[:2] == ("False", "AsDeclared")
    assert world.engine["args"][-1] == "--gpu-memory-utilization=0.5"
    (event,) = heard([plan])
    assert (event.warning, event.reason) == (False, "Recovered")


def test_other_changes_of_the_spec_are_no_reason_to_try_again() -> None:
    world = World()
    world.looks(2, killed)
    smaller = world.hash
    world.change(replicas=2, classes=CLASSES)
    world.look(ready_pod, ready_pod)
    assert (taken(world), world.hash) == (["SmallerMemory"], smaller)


def test_one_pod_of_many_is_no_reason_to_replace_all() -> None:
    world = World(spec(replicas=4))
    world.looks(3, killed, ready_pod, ready_pod, ready_pod)
    assert taken(world) == []
    world.look(killed, ready_pod, ready_pod, ready_pod, after_s=600)
    assert taken(world) == ["FewerReplicas"]
    world.look(killed, ready_pod, ready_pod, ready_pod)
    assert world.deployment["replicas"] == 3


def test_memory_of_a_device_does_not_help_a_host_that_lacks_it() -> None:
    world = World(spec(engine=GPU))
    world.looks(3, killed)
    assert taken(world) == []


def test_a_device_without_memory_gets_less_to_give() -> None:
    world = World(spec(engine={**GPU, "args": ["--gpu-memory-utilization", "0.5"]}))
    world.looks(2, found("EngineOutOfMemory"))
    assert world.engine["args"][-1] == "--gpu-memory-utilization=0.400"


def test_memory_of_the_cpu_build_is_set_where_it_was_declared() -> None:
    env = [{"name": "VLLM_CPU_KVCACHE_SPACE", "value": "2"}, {"name": "OTHER", "value": "x"}]
    world = World(spec(engine={"env": env}))
    world.looks(2, killed)
    assert {"name": "VLLM_CPU_KVCACHE_SPACE", "value": "1"} in world.engine["env"]
    assert not any("utilization" in each for each in world.engine["args"])
    world.looks(4, killed, after_s=600)
    assert [each.memory_percent for each in world.steps] == [80]


def test_a_cache_that_is_too_small_is_not_made_smaller() -> None:
    world = World()
    world.looks(3, found("KVCacheTooSmall"))
    assert taken(world) == []


def out_of_memory(world: World, share: int) -> None:
    """The engines want more memory than there is, until they get so little of it."""
    while not any(each.memory_percent == share for each in world.steps):
        world.look(found("EngineOutOfMemory"), after_s=60)
    world.look(found("EngineOutOfMemory"), after_s=0)


def test_less_than_the_model_needs_is_taken_back_one_rung_and_not_tried_again() -> None:
    world = World()
    out_of_memory(world, 40)
    plan = world.look(found("KVCacheTooSmall"))
    assert [(e.memory_percent, e.least_memory_percent) for e in world.steps] == [(60, 60)]
    assert condition(plan, "Degraded")[:2] == ("True", "SmallerMemory")
    world.look(loading_pod)
    assert world.engine["args"][-1] == "--gpu-memory-utilization=0.540"
    # Memory is short again, and that is no reason to take less than the model needs.
    world.looks(5, found("EngineOutOfMemory"))
    assert [each.memory_percent for each in world.steps] == [60]
    # It is back.
    plan = world.looks(3, ready_pod)[-1]
    assert condition(plan, "Ready")[0] == "True"


def test_where_any_less_is_too_little_the_declared_memory_is_tried_again() -> None:
    world = World()
    out_of_memory(world, 80)
    world.look(found("KVCacheTooSmall"))
    world.look(loading_pod)
    assert not any("utilization" in each for each in world.engine["args"])
    assert world.deployment["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}
    plan = world.looks(3, found("EngineOutOfMemory"))[-1]
    assert world.steps[0].retrying
    assert condition(plan, "Degraded")[:2] == ("True", "SmallerMemory")
    plan = world.looks(2, ready_pod)[-1]
    assert condition(plan, "Degraded")[:2] == ("False", "AsDeclared")


def test_where_nobody_serves_what_is_declared_is_tried_again_after_pauses_that_grow() -> None:
    world, began = World(), []
    for at in range(6 * 60):
        before = world.steps
        plan = world.look(killed, after_s=60)
        if world.steps and world.steps[0].retrying and not before[0].retrying:
            began.append(at)
    pauses = [later - first for first, later in pairwise(began)]
    assert pauses == sorted(pauses)
    assert (pauses[0] >= 15, pauses[-1] <= 62, len(began) >= 5) == (True, True, True)
    assert world.steps[0].memory_percent == 40
    # No event and no condition flaps.
    assert len(heard(world.plans)) == 3
    assert condition(plan, "Degraded")[:2] == ("True", "SmallerMemory")
    while not world.steps[0].retrying:
        world.look(killed, after_s=60)
    world.look(loading_pod)
    assert not any("utilization" in each for each in world.engine["args"])
    plan = world.looks(2, ready_pod)[-1]
    assert condition(plan, "Degraded")[:2] == ("False", "AsDeclared")
    (event,) = heard(world.plans, "Recovered")
    assert event.message == "SmallerMemory is taken back: what is declared can be had again"


@pytest.mark.parametrize("old", [1, 0])
def test_engines_that_load_or_serve_are_not_replaced_to_try_what_is_declared(old: int) -> None:
    world = World()
    out_of_memory(world, 40)
    world.looks(20, killed if old else loading_pod, old=old, after_s=600)
    assert [(each.memory_percent, each.retrying) for each in world.steps] == [(40, False)]


def test_one_that_fails_beside_others_that_load_is_no_reason_to_replace_them() -> None:
    world = World(spec(replicas=3, degradation=[{"step": "SmallerMemory"}]))
    world.looks(5, killed, killed, killed, after_s=60)
    (step,) = world.steps
    world.looks(5, killed, loading_pod, loading_pod, after_s=3600)
    assert world.steps == (step,)


def test_less_memory_is_not_to_blame_for_other_ends() -> None:
    world = World()
    world.looks(2, killed)
    smaller = world.hash
    crashes = partial(pod, engine=ended("Error", 7, restartCount=9))
    plan = world.looks(5, crashes, after_s=3600)[-1]
    assert condition(plan, "Stalled")[:2] == ("True", "EngineCrashed")
    assert world.hash == smaller


def test_a_fallback_model_that_does_not_run_is_left_for_what_is_declared() -> None:
    world = World(spec(degradation=[{"step": "SmallerMemory"}, FALLBACK]))
    while len(world.steps) < 2:
        world.look(found("EngineOutOfMemory"), after_s=60)
    absent = json.dumps({"reason": "ModelNotFound", "captures": {"path": "/models/models/tinier"}})
    fails = partial(pod, preflight=ended("Error", 3, absent))
    world.look(fails, after_s=600)
    assert not any(each.retrying for each in world.steps)
    world.look(fails, after_s=900)
    assert [each.retrying for each in world.steps] == [True, True]
    world.look(loading_pod)
    assert world.engine["args"][1] == "/models/models/tiny"
    assert not any("utilization" in each for each in world.engine["args"])
    # Not yet: the ladder is gone down again, from where it had led to.
    world.look(found("EngineOutOfMemory"))
    assert [(each.retrying, each.memory_percent) for each in world.steps] == [
        (False, 40),
        (True, None),
    ]
    plan = world.looks(2, ready_pod)[-1]
    assert world.engine["args"][1] == "/models/models/tiny"
    assert condition(plan, "Ready")[0] == "True"
    assert taken(world) == ["SmallerMemory", "FallbackModel"]


def test_the_fallback_model_has_the_name_of_the_declared_one() -> None:
    world = World(spec(degradation=[{"step": "SmallerMemory"}, FALLBACK]))
    world.look(found("KVCacheTooSmall"))
    plan = world.look(found("KVCacheTooSmall"))
    assert taken(world) == ["FallbackModel"]
    assert world.engine["args"][:2] == ["--model", "/models/models/tinier"]
    assert world.engine["args"][2:4] == ["--served-model-name", "demo"]
    assert "pvc://models/tinier" in condition(plan, "Degraded")[2]
    assert plan.rung == 2
    world.change(degradation=[{"step": "SmallerMemory"}, FALLBACK], engine={"args": ["--x"]})
    world.look(loading_pod)
    assert taken(world) == []
    assert world.engine["args"][1] == "/models/models/tiny"


def test_smaller_memory_comes_before_the_fallback_model() -> None:
    world, order = World(spec(degradation=[{"step": "SmallerMemory"}, FALLBACK])), []
    for _ in range(12):
        world.look(found("EngineOutOfMemory"), after_s=60)
        order.append((len(world.steps), world.steps[0].memory_percent))
    assert list(dict.fromkeys(order)) == [(1, 80), (1, 60), (1, 40), (2, 40)]


def test_without_a_ladder_nothing_is_given_up() -> None:
    world = World(spec(degradation=[]))
    world.looks(5, killed, after_s=1000)
    assert taken(world) == []


# --- room


def test_pods_that_nobody_has_room_for_are_given_up_in_time_and_tried_again() -> None:
    world = World(spec(replicas=3))
    world.looks(2, ready_pod, pending, pending, after_s=300)
    assert taken(world) == []
    plan = world.look(ready_pod, pending, pending, after_s=300)
    assert taken(world) == ["FewerReplicas"]
    plan = world.look(ready_pod, pending, pending)
    assert world.deployment["replicas"] == 1
    plan = world.look(ready_pod)
    assert condition(plan, "Ready")[0] == "True"
    assert condition(plan, "Degraded")[:2] == ("True", "FewerReplicas")
    assert "InsufficientGPU" in condition(plan, "Degraded")[2]
    world.look(ready_pod, after_s=300)
    assert world.steps[0].retrying
    world.look(ready_pod)
    assert world.deployment["replicas"] == 3
    # As long as nodes may take to be added.
    world.looks(10, ready_pod, pending, pending, after_s=60)
    assert world.steps[0].retrying
    world.look(ready_pod, pending, pending, after_s=60)
    assert (world.steps[0].retrying, world.steps[0].tries) == (False, 2)
    world.look(ready_pod)
    assert world.deployment["replicas"] == 1
    assert len(heard(world.plans)) == 1
    world.look(ready_pod, after_s=600)
    world.look(ready_pod)
    assert world.deployment["replicas"] == 3
    plan = world.look(ready_pod, ready_pod, ready_pod)
    assert taken(world) == []
    assert [each.reason for each in heard(world.plans)] == ["Degraded", "Recovered"]


@pytest.mark.parametrize("scaling", [{}, {"mode": "Operator", "minReplicas": 3, "maxReplicas": 3}])
@pytest.mark.parametrize("fails", [pending, partial(killed, restarts=5)])
def test_trying_for_all_pods_makes_neither_events_nor_a_service_that_is_not_ready(
    scaling: dict[str, Any], fails: MakePod
) -> None:
    ladder = [{"step": "FewerReplicas"}]
    world = World(spec(replicas=3, scaling=scaling, degradation=ladder))
    world.looks(3, ready_pod, fails, fails, after_s=300)
    world.looks(2, ready_pod)
    before, tries = len(world.plans), set()
    for _ in range(3 * 60):
        tried = world.steps[0].retrying
        missing = (fails, fails) if tried else ()
        plan = world.look(ready_pod, *missing, after_s=60)
        tries.add(world.steps[0].tries)
        assert condition(plan, "Ready")[0] == "True"
        assert condition(plan, "ModelLoaded")[0] == "True"
        assert condition(plan, "Degraded")[:2] == ("True", "FewerReplicas")
        assert condition(plan, "Stalled")[0] == "False"
    assert len(tries) > 3
    notices = [each for plan in world.plans[before:] for each in plan.notices]
    assert {(each.warning, each.reason) for each in notices} == {(False, "Applied")}


def test_tries_are_counted_only_so_far() -> None:
    world = World(spec(replicas=2, degradation=[{"step": "FewerReplicas", "afterSeconds": 0}]))
    world.look(ready_pod, pending)
    (step,) = world.steps
    often = step.model_copy(update={"tries": 1000, "retrying": True})
    service = world.snapshot.service
    status = service.status.model_copy(update={"degradation": (often,)})
    world.snapshot = replace(world.snapshot, service=replace(service, status=status))
    world.looks(2, ready_pod, pending)
    assert [(each.tries, each.retrying) for each in world.steps] == [(1000, False)]
    TakenStep.model_validate(world.steps[0].to_kubernetes())


def test_the_only_pod_is_never_given_up() -> None:
    world = World()
    world.looks(10, pending, after_s=600)
    world.looks(10, pending, old=1, after_s=600)
    assert taken(world) == []
    assert world.deployment["replicas"] == 1


def test_a_rollout_without_a_spare_gpu_gets_the_room_of_one_pod() -> None:
    ladder = [{"step": "FewerReplicas", "afterSeconds": 60}]
    world = World(spec(replicas=2, degradation=ladder))
    world.looks(2, pending, old=2, after_s=60)
    world.look(pending, old=2)
    assert world.deployment["replicas"] == 1
    world.look(ready_pod, after_s=300)
    world.look(ready_pod)
    assert world.deployment["replicas"] == 2
    world.look(ready_pod, ready_pod)
    assert taken(world) == []


def claimed(plan: Plan) -> tuple[int, int, int]:
    assert plan.claim is not None
    return plan.claim.least, plan.claim.wanted, plan.claim.running


@pytest.mark.parametrize(
    "declared",
    [
        {"replicas": 3},
        {"scaling": {"mode": "Operator", "minReplicas": 3, "maxReplicas": 3}},
    ],
    ids=["External", "Operator"],
)
def test_gpus_of_pods_that_are_given_up_are_kept_from_nobody(declared: dict[str, Any]) -> None:
    world = World(spec(engine=GPU, **declared))
    plans = world.looks(3, ready_pod, pending, pending, after_s=300)
    assert claimed(plans[-1]) == (3, 3, 3)
    for plan in world.looks(3, ready_pod):
        assert claimed(plan) == (1, 1, 1)
    world.look(ready_pod, after_s=300)
    assert world.steps[0].retrying
    assert claimed(world.look(ready_pod)) == (3, 3, 3)


@pytest.mark.parametrize(("others", "tried"), [(1, 3), (6, 2), (7, 1)])
def test_pods_that_were_given_up_are_tried_again_on_gpus_that_nobody_has_by_now(
    others: int, tried: int
) -> None:
    scaling = {"mode": "Operator", "minReplicas": 1, "maxReplicas": 4}
    world = World(spec(scaling=scaling, engine=GPU))
    known = world.snapshot.scaling
    assert known is not None
    world.snapshot = replace(world.snapshot, scaling=replace(known, replicas=3, claimed=3))

    def look(used: int, *makes: MakePod, **more: float) -> Plan:
        other = GpuClaim(ServiceKey("team", "other"), 1, used, used, used)
        claims, own = Claims(), world.plans[-1].claim
        for each in filter(None, (own, other)):
            claims.put(each.key, each, 8, OPERATOR.epoch)
        quota = claims.quota(8, world.snapshot.service.key, 2, OPERATOR.epoch)
        world.snapshot = replace(world.snapshot, quota=quota)
        return world.look(*makes, **more)

    for _ in range(3):
        look(1, ready_pod, pending, pending, after_s=300)
    for _ in range(3):  # the number that was decided on stands, and nothing is said of it
        plan = look(1, ready_pod)
        assert claimed(plan) == (1, 1, 1)
        assert {each.reason for each in plan.notices} <= {"Applied", "PodsReady"}
    look(others, ready_pod, after_s=300)
    assert all(each.retrying for each in world.steps)
    assert claimed(look(others, ready_pod))[2] == tried
    assert world.deployment["replicas"] == tried


def test_nodes_that_are_added_in_time_change_nothing() -> None:
    world = World(spec(replicas=2))
    world.looks(5, ready_pod, pending, after_s=100)
    world.look(ready_pod, ready_pod)
    world.looks(5, ready_pod, pending, after_s=100)
    assert heard(world.plans) == []


def test_fewer_pods_limit_what_load_asks_for() -> None:
    scaling = {"mode": "Operator", "minReplicas": 3, "maxReplicas": 3}
    world = World(spec(scaling=scaling))
    world.looks(3, ready_pod, pending, pending, after_s=300)
    plan = world.looks(2, ready_pod)[-1]
    assert world.deployment["replicas"] == 1
    assert condition(plan, "Ready")[0] == "True"
    assert condition(plan, "ScalingLimited")[:2] == ("True", "InsufficientGPU")


# --- KV blocks


def pressed_service(**changes: Any) -> World:
    world = World(spec(classes=CLASSES, **changes))
    world.looks(2, ready_pod, load=CALM)
    return world


def test_blocks_that_run_out_shed_first_and_lower_limits_then() -> None:
    world = pressed_service()
    world.looks(6, ready_pod, load=PRESSED)
    assert taken(world) == []
    world.look(ready_pod, load=PRESSED)
    assert taken(world) == ["ShedClasses"]
    plan = world.look(ready_pod, load=PRESSED)
    assert plan.published is not None
    shed = {each.name: each.max_queued for each in plan.published.policy.classes}
    assert shed == {"chat": None, "spare": 1}
    world.looks(8, ready_pod, load=PRESSED)
    assert taken(world) == ["ShedClasses", "LowerLimits"]
    plan = world.look(ready_pod, load=PRESSED)
    assert plan.published is not None
    assert plan.published.policy.max_batch_size is not None
    assert plan.published.policy.max_batch_size <= 20
    assert plan.published.policy.token_budget == 4096
    assert condition(plan, "Degraded")[:2] == ("True", "LowerLimits")
    world.looks(50, ready_pod, load=PRESSED)
    assert len(heard(world.plans)) == 2


def test_steps_are_taken_back_one_after_the_other() -> None:
    world = pressed_service()
    world.looks(20, ready_pod, load=PRESSED)
    before = len(world.plans)
    world.looks(24, ready_pod, load=CALM)
    assert taken(world) == ["ShedClasses", "LowerLimits"]
    world.looks(2, ready_pod, load=CALM)
    assert taken(world) == ["ShedClasses"]
    world.looks(26, ready_pod, load=CALM)
    assert taken(world) == []
    messages = [each.message for each in heard(world.plans[before:], "Recovered")]
    assert [each.split()[0] for each in messages] == ["LowerLimits", "ShedClasses"]
    plan = world.look(ready_pod, load=CALM)
    assert plan.published is not None
    assert all(each.max_queued is None for each in plan.published.policy.classes)


def test_requests_that_wait_are_no_time_to_take_anything_back() -> None:
    world = pressed_service()
    world.looks(20, ready_pod, load=PRESSED)
    world.looks(100, ready_pod, load=Load(kv_usage=0.4, waiting=3.0))
    assert taken(world) == ["ShedClasses", "LowerLimits"]


@pytest.mark.parametrize("load", [Load(0.99, 5.0, 0.5), Load(0.99, 0.0, 2.0), Load(0.5, 5.0, 2.0)])
def test_full_blocks_that_harm_nobody_are_none_to_be_mended(load: Load) -> None:
    world = pressed_service()
    world.looks(50, ready_pod, load=load)
    assert taken(world) == []


@pytest.mark.parametrize("mode", ["Shadow", "Off"])
def test_engines_that_headway_does_not_drive_are_not_lowered(mode: str) -> None:
    world = pressed_service(scheduling={"mode": mode})
    world.looks(50, ready_pod, load=PRESSED)
    assert taken(world) == []


def test_pods_that_may_still_be_added_come_first() -> None:
    world = pressed_service(scaling=UP_TO_FOUR)
    world.looks(25, ready_pod, load=PRESSED)
    assert taken(world) == []
    # Load asks for another one, which takes its time.
    assert world.snapshot.scaling is not None
    grown = replace(world.snapshot.scaling, replicas=2)
    world.snapshot = replace(world.snapshot, scaling=grown)
    world.looks(40, ready_pod, loading_pod, load=PRESSED)
    assert world.deployment["replicas"] == 2
    assert taken(world) == []
    world = pressed_service(scaling={"mode": "Operator", "minReplicas": 1, "maxReplicas": 1})
    world.looks(50, ready_pod, load=PRESSED)
    assert taken(world) == ["ShedClasses", "LowerLimits"]


def test_blocks_that_run_out_of_engines_with_little_work_get_no_pod_and_are_not_waited_for() -> (
    None
):
    world = pressed_service(scaling=UP_TO_FOUR)
    load = replace(PRESSED, token_load=0.25)
    world.looks(120 // 5 + 6, ready_pod, load=load)
    assert taken(world) == []
    world.looks(2, ready_pod, load=load)
    assert taken(world) == ["ShedClasses"]
    assert world.deployment["replicas"] == 1
    # The next one has not to wait for a pod that did not come before.
    world.looks(8, ready_pod, load=load)
    assert taken(world) == ["ShedClasses", "LowerLimits"]


def test_a_pod_that_others_have_the_gpu_of_is_not_waited_for() -> None:
    world = pressed_service(scaling=UP_TO_FOUR, engine=GPU)
    other = GpuClaim(ServiceKey("team", "other"), gpus=1, least=1, wanted=1, running=1)
    world.snapshot = replace(world.snapshot, quota=GpuQuota(2, (other,)))
    plan = world.looks(12, ready_pod, load=replace(PRESSED, token_load=1.5))[-1]
    assert condition(plan, "ScalingLimited")[:2] == ("True", "GpuQuota")
    assert taken(world) == ["ShedClasses"]


def test_pods_that_were_given_up_are_not_waited_for() -> None:
    world = pressed_service(scaling={"mode": "Operator", "minReplicas": 2, "maxReplicas": 4})
    world.looks(3, ready_pod, pending, after_s=300)
    world.looks(2, ready_pod, load=CALM)
    assert taken(world) == ["FewerReplicas"]
    world.looks(8, ready_pod, load=PRESSED)
    assert taken(world) == ["ShedClasses", "FewerReplicas"]


def test_without_metrics_nothing_is_decided() -> None:
    world = pressed_service()
    world.looks(5, ready_pod, load=PRESSED)
    world.looks(50, ready_pod)
    world.look(ready_pod, load=PRESSED)
    assert taken(world) == []
    world.looks(20, ready_pod, load=PRESSED)
    steps = taken(world)
    world.looks(50, ready_pod)
    assert taken(world) == steps


def test_a_class_that_does_not_shed_is_not_shed() -> None:
    world = World(spec(classes=CLASSES[:1]))
    world.looks(8, ready_pod, load=PRESSED)
    assert taken(world) == ["LowerLimits"]


# --- the operator itself


def test_another_operator_goes_on_from_where_the_last_one_was() -> None:
    world = World(spec(replicas=2, classes=CLASSES))
    world.looks(2, killed, killed)
    world.looks(2, ready_pod, ready_pod)
    before = (world.steps, world.hash)
    world.restart_operator()
    plan = world.look(ready_pod, ready_pod)
    assert (world.steps, world.hash) == before
    assert deployments(plan) == []
    assert heard([plan]) == []
    assert condition(plan, "Degraded")[0] == "True"


def test_another_operator_knows_how_many_pods_were_needed() -> None:
    world = World(spec(scaling={"mode": "Operator", "minReplicas": 1, "maxReplicas": 4}))
    assert world.snapshot.scaling is not None
    grown = replace(world.snapshot.scaling, replicas=3)
    world.snapshot = replace(world.snapshot, scaling=grown)
    world.looks(3, ready_pod, pending, pending, after_s=300)
    world.look(ready_pod)
    assert world.deployment["replicas"] == 1
    (before,) = world.steps
    assert (before.replicas, before.wanted_replicas) == (1, 3)
    world.restart_operator()
    plans = world.looks(2, ready_pod)
    assert world.steps == (before,)
    assert heard(plans) == []
    assert world.deployment["replicas"] == 1
    assert plans[-1].scaling is not None
    assert plans[-1].scaling.replicas == 3
    # What is needed changes while the step is in force.
    assert world.snapshot.scaling is not None
    fewer = replace(world.snapshot.scaling, replicas=2)
    world.snapshot = replace(world.snapshot, scaling=fewer)
    plans = world.looks(2, ready_pod)
    assert [each.wanted_replicas for each in world.steps] == [2]
    assert heard(plans) == []
    assert not plans[-1].status_changed


def test_a_step_has_no_effect_before_the_status_has_it() -> None:
    world = World()
    decided = world.look(killed)
    assert decided.status.degradation
    assert deployments(decided) == []


def test_a_ladder_alone_changes_nothing_of_a_pod() -> None:
    plain = World()
    declared = World(spec(degradation=[{"step": "SmallerMemory"}, FALLBACK]))
    assert declared.hash == plain.hash
    plain.change(degradation=[FALLBACK])
    plain.look(ready_pod)
    assert plain.hash == declared.hash
