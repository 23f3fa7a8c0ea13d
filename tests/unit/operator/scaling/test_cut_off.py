"""An operator that reaches no activator, of one service or of many."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from headway_operator.act.signing import KeyRing
from headway_operator.decide.scaling import MOST_UNREACHED, UNATTENDED_SECONDS
from headway_operator.environment import Environment
from headway_operator.observe.activator_watch import ActivatorWatch
from headway_operator.observe.activators import ActivatorReport, Activators
from headway_operator.observe.reach import unreached_services
from headway_operator.observe.records import PodRecord, ServiceKey
from headway_operator.operator import Operator
from tests.unit.operator.fakes import FakeCluster
from tests.unit.operator.samples import condition, pod
from tests.unit.operator.scaling.zero_world import (
    ACTIVATOR_POD,
    FOR_LONG,
    NOBODY,
    TICK_SECONDS,
    World,
    asleep,
)
from tests.unit.operator.test_start import VARIABLES, write_key

LONG_ENOUGH = int(UNATTENDED_SECONDS) // TICK_SECONDS + 1


def unreached(world: World, services: int) -> World:
    """The service's activator does not answer, and those of so many services with it."""
    world.report = None
    told = replace(world.snapshot.operator, unreached=services)
    silent = frozenset({ACTIVATOR_POD.uid})
    world.snapshot = replace(world.snapshot, operator=told, silent=silent)
    return world


def reached(world: World, report: ActivatorReport) -> World:
    unreached(world, 0).report = report
    world.snapshot = replace(world.snapshot, silent=frozenset())
    return world


def test_a_service_whose_activator_is_one_of_few_that_are_silent_gets_a_pod() -> None:
    world = unreached(asleep(), MOST_UNREACHED)
    assert world.tick(LONG_ENOUGH + 1) == 1
    assert len(world.told("NoActivator")) == 1


def test_one_of_many_sleeps_on_and_says_once_that_the_operator_is_cut_off() -> None:
    world = unreached(asleep(), MOST_UNREACHED + 1)
    assert world.tick(10 * FOR_LONG) == 0
    assert world.condition("ActivatorReady") == ("False", "OperatorCutOff")
    assert world.condition("Ready") == ("False", "OperatorCutOff")
    # Of ActivatorReady and of Ready: the same text makes one event.
    told, again = world.told("OperatorCutOff")
    assert told == again
    assert "check its network and NetworkPolicies" in told
    assert "none is until it can again" in told
    assert world.plan is not None
    assert not world.plan.status_changed


@pytest.mark.parametrize("services", [MOST_UNREACHED, MOST_UNREACHED + 1])
def test_it_is_a_warning_whichever_condition_tells_it_first(services: int) -> None:
    world = unreached(asleep(), services)
    world.tick()
    assert world.plan is not None
    told = [each for each in world.plan.notices if "cannot ask the activator" in each.message]
    assert [each.warning for each in told] == [True, True]


def test_how_many_there_are_changes_no_status() -> None:
    world = unreached(asleep(), 900)
    world.tick()
    unreached(world, 1000).tick()
    assert world.plan is not None
    assert not world.plan.status_changed


def test_it_wakes_for_who_asked_meanwhile_once_the_operator_reaches_activators_again() -> None:
    world = unreached(asleep(), 1000)
    world.tick(FOR_LONG)
    assert reached(world, ActivatorReport(1, 0, world.now)).tick() == 1
    assert len(world.told("Woken")) == 1
    assert world.told("NoActivator") == []


def test_the_last_that_is_reached_again_is_not_taken_for_an_outage_of_its_own() -> None:
    world = unreached(asleep(), 1000)
    world.tick(FOR_LONG)
    assert unreached(world, 1).tick(LONG_ENOUGH - 3) == 0
    assert reached(world, NOBODY).tick(FOR_LONG) == 0


def test_an_activator_that_is_really_missing_is_one_meanwhile_too() -> None:
    world = asleep()
    world.activators = ()
    assert unreached(world, 1000).tick(LONG_ENOUGH + 1) == 1
    assert len(world.told("NoActivator")) == 1


def test_pods_that_run_stay() -> None:
    world = World()
    world.tick(3)
    assert unreached(world, 1000).tick(3 * FOR_LONG) == 1
    assert world.plan is not None
    assert condition(world.plan, "ActivatorReady")[2].endswith(". Engines stay")


def activator_of(service: str, number: int = 1, *, ready: bool = True) -> PodRecord:
    return pod(f"{service}-activator-{number}", template="activator", ready=ready)


def test_who_is_ready_and_has_told_nothing_is_counted_by_service() -> None:
    reports = Activators()
    heard, other = activator_of("heard"), activator_of("heard", 2)
    reports.told(heard.uid, NOBODY)
    activators = {
        ServiceKey("team", "heard"): (heard, other),
        ServiceKey("team", "silent"): (activator_of("silent"), activator_of("silent", 2)),
        ServiceKey("team", "starts"): (activator_of("starts", ready=False),),
        ServiceKey("team", "going"): (replace(activator_of("going"), deleting=True),),
    }
    assert unreached_services(activators, reports) == 1
    reports.silence(heard.uid)
    assert unreached_services(activators, reports) == 2


async def test_the_leader_counts_and_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_key(tmp_path)
    cluster = FakeCluster()
    operator = Operator(Environment.read(VARIABLES), cluster, KeyRing(tmp_path))  # type: ignore[arg-type]
    monkeypatch.setattr(ActivatorWatch, "watch", lambda *_: None)
    for number in range(1000):
        name = f"demo-{number}"
        operator.cluster.activators.put(ServiceKey("team", name), activator_of(name))

    def counted() -> tuple[int, float | None]:
        operator.watch_activators()
        shown = REGISTRY.get_sample_value("headway_operator_unreached_activators")
        return operator.facts(epoch=7).unreached, shown

    assert counted() == (0, 0)
    operator.leadership._valid_until = math.inf
    assert counted() == (1000, 1000)
    operator.memory.activators.told("uid-of-demo-0-activator-1", NOBODY)
    assert counted() == (999, 999)
