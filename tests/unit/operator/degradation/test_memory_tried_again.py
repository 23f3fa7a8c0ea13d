"""The ladder where engines lack memory: what is declared is tried again."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import pytest

from tests.unit.operator.degradation.world import (
    World,
    found,
    heard,
    killed,
    loading_pod,
    ready_pod,
)
from tests.unit.operator.samples import condition, ended, pod, spec


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
