"""To zero and back, tick after tick, with whatever is known of engines and activators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway_operator.api import InferenceServiceSpec
from headway_operator.api.labels import ACTIVATOR, ENGINES, ROUTER
from headway_operator.decide import Plan, decide
from headway_operator.memory.claims import GpuClaim, GpuQuota
from headway_operator.memory.memory import Memory
from headway_operator.observe.activators import ActivatorReport
from headway_operator.observe.engine_metrics.sample import EngineSample, ServiceMetrics, Source
from headway_operator.observe.records import PodRecord, ServiceKey
from headway_operator.observe.sidecars import SidecarReport
from headway_operator.snapshot import Snapshot
from tests.unit.operator.degradation.world import NO_GPU
from tests.unit.operator.samples import (
    carried_out,
    condition,
    ended,
    later,
    loading_pod,
    pod,
    ready_pod,
    running,
    service,
    snapshot,
    spec,
    template_of,
    waiting,
)

TICK_SECONDS = 5
IDLE_SECONDS = 60
SCALING = {"mode": "Operator", "minReplicas": 0, "maxReplicas": 4, "idleSeconds": IDLE_SECONDS}
EXTERNAL = {**SCALING, "mode": "External"}
FOR_LONG = 2 * IDLE_SECONDS // TICK_SECONDS
KEY = ServiceKey("team", "demo")
NOBODY = ActivatorReport(held=0, passing=0, asked_at=None)
ACTIVATOR_POD = pod("demo-activator-1", template="activator", ready=True)
ROUTER_POD = pod("demo-router-1", template="router", ready=True)


def fields(scaling: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return spec(scaling=SCALING if scaling is None else scaling, **more)


class World:
    """A service, its pods as soon as they are decided on, and what is known of them."""

    def __init__(self, declared: dict[str, Any] | None = None, *, starts: int = 0) -> None:
        self.fields = declared or fields()
        self.starts = starts
        self.step = TICK_SECONDS
        self.seconds = 0
        self.tokens = 100.0
        self.running = 0
        self.report: ActivatorReport | None = NOBODY
        self.has_metrics = True
        self.stock = ""
        self.ceiling = 64.0
        self.sampled_at: float | None = None
        self.activators: tuple[PodRecord, ...] = (ACTIVATOR_POD,)
        self.started: dict[str, int] = {}
        self.unready: Callable[..., PodRecord] = loading_pod
        self.others: tuple[PodRecord, ...] = ()
        self.snapshot = snapshot(service(self.fields), children={})
        self.plan: Plan | None = None
        self.events: list[tuple[str, str]] = []
        self.collection = 0

    @property
    def replicas(self) -> int:
        rollout = self.snapshot.rollout
        assert rollout is not None
        return rollout.wanted

    @property
    def points_to(self) -> str:
        return self.snapshot.children["Service"].points_to

    @property
    def now(self) -> float:
        return later(self.seconds).unix

    def pods(self) -> tuple[PodRecord, ...]:
        if self.snapshot.rollout is None:
            return ()
        made = []
        for number in range(self.replicas):
            name = f"demo-{number}"
            ready = self.seconds - self.started.setdefault(name, self.seconds) >= self.starts
            kind = ready_pod if ready else self.unready
            made.append(kind(name, template=template_of(self.fields)))
        names = {each.name for each in made}
        self.started = {name: at for name, at in self.started.items() if name in names}
        return (*made, *self.others) if made else ()

    @property
    def routers_wanted(self) -> int:
        rollout = self.snapshot.router_rollout
        return 0 if rollout is None else rollout.wanted

    def routers(self, pods: tuple[PodRecord, ...]) -> tuple[PodRecord, ...]:
        """Those that are wanted, ready while an engine is."""
        ready = any(each.ready for each in pods)
        return (replace(ROUTER_POD, ready=ready),) if self.routers_wanted else ()

    def sample(self) -> EngineSample:
        zeros = {
            name: 0.0
            for name in EngineSample.__dataclass_fields__
            if name not in {"at", "classes", "token_load", "step_overhead"}
        }
        told = {
            "running": float(self.running),
            "scheduled_tokens_total": self.tokens,
            "max_batch_ceiling": self.ceiling,
        }
        return EngineSample(
            at=self.sampled_at or self.now, token_load=0.0, step_overhead=0.0, **(zeros | told)
        )

    def look(self) -> Snapshot:
        pods = self.pods()
        self.collection += 1
        metrics = ServiceMetrics(self.collection)
        if self.has_metrics and pods:
            told = {each.uid: (self.sample(),) for each in pods if each.ready}
            metrics = ServiceMetrics(self.collection, told, Source.PROMETHEUS)
        published = self.snapshot.published
        stamp = published.policy.stamp if published else None
        report = SidecarReport(stamp, asked=True, stock_reason=self.stock or None)
        reports = {each.uid: report for each in pods}
        activator_reports = {}
        if self.report is not None:
            activator_reports = {each.uid: self.report for each in self.activators}
        return replace(
            self.snapshot,
            pods=pods,
            routers=self.routers(pods),
            metrics=metrics,
            reports=reports,
            activators=self.activators,
            activator_reports=activator_reports,
        )

    def tick(self, ticks: int = 1) -> int:
        """Replicas after so many ticks."""
        for _ in range(ticks):
            self.seconds += self.step
            seen = self.look()
            plan = self.plan = decide(seen, later(self.seconds))
            self.events += [(each.reason, each.message) for each in plan.notices]
            self.snapshot = replace(
                carried_out(seen, plan), scaling=plan.scaling, idleness=plan.idleness
            )
        return self.replicas

    def patch(self, declared: dict[str, Any]) -> None:
        self.fields = declared
        record = replace(service(declared, generation=2), status=self.snapshot.service.status)
        parsed = InferenceServiceSpec.model_validate(declared)
        self.snapshot = replace(self.snapshot, service=record, spec=parsed)

    def told(self, *reasons: str) -> list[str]:
        return [message for reason, message in self.events if reason in reasons]

    def condition(self, kind: str) -> tuple[str, str]:
        assert self.plan is not None
        return condition(self.plan, kind)[:2]


def asleep(declared: dict[str, Any] | None = None, **more: Any) -> World:
    world = World(declared, **more)
    assert world.tick(FOR_LONG + world.starts // TICK_SECONDS) == 0
    return world


def turned_over() -> World:
    """One whose requests go to the activator, and whose pod is still there."""
    world = World()
    assert world.tick(3) == 1
    assert world.points_to == ENGINES
    while world.points_to == ENGINES:
        assert world.tick() == 1
    return world


# --- to zero


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


# --- with pods that will never serve

START_SECONDS = 300
SLOW = fields(engine={"startupTimeoutSeconds": START_SECONDS})


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


# --- and back


def test_a_request_that_is_held_starts_one_pod() -> None:
    world = asleep(starts=30)
    world.report = ActivatorReport(2, 0, world.now)
    assert world.tick() == 1
    assert world.told("Woken") == ["Replicas 0 -> 1: 2 requests wait for an engine"]
    assert world.points_to == ACTIVATOR
    world.tick(4)
    assert world.points_to == ACTIVATOR
    world.tick(3)
    assert world.points_to == ENGINES
    assert world.told("ScaledUp") == []


def test_a_request_that_was_not_held_starts_one_too_and_an_old_one_does_not() -> None:
    world = asleep()
    world.report = ActivatorReport(0, 0, asked_at=world.now - 60)
    assert world.tick(5) == 0
    world.report = ActivatorReport(0, 0, asked_at=world.now)
    assert world.tick() == 1
    assert world.told("Woken") == ["Replicas 0 -> 1: A request came 5 s ago"]


def test_it_sleeps_through_changes_of_leader_and_silence() -> None:
    world = asleep()
    other = replace(world.snapshot.operator, epoch=8)
    world.snapshot = replace(world.snapshot, operator=other, scaling=None, idleness=None)
    world.report = None
    world.activators = ()
    assert world.tick(100 // TICK_SECONDS) == 0
    world.report = NOBODY
    world.activators = (ACTIVATOR_POD,)
    assert world.tick(FOR_LONG) == 0


@pytest.mark.parametrize("scaling", [SCALING, EXTERNAL], ids=["Operator", "External"])
@pytest.mark.parametrize("lack", ["no pod", "not ready", "silent"])
def test_asleep_without_an_activator_that_tells_one_pod_is_started_and_stays(
    lack: str, scaling: dict[str, Any]
) -> None:
    world = asleep(fields(scaling, replicas=0 if scaling is EXTERNAL else 1))
    world.tick()
    if lack == "silent":
        world.report = None
    else:
        world.activators = (replace(ACTIVATOR_POD, ready=False),) if lack == "not ready" else ()
    began = world.seconds
    while world.tick() == 0:
        assert world.seconds - began <= 130
    assert world.seconds - began >= 120
    (message,) = world.told("NoActivator")
    assert message.startswith("Replicas 0 -> 1: No activator has been there")
    assert world.plan is not None
    assert [each.warning for each in world.plan.notices if each.reason == "NoActivator"] == [True]
    assert world.tick(10 * FOR_LONG) == 1  # whoever asks meanwhile has it
    assert world.points_to == ENGINES
    world.activators, world.report = (ACTIVATOR_POD,), NOBODY
    assert world.tick(FOR_LONG) == 0
    assert len(world.told("NoActivator")) == 1


def test_another_leader_waits_as_long_for_an_activator() -> None:
    world = asleep()
    world.report = None
    assert world.tick(20) == 0
    world.snapshot = replace(world.snapshot, operator=replace(world.snapshot.operator, epoch=8))
    assert world.tick(20) == 0
    assert world.tick(10) == 1


def test_a_service_that_may_not_be_zero_any_more_gets_a_pod_and_then_the_activator_goes() -> None:
    world = asleep(starts=20)
    world.patch(fields({**SCALING, "minReplicas": 1}))
    assert world.tick() == 1
    assert world.points_to == ACTIVATOR
    activators = world.snapshot.activator_rollout
    assert activators is not None
    assert activators.wanted == 2
    world.tick(6)
    assert world.points_to == ENGINES
    activators = world.snapshot.activator_rollout
    assert activators is not None
    assert activators.wanted == 0
    assert world.plan is not None
    assert "ActivatorReady" not in {each.type for each in world.plan.status.conditions}


# --- behind a router

ROUTED = fields(router={"enabled": True})


def test_at_zero_a_router_has_no_pods_and_with_the_engine_they_come_back() -> None:
    world = World(ROUTED)
    world.tick(4)
    assert (world.points_to, world.routers_wanted) == (ROUTER, 2)
    while world.replicas:
        assert world.routers_wanted == 2  # what is on its way still goes through it
        world.tick()
    assert (world.points_to, world.routers_wanted) == (ACTIVATOR, 0)
    world.starts, world.report = 30, ActivatorReport(1, 0, world.now)
    world.tick()
    assert (world.replicas, world.points_to, world.routers_wanted) == (1, ACTIVATOR, 2)
    world.tick(8)
    assert (world.points_to, world.routers_wanted) == (ROUTER, 2)


@settings(deadline=None, max_examples=15)
@given(
    st.lists(
        st.tuples(st.sampled_from(["running", "asked", "alone", "nobody"]), st.integers(1, 20)),
        min_size=1,
        max_size=8,
    ),
    st.booleans(),
)
def test_the_service_turns_to_no_router_without_pods_and_none_goes_that_is_in_use(
    story: list[tuple[str, int]], is_external: bool
) -> None:
    declared = fields(EXTERNAL, replicas=0, router={"enabled": True}) if is_external else ROUTED
    world = World(declared, starts=10)
    world.tick()
    for what, ticks in story:
        for _ in range(ticks):
            before, pointed_to = world.routers_wanted, world.points_to
            world.running = int(what == "running")
            world.activators = () if what == "alone" else (ACTIVATOR_POD,)
            world.report = ActivatorReport(0, 0, world.now if what == "asked" else None)
            world.tick()
            if world.points_to == ROUTER:
                assert before > 0
                assert world.routers_wanted > 0
            # They go and come with the engines, and never otherwise.
            is_at_zero = world.replicas == 0 and pointed_to == ACTIVATOR
            assert (world.routers_wanted == 0) == is_at_zero


# --- in mode External


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


# --- what is said


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


EVENTS = st.sampled_from(["running", "tokens", "held", "asked", "blind", "deaf", "alone", "nobody"])


@settings(deadline=None, max_examples=15)
@given(st.lists(st.tuples(EVENTS, st.integers(1, 20)), min_size=1, max_size=12), st.booleans())
def test_pods_go_only_when_nobody_was_there_and_come_when_somebody_is(
    story: list[tuple[str, int]], is_external: bool
) -> None:
    """Whatever happens: the last pods go after a whole idle time in which all was known."""
    world = World(fields(EXTERNAL, replicas=0) if is_external else None, starts=10)
    unused_since = 0.0
    for what, ticks in story:
        for _ in range(ticks):
            before = 0 if world.snapshot.rollout is None else world.replicas
            world.running = int(what == "running" and before > 0)
            world.tokens += what == "tokens"
            world.has_metrics = what != "blind"
            world.activators = () if what == "alone" else (ACTIVATOR_POD,)
            held = int(what == "held")
            asked_at = world.now if what in {"held", "asked"} else None
            world.report = None if what == "deaf" else ActivatorReport(held, 0, asked_at)
            replicas = world.tick()
            if what in {"running", "tokens"} and before > 0:
                unused_since = world.now
            if what in {"held", "asked"}:
                unused_since = world.now - TICK_SECONDS
                assert replicas == 1
            if before > 0 and replicas == 0:
                assert what == "nobody"
                assert world.now - unused_since >= IDLE_SECONDS
                assert world.points_to == ACTIVATOR
            if replicas == 0 and before == 0:
                assert what not in {"held", "asked"}
            assert 0 <= replicas <= 1


# --- with GPUs that services share


@pytest.mark.parametrize("scaling", [SCALING, EXTERNAL], ids=["Operator", "External"])
def test_it_wants_no_gpus_at_zero_and_has_one_pod_when_it_is_woken(scaling: dict[str, Any]) -> None:
    engine = {"resources": {"limits": {"nvidia.com/gpu": "2"}}, "tensorParallelSize": 2}
    declared = fields(scaling, engine=engine, replicas=0 if scaling == EXTERNAL else 1)
    world = World(declared)
    world.tick(FOR_LONG)
    assert world.plan is not None
    assert world.plan.claim == GpuClaim(KEY, 2, least=0, wanted=0, running=0)
    # Nothing is free, and somebody uses it.
    world.snapshot = replace(
        world.snapshot, quota=GpuQuota(4, (GpuClaim(ServiceKey("a", "b"), 4, 1, 1, 1, 9),))
    )
    world.report = replace(NOBODY, held=1)
    assert world.tick() == 1
    assert world.plan.claim == GpuClaim(KEY, 2, least=1, wanted=1, running=1)
    world.report, world.running = NOBODY, 1
    assert world.tick(3) == 1
