"""A service that may be at zero, its pods and its activators, tick after tick."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from headway_operator.api import InferenceServiceSpec
from headway_operator.api.labels import ENGINES
from headway_operator.decide import Plan, decide
from headway_operator.observe.activators import ActivatorReport
from headway_operator.observe.engine_metrics.sample import EngineSample, ServiceMetrics, Source
from headway_operator.observe.records import PodRecord, ServiceKey
from headway_operator.observe.sidecars import SidecarReport
from headway_operator.snapshot import Snapshot
from tests.unit.operator.samples import (
    carried_out,
    condition,
    later,
    loading_pod,
    pod,
    ready_pod,
    service,
    snapshot,
    spec,
    template_of,
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


START_SECONDS = 300
SLOW = fields(engine={"startupTimeoutSeconds": START_SECONDS})
"""One whose engine may take that long to start."""


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
