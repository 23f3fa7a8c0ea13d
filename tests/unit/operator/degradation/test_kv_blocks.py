"""The ladder where KV blocks run out: classes are shed, limits lowered."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headway_operator.memory.claims import GpuClaim, GpuQuota
from headway_operator.observe.records import ServiceKey
from tests.unit.operator.degradation.world import (
    CALM,
    CLASSES,
    GPU,
    PRESSED,
    UP_TO_FOUR,
    Load,
    World,
    heard,
    loading_pod,
    pending,
    ready_pod,
    taken,
)
from tests.unit.operator.samples import condition, spec


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
