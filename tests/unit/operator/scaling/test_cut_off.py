"""An operator that reaches no activator, of one service or of many."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from headway_operator import operator
from headway_operator.act.signing import KeyRing
from headway_operator.decide.scaling import MOST_UNREACHED, UNATTENDED_SECONDS
from headway_operator.environment import Environment
from headway_operator.observe.activator_watch import (
    MARGIN_SECONDS,
    PATIENCE_SECONDS,
    PAUSE_SECONDS,
    ActivatorWatch,
)
from headway_operator.observe.activators import (
    SILENCES_TOLERATED,
    ActivatorReport,
    Activators,
)
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


def keeps_silent(reports: Activators, *pods: PodRecord) -> None:
    for each in pods:
        for _ in range(SILENCES_TOLERATED):
            reports.silence(each.uid)


def test_who_is_ready_and_silent_is_counted_by_service() -> None:
    reports = Activators()
    heard, other = activator_of("heard"), activator_of("heard", 2)
    silent = (activator_of("silent"), activator_of("silent", 2))
    starts = activator_of("starts", ready=False)
    going = replace(activator_of("going"), deleting=True)
    activators = {
        ServiceKey("team", "heard"): (heard, other),
        ServiceKey("team", "silent"): silent,
        ServiceKey("team", "starts"): (starts,),
        ServiceKey("team", "going"): (going,),
        ServiceKey("team", "not asked yet"): (activator_of("new"),),
    }
    reports.told(heard.uid, NOBODY)
    keeps_silent(reports, other, *silent, starts, going)
    assert unreached_services(activators, reports) == 1
    keeps_silent(reports, heard)
    assert unreached_services(activators, reports) == 2


def test_one_that_answers_now_and_then_does_not_change_what_others_are_taken_for() -> None:
    reports, flaky = Activators(), activator_of("flaky")
    silent = [activator_of(f"silent-{number}") for number in range(MOST_UNREACHED)]
    keeps_silent(reports, *silent)
    activators = {ServiceKey("team", each.name): (each,) for each in (*silent, flaky)}
    counts = set()
    for _ in range(10):
        reports.told(flaky.uid, NOBODY)
        counts.add(unreached_services(activators, reports))
        for _ in range(SILENCES_TOLERATED - 1):
            reports.silence(flaky.uid)
            counts.add(unreached_services(activators, reports))
    assert counts == {MOST_UNREACHED}


def test_a_partition_is_seen_before_anybody_is_taken_for_unattended() -> None:
    open_question = PATIENCE_SECONDS + MARGIN_SECONDS
    next_ones = (SILENCES_TOLERATED - 1) * (PAUSE_SECONDS + MARGIN_SECONDS)
    # Activators are counted once a tick.
    assert open_question + next_ones + operator.TICK_SECONDS < UNATTENDED_SECONDS


async def test_the_leader_counts_and_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_key(tmp_path)
    cluster = FakeCluster()
    leader = Operator(Environment.read(VARIABLES), cluster, KeyRing(tmp_path))  # type: ignore[arg-type]
    monkeypatch.setattr(ActivatorWatch, "watch", lambda *_: None)
    for number in range(1000):
        name = f"demo-{number}"
        leader.cluster.activators.put(ServiceKey("team", name), activator_of(name))
        keeps_silent(leader.memory.activators, activator_of(name))

    def counted() -> tuple[int, float | None]:
        leader.watch_activators()
        shown = REGISTRY.get_sample_value("headway_operator_unreached_activators")
        return leader.facts(epoch=7).unreached, shown

    assert counted() == (0, 0)
    leader.leadership._valid_until = math.inf
    assert counted() == (1000, 1000)
    leader.memory.activators.told("uid-of-demo-0-activator-1", NOBODY)
    assert counted() == (999, 999)
