"""To zero: the last pods go when nobody was there, and only then."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headway_operator.api.labels import ACTIVATOR, ENGINES
from headway_operator.memory.memory import Memory
from headway_operator.observe.activators import ActivatorReport
from tests.unit.operator.scaling.zero_world import (
    FOR_LONG,
    IDLE_SECONDS,
    NOBODY,
    SCALING,
    TICK_SECONDS,
    World,
    fields,
    turned_over,
)


def test_a_new_service_starts_a_pod_and_goes_to_zero_when_nobody_uses_it() -> None:
    world = World()
    ticks = IDLE_SECONDS // TICK_SECONDS
    assert world.tick(ticks) == 1
    assert world.points_to == ENGINES
    assert world.tick(FOR_LONG) == 0
    (message,) = world.told("ScaledToZero")
    assert message.startswith("Replicas 1 -> 0: No request for ")
    assert world.told("ScaledUp", "ScaledDown", "Woken", "RouterBypassed") == []


def test_requests_go_to_the_activator_for_a_while_before_pods_go() -> None:
    world = turned_over()
    turned, world.step = world.seconds, 1  # changes are looked at at once
    while world.tick() > 0:
        assert world.points_to == ACTIVATOR
        assert world.plan is not None
        assert not world.plan.is_quiet  # those are not looked at in each tick
    assert world.seconds - turned >= 10


def test_a_request_that_comes_meanwhile_keeps_the_pods() -> None:
    world = turned_over()
    assert world.replicas == 1
    world.tokens += 1
    assert world.tick() == 1
    assert world.points_to == ENGINES
    assert world.tick(IDLE_SECONDS // TICK_SECONDS - 1) == 1


@pytest.mark.parametrize("used", ["running", "tokens", "passing", "held", "asked"])
def test_while_it_is_used_pods_stay(used: str) -> None:
    world = World()
    for _ in range(3 * FOR_LONG):
        if used == "running":
            world.running = 1
        elif used == "tokens":  # ended between two samples
            world.tokens += 1
        elif used == "asked":
            world.report = ActivatorReport(0, 0, asked_at=world.now)
        else:
            world.report = ActivatorReport(int(used == "held"), int(used == "passing"), None)
        assert world.tick() == 1


@pytest.mark.parametrize("unknown", ["metrics", "activator", "report", "stock", "statistics"])
def test_what_is_not_known_removes_nothing(unknown: str) -> None:
    world = World()
    if unknown == "metrics":
        world.has_metrics = False
    elif unknown == "activator":
        world.activators = ()
    elif unknown == "report":
        world.report = None
    elif unknown == "statistics":  # the sidecar has none of its engine
        world.ceiling = 0.0
    else:
        world.stock = "NotSupported"
    assert world.tick(3 * FOR_LONG) == 1
    assert world.points_to == ENGINES


def test_metrics_that_are_lost_while_requests_go_to_the_activator_turn_nothing_back() -> None:
    world = turned_over()
    world.tick()
    world.has_metrics = False
    assert world.tick(FOR_LONG) == 1
    assert world.points_to == ACTIVATOR
    world.has_metrics = True
    assert world.tick(2) == 0


def test_metrics_of_before_say_nothing_of_what_came_since() -> None:
    world = turned_over()
    world.sampled_at = world.now
    assert world.tick(FOR_LONG) == 1
    world.sampled_at = None
    assert world.tick() == 0


def test_an_activator_that_does_not_tell_any_more_lets_no_pod_go() -> None:
    world = turned_over()
    world.tick()
    world.report = None
    assert world.tick(FOR_LONG) == 1
    world.report = NOBODY
    assert world.tick(2) == 0


def test_a_pod_that_takes_longer_to_start_than_it_may_be_idle_is_let_start() -> None:
    world = World(starts=3 * IDLE_SECONDS)
    assert world.tick() == 1
    while world.points_to == ACTIVATOR:
        assert world.tick() == 1
    assert world.seconds > 3 * IDLE_SECONDS
    assert world.tick(IDLE_SECONDS // TICK_SECONDS - 2) == 1
    assert world.points_to == ENGINES
    assert world.tick(FOR_LONG) == 0


def test_another_term_of_leadership_waits_again() -> None:
    world = World()
    world.tick(IDLE_SECONDS // TICK_SECONDS)
    other = replace(world.snapshot.operator, epoch=8)
    world.snapshot = replace(world.snapshot, operator=other)
    assert world.tick(IDLE_SECONDS // TICK_SECONDS - 1) == 1
    assert world.points_to == ENGINES


@pytest.mark.parametrize("hours", [1, -1])
def test_an_hour_that_the_clock_is_set_by_is_no_idle_hour(hours: int) -> None:
    world = World()
    world.tick(4)
    world.seconds += 3600 * hours
    world.started = dict.fromkeys(world.started, world.seconds)
    memory = Memory()
    known = memory.of(world.snapshot.service)
    known.scaling, known.idleness = world.snapshot.scaling, world.snapshot.idleness
    memory.clock_was_set(3600.0 * hours, world.now)
    world.snapshot = replace(world.snapshot, scaling=known.scaling, idleness=known.idleness)
    assert world.tick(IDLE_SECONDS // TICK_SECONDS) == 1
    assert world.points_to == ENGINES
    assert world.tick(FOR_LONG) == 0


def test_many_pods_go_at_once_when_nobody_was_there() -> None:
    world = World(fields({**SCALING, "stabilizationSeconds": 3600}))
    world.tick()
    assert world.plan is not None
    assert world.snapshot.scaling is not None
    world.snapshot = replace(world.snapshot, scaling=replace(world.snapshot.scaling, replicas=3))
    assert world.tick() == 3
    assert world.tick(FOR_LONG) == 0
    assert world.told("ScaledToZero")[0].startswith("Replicas 3 -> 0: ")
