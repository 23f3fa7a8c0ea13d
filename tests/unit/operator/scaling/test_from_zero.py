"""From zero: who asks gets a pod."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headway_operator.api.labels import ACTIVATOR, ENGINES
from headway_operator.memory.claims import GpuClaim, GpuQuota
from headway_operator.observe.activators import ActivatorReport
from headway_operator.observe.records import ServiceKey
from tests.unit.operator.scaling.zero_world import (
    ACTIVATOR_POD,
    EXTERNAL,
    FOR_LONG,
    KEY,
    NOBODY,
    SCALING,
    TICK_SECONDS,
    World,
    asleep,
    fields,
)


def test_a_request_that_is_held_starts_one_pod() -> None:
    world = asleep(starts=30)
    world.report = ActivatorReport(2, 0, world.now)
    assert world.tick() == 1
    assert world.told("Woken") == ["Replicas 0 -> 1: 2 requests wait for an engine"]
    assert world.points_to == ACTIVATOR
    world.tick(4)
    assert world.points_to == ACTIVATOR
    world.tick(3)
    assert world.points_to == ENGINES
    assert world.told("ScaledUp") == []


def test_a_request_that_was_not_held_starts_one_too_and_an_old_one_does_not() -> None:
    world = asleep()
    world.report = ActivatorReport(0, 0, asked_at=world.now - 60)
    assert world.tick(5) == 0
    world.report = ActivatorReport(0, 0, asked_at=world.now)
    assert world.tick() == 1
    assert world.told("Woken") == ["Replicas 0 -> 1: A request came 5 s ago"]


def test_it_sleeps_through_changes_of_leader_and_silence() -> None:
    world = asleep()
    other = replace(world.snapshot.operator, epoch=8)
    world.snapshot = replace(world.snapshot, operator=other, scaling=None, idleness=None)
    world.report = None
    world.activators = ()
    assert world.tick(100 // TICK_SECONDS) == 0
    world.report = NOBODY
    world.activators = (ACTIVATOR_POD,)
    assert world.tick(FOR_LONG) == 0


@pytest.mark.parametrize("scaling", [SCALING, EXTERNAL], ids=["Operator", "External"])
@pytest.mark.parametrize("lack", ["no pod", "not ready", "silent"])
def test_asleep_without_an_activator_that_tells_one_pod_is_started_and_stays(
    lack: str, scaling: dict[str, Any]
) -> None:
    world = asleep(fields(scaling, replicas=0 if scaling is EXTERNAL else 1))
    world.tick()
    if lack == "silent":
        world.report = None
    else:
        world.activators = (replace(ACTIVATOR_POD, ready=False),) if lack == "not ready" else ()
    began = world.seconds
    while world.tick() == 0:
        assert world.seconds - began <= 130
    assert world.seconds - began >= 120
    (message,) = world.told("NoActivator")
    assert message.startswith("Replicas 0 -> 1: No activator has been there")
    assert world.plan is not None
    assert [each.warning for each in world.plan.notices if each.reason == "NoActivator"] == [True]
    assert world.tick(10 * FOR_LONG) == 1  # whoever asks meanwhile has it
    assert world.points_to == ENGINES
    world.activators, world.report = (ACTIVATOR_POD,), NOBODY
    assert world.tick(FOR_LONG) == 0
    assert len(world.told("NoActivator")) == 1


def test_another_leader_waits_as_long_for_an_activator() -> None:
    world = asleep()
    world.report = None
    assert world.tick(20) == 0
    world.snapshot = replace(world.snapshot, operator=replace(world.snapshot.operator, epoch=8))
    assert world.tick(20) == 0
    assert world.tick(10) == 1


def test_a_service_that_may_not_be_zero_any_more_gets_a_pod_and_then_the_activator_goes() -> None:
    world = asleep(starts=20)
    world.patch(fields({**SCALING, "minReplicas": 1}))
    assert world.tick() == 1
    assert world.points_to == ACTIVATOR
    activators = world.snapshot.activator_rollout
    assert activators is not None
    assert activators.wanted == 2
    world.tick(6)
    assert world.points_to == ENGINES
    activators = world.snapshot.activator_rollout
    assert activators is not None
    assert activators.wanted == 0
    assert world.plan is not None
    assert "ActivatorReady" not in {each.type for each in world.plan.status.conditions}


@pytest.mark.parametrize("scaling", [SCALING, EXTERNAL], ids=["Operator", "External"])
def test_it_wants_no_gpus_at_zero_and_has_one_pod_when_it_is_woken(scaling: dict[str, Any]) -> None:
    engine = {"resources": {"limits": {"nvidia.com/gpu": "2"}}, "tensorParallelSize": 2}
    declared = fields(scaling, engine=engine, replicas=0 if scaling == EXTERNAL else 1)
    world = World(declared)
    world.tick(FOR_LONG)
    assert world.plan is not None
    assert world.plan.claim == GpuClaim(KEY, 2, least=0, wanted=0, running=0)
    # Nothing is free, and somebody uses it.
    world.snapshot = replace(
        world.snapshot, quota=GpuQuota(4, (GpuClaim(ServiceKey("a", "b"), 4, 1, 1, 1, 9),))
    )
    world.report = replace(NOBODY, held=1)
    assert world.tick() == 1
    assert world.plan.claim == GpuClaim(KEY, 2, least=1, wanted=1, running=1)
    world.report, world.running = NOBODY, 1
    assert world.tick(3) == 1
