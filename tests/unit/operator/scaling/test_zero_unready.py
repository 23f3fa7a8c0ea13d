"""To zero with pods that will never serve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from headway_operator.api.labels import ACTIVATOR
from headway_operator.decide import decide
from headway_operator.observe.activators import ActivatorReport
from headway_operator.observe.records import PodRecord
from tests.unit.operator.degradation.world import NO_GPU
from tests.unit.operator.samples import (
    carried_out,
    ended,
    later,
    loading_pod,
    pod,
    running,
    waiting,
)
from tests.unit.operator.scaling.zero_world import (
    FOR_LONG,
    IDLE_SECONDS,
    SLOW,
    START_SECONDS,
    TICK_SECONDS,
    World,
    asleep,
    fields,
)


def crashed(name: str, *, restarts: int = 9, **more: Any) -> PodRecord:
    return pod(name, engine=ended("Error", 1, restartCount=restarts), **more)


def imageless(name: str, **more: Any) -> PodRecord:
    return pod(name, engine=waiting("ImagePullBackOff", "not found"), **more)


def roomless(name: str, **more: Any) -> PodRecord:
    return pod(name, scheduled=NO_GPU, **more)


def unmetered(name: str, **more: Any) -> PodRecord:
    """Its engine runs, and it is not ready for another reason."""
    return loading_pod(name, engine=running(), **more)


@pytest.mark.parametrize(
    ("unready", "after_seconds"),
    [
        (crashed, IDLE_SECONDS),
        (imageless, IDLE_SECONDS),
        (roomless, START_SECONDS + IDLE_SECONDS),
        (loading_pod, START_SECONDS + IDLE_SECONDS),
        (partial(crashed, restarts=1), START_SECONDS + IDLE_SECONDS),
    ],
)
def test_a_pod_that_will_not_come_goes_when_nobody_asks_any_more(
    unready: Callable[..., PodRecord], after_seconds: int
) -> None:
    world = asleep(SLOW)
    world.starts, world.unready = 10**9, unready
    world.report = ActivatorReport(1, 0, world.now)
    assert world.tick(2 * START_SECONDS // TICK_SECONDS) == 1  # somebody waits for it
    world = asleep(SLOW)
    world.starts, world.unready = 10**9, unready
    woken = world.now
    world.report = ActivatorReport(0, 0, woken)
    began = world.seconds
    while world.tick():
        assert world.points_to == ACTIVATOR
        assert world.seconds - began <= after_seconds + 30
    assert world.seconds - began >= after_seconds
    assert [each.endswith(" s, and no pod got ready") for each in world.told("ScaledToZero")] == [
        False,
        True,
    ]
    assert world.tick(FOR_LONG) == 0


def test_an_engine_that_runs_and_is_not_heard_of_keeps_its_pod() -> None:
    world = World(SLOW)
    world.tick(3)
    world.starts, world.unready = 10**9, unmetered
    assert world.tick(3 * START_SECONDS // TICK_SECONDS) == 1


def test_a_rollout_that_waits_for_the_room_of_idle_pods_keeps_none_of_them() -> None:
    world = World(SLOW)
    world.tick(3)
    world.others = (roomless("demo-new"),)
    assert world.tick(FOR_LONG) == 0
    world = World(SLOW)
    world.tick(3)
    world.others = (loading_pod("demo-new"),)  # one that has room is waited for
    assert world.tick(FOR_LONG) == 1


def test_what_kept_the_last_pods_from_serving_is_said_until_the_spec_is_another_one() -> None:
    world = World(SLOW, starts=10**9)
    world.unready = imageless
    assert world.tick(FOR_LONG) == 0
    world.tick(2)
    assert world.condition("Ready") == ("False", "ImageNotFound")
    assert world.condition("Stalled") == ("True", "ImageNotFound")
    assert world.plan is not None
    assert not world.plan.status_changed
    world.patch(fields(engine={"startupTimeoutSeconds": START_SECONDS + 1}))
    world.tick()
    assert world.condition("Ready") == ("True", "Idle")
    assert world.condition("Stalled")[0] == "False"


def test_what_is_no_matter_of_pods_is_forgotten_with_its_cause() -> None:
    world = asleep()
    taken = replace(world.look(), foreign=("ConfigMap",))
    world.snapshot = carried_out(taken, decide(taken, later(world.seconds)))
    world.snapshot = replace(world.snapshot, foreign=())
    world.tick()
    assert world.condition("Stalled")[0] == "False"
    assert world.condition("Ready") == ("True", "Idle")
