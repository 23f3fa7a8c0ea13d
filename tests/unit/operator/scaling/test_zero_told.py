"""What is said of a service at zero, and of its activators."""

from __future__ import annotations

from dataclasses import replace

from headway_operator.api.labels import ACTIVATOR, ENGINES
from headway_operator.decide import decide
from headway_operator.observe.activators import ActivatorReport
from tests.unit.operator.samples import condition, later, pod, waiting
from tests.unit.operator.scaling.zero_world import ACTIVATOR_POD, World, asleep


def test_at_zero_it_is_ready_and_idle() -> None:
    world = asleep()
    world.tick()
    assert world.condition("Ready") == ("True", "Idle")
    assert world.condition("ModelLoaded") == ("False", "Idle")
    assert world.condition("Progressing") == ("False", "UpToDate")
    assert world.condition("Stalled")[0] == "False"
    assert world.condition("ActivatorReady") == ("True", "ActivatorReady")
    assert world.condition("ScalingLimited")[0] == "False"
    assert world.plan is not None
    assert world.plan.status.ready_replicas == 0


def test_while_it_wakes_it_is_not_ready() -> None:
    world = asleep(starts=60)
    world.report = ActivatorReport(1, 0, world.now)
    world.tick(2)
    assert world.condition("Ready") == ("False", "PodsStarting")
    assert world.condition("Progressing")[0] == "True"


def test_at_zero_without_an_activator_it_is_not_ready_and_says_why() -> None:
    world = asleep()
    broken = waiting("ImagePullBackOff", "denied")
    world.activators = (pod("demo-activator-1", template="activator", activator=broken),)
    world.tick()
    assert world.condition("Ready") == ("False", "ImagePullDenied")
    assert world.condition("ActivatorReady") == ("False", "ImagePullDenied")
    assert world.points_to == ACTIVATOR  # nobody else is there
    world.activators = ()
    world.tick()
    assert world.condition("Ready") == ("False", "ActivatorStarting")
    assert "There is no engine either" in condition(world.plan, "ActivatorReady")[2]


def test_an_activator_that_cannot_be_asked_is_told() -> None:
    world = asleep()
    other = replace(ACTIVATOR_POD, uid="other", name="demo-activator-2")
    world.activators = (ACTIVATOR_POD, other)
    world.snapshot = replace(world.snapshot, silent=frozenset({"other"}))
    world.tick()
    assert world.condition("ActivatorReady") == ("True", "ActivatorReady")
    world.snapshot = replace(world.snapshot, silent=frozenset({"other", ACTIVATOR_POD.uid}))
    world.tick()
    assert world.condition("ActivatorReady") == ("False", "ActivatorSilent")
    assert world.condition("Ready") == ("False", "ActivatorSilent")
    assert world.told("ActivatorSilent")[0].startswith("The operator cannot ask")
    assert world.plan is not None
    assert "start no engine: one is started when" in condition(world.plan, "ActivatorReady")[2]
    awake = World()
    awake.tick()
    awake.snapshot = replace(awake.snapshot, silent=frozenset({ACTIVATOR_POD.uid}))
    awake.tick()
    assert awake.plan is not None
    assert condition(awake.plan, "ActivatorReady")[2].endswith(". Engines stay")


def test_an_engine_that_is_away_is_stood_in_for() -> None:
    world = World(starts=20)
    world.tick()
    assert world.points_to == ACTIVATOR
    world.tick(6)
    assert world.points_to == ENGINES
    world.started = {}
    world.tick()
    assert world.points_to == ACTIVATOR


def test_a_service_whose_spec_cannot_be_read_forgets_nothing() -> None:
    world = World()
    world.tick(3)
    broken = replace(world.look(), spec=None, spec_problem="no")
    assert decide(broken, later(world.seconds)).idleness == world.snapshot.idleness
