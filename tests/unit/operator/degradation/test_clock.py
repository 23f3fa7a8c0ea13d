"""The ladder's pauses, which stand in the status, and a clock that is set."""

from __future__ import annotations

import pytest

from headway_operator.api.degradation import Step
from headway_operator.decide.degradation.leaving import (
    MOST_PAUSE_SECONDS,
    MOST_RESTART_PAUSE_SECONDS,
    PAUSE_SECONDS,
)
from headway_operator.observe.instant import unix_of
from tests.unit.operator.degradation.world import MakePod, World, found, heard, pending, ready_pod
from tests.unit.operator.samples import NOW, spec

HOUR = 3600
TICK = 60


def with_fewer_replicas() -> World:
    world = World(spec(replicas=3))
    world.looks(3, ready_pod, pending, pending, after_s=300)
    assert [each.step for each in world.steps] == [Step.FEWER_REPLICAS]
    world.look(ready_pod)
    assert not world.steps[0].retrying
    return world


def with_smaller_memory() -> World:
    world = World()
    world.looks(10, found("EngineOutOfMemory"))
    assert [each.step for each in world.steps] == [Step.SMALLER_MEMORY]
    assert not world.steps[0].retrying
    return world


def seconds_until_tried(world: World, make: MakePod) -> float:
    began = world.now_s
    while not world.steps[0].retrying:
        assert world.now_s - began <= 2 * HOUR, "it is never tried again"
        world.look(make, after_s=TICK)
    return world.now_s - began


@pytest.mark.parametrize("back_s", [HOUR, 24 * HOUR, 365 * 24 * HOUR])
def test_a_clock_that_is_set_back_makes_no_pause_longer_than_it_may_be(back_s: float) -> None:
    world = with_fewer_replicas()
    world.now_s -= back_s
    took = seconds_until_tried(world, ready_pod)
    assert PAUSE_SECONDS <= took <= MOST_PAUSE_SECONDS + TICK
    world = with_smaller_memory()
    world.now_s -= back_s
    took = seconds_until_tried(world, found("EngineOutOfMemory"))
    assert took <= MOST_RESTART_PAUSE_SECONDS + TICK


def test_a_step_of_the_future_begins_now_and_that_is_no_event() -> None:
    world = with_fewer_replicas()
    world.now_s -= HOUR
    plans = [world.look(ready_pod)]
    assert unix_of(world.steps[0].since) == NOW.unix + world.now_s
    plans += world.looks(3, ready_pod)
    assert [plan.status_changed for plan in plans] == [True, False, False, False]
    assert heard(plans) == []


def test_a_clock_that_is_set_forwards_ends_one_pause_and_no_other() -> None:
    world = with_smaller_memory()
    world.now_s += HOUR
    tries = 0
    for _ in range(20):
        before = world.steps[0].retrying
        world.look(found("EngineOutOfMemory"))
        tries += world.steps[0].retrying and not before
    assert tries <= 1
