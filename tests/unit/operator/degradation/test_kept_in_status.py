"""The ladder is where the status says: another operator goes on from there."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.operator.degradation.world import (
    CLASSES,
    FALLBACK,
    World,
    deployments,
    heard,
    killed,
    pending,
    ready_pod,
)
from tests.unit.operator.samples import condition, spec


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
