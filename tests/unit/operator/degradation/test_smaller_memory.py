"""The ladder where engines lack memory: they get less of it."""

from __future__ import annotations

from typing import Any

from headway_operator.observe.records import PodRecord
from tests.unit.operator.degradation.world import (
    CLASSES,
    GPU,
    World,
    deployments,
    found,
    heard,
    killed,
    loading_pod,
    ready_pod,
    taken,
)
from tests.unit.operator.samples import condition, ended, running, spec


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


def test_without_a_ladder_nothing_is_given_up() -> None:
    world = World(spec(degradation=[]))
    world.looks(5, killed, after_s=1000)
    assert taken(world) == []
