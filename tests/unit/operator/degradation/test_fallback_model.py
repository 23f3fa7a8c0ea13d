"""The ladder where less memory does not help: the fallback model."""

from __future__ import annotations

import json
from functools import partial

from tests.unit.operator.degradation.world import (
    FALLBACK,
    World,
    found,
    loading_pod,
    ready_pod,
    taken,
)
from tests.unit.operator.samples import condition, ended, pod, spec


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
