"""To zero and back where somebody else decides how many pods there are."""

from __future__ import annotations

from typing import Any

import pytest

from headway_operator.api.labels import ENGINES, ROUTER
from headway_operator.observe.activators import ActivatorReport
from tests.unit.operator.samples import spec
from tests.unit.operator.scaling.zero_world import EXTERNAL, FOR_LONG, NOBODY, World, asleep, fields


def test_in_mode_external_what_is_asked_for_is_there() -> None:
    world = World(fields(EXTERNAL, replicas=2))
    assert world.tick(3 * FOR_LONG) == 2
    world.patch(fields(EXTERNAL, replicas=0))
    assert world.tick() == 1  # the last one goes when nobody uses it
    assert world.tick(FOR_LONG) == 0
    world.patch(fields(EXTERNAL, replicas=3))
    assert world.tick() == 3
    assert len(world.told("ScaledToZero")) == 1
    assert world.told("Woken") == []


def test_in_mode_external_pods_that_are_asked_for_do_not_leave() -> None:
    world = World(fields(EXTERNAL, replicas=1))
    world.tick(FOR_LONG)
    world.patch(fields(EXTERNAL, replicas=0))
    while world.points_to == ENGINES:
        assert world.tick() == 1
    world.tick()
    world.patch(fields(EXTERNAL, replicas=1))
    world.tick(2)
    assert world.points_to == ENGINES
    assert world.plan is not None
    assert world.plan.is_quiet
    assert world.tick(FOR_LONG) == 1


def test_in_mode_external_a_request_starts_one_and_it_goes_again() -> None:
    world = World(fields(EXTERNAL, replicas=0))
    assert world.tick(3) == 0
    world.report = ActivatorReport(1, 0, world.now)
    assert world.tick() == 1
    assert world.told("Woken") == ["Replicas 0 -> 1: 1 request waits for an engine"]
    world.report = NOBODY
    assert world.tick(FOR_LONG) == 0


def test_in_mode_external_with_a_least_zero_replicas_are_off() -> None:
    world = World(spec(replicas=0))
    world.report = ActivatorReport(1, 0, world.now)
    assert world.tick(3) == 0
    assert world.condition("Ready") == ("False", "ScaledToZero")


@pytest.mark.parametrize("more", [{}, {"router": {"enabled": True}}], ids=["alone", "router"])
def test_one_that_is_switched_off_while_it_sleeps_holds_no_request_for_a_pod_that_never_comes(
    more: dict[str, Any],
) -> None:
    world = asleep(fields(EXTERNAL, replicas=0, **more))
    world.patch(fields({**EXTERNAL, "minReplicas": 1}, replicas=0, **more))
    world.report = ActivatorReport(1, 0, world.now)
    assert world.tick(2) == 0
    assert world.points_to == ENGINES
    assert world.condition("Ready") == ("False", "ScaledToZero")
    activators = world.snapshot.activator_rollout
    assert activators is not None
    assert activators.wanted == 0
    world.patch(fields({**EXTERNAL, "minReplicas": 1}, replicas=1, **more))
    world.tick(2)
    assert world.points_to == (ROUTER if more else ENGINES)
