"""The ladder where pods have no room: fewer of them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from headway_operator.api.status import TakenStep
from headway_operator.decide import Plan
from headway_operator.memory.claims import Claims, GpuClaim
from headway_operator.observe.records import ServiceKey
from tests.unit.operator.degradation.world import (
    GPU,
    MakePod,
    World,
    heard,
    killed,
    pending,
    ready_pod,
    taken,
)
from tests.unit.operator.samples import OPERATOR, condition, spec


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
    assert notices == []


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
        assert {each.reason for each in plan.notices} <= {"PodsReady"}
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
