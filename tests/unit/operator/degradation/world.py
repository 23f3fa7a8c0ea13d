"""A service whose pods and metrics a test chooses, look after look."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from headway_operator.api.labels import TEMPLATE_LABEL
from headway_operator.api.status import TakenStep
from headway_operator.decide import Notice, Plan, decide
from headway_operator.observe.engine_metrics.sample import (
    ClassSample,
    EngineSample,
    ServiceMetrics,
    Source,
)
from headway_operator.observe.records import PodRecord
from headway_operator.snapshot import OperatorFacts, Snapshot
from tests.unit.operator.samples import (
    NOW,
    OPERATOR,
    carried_out,
    ended,
    later,
    loading_pod,
    pod,
    ready_pod,
    service,
    snapshot,
    spec,
)

TICK_SECONDS = 5
GPU_MESSAGE = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
NO_GPU = ("False", "Unschedulable", GPU_MESSAGE)
CLASSES = [
    {"name": "chat", "ttftMilliseconds": 1000},
    {"name": "spare", "ttftMilliseconds": 5000, "whenUnmet": "Shed"},
]
FALLBACK = {"step": "FallbackModel", "model": {"uri": "pvc://models/tinier"}}
UP_TO_FOUR = {"mode": "Operator", "minReplicas": 1, "maxReplicas": 4}
GPU = {"resources": {"limits": {"nvidia.com/gpu": "1", "memory": "8Gi"}}}

MakePod = Callable[..., PodRecord]


def killed(
    name: str = "demo-1", *, restarts: int = 2, ran_s: float = 60.0, **more: Any
) -> PodRecord:
    """A pod whose engine was killed for its memory again and again."""
    return pod(name, engine=ended("OOMKilled", 137, ran_s=ran_s, restartCount=restarts), **more)


def found(reason: str) -> MakePod:
    """A pod whose engine ended again and again and said why."""
    text = json.dumps({"reason": reason, "captures": {}})

    def make(name: str = "demo-1", **more: Any) -> PodRecord:
        return pod(name, engine=ended("Error", 1, text, restartCount=2), **more)

    return make


def pending(name: str = "demo-1", **more: Any) -> PodRecord:
    """A pod without a GPU."""
    return pod(name, scheduled=NO_GPU, **more)


@dataclass(frozen=True)
class Load:
    """What each ready pod tells."""

    kv_usage: float = 0.3
    waiting: float = 0.0
    ttft: float | None = 0.5
    running: float = 40.0
    token_load: float | None = None


CALM = Load()
PRESSED = Load(kv_usage=0.99, waiting=5.0, ttft=2.0)


def sample(at: float, load: Load) -> EngineSample:
    zeros = [0.0] * 4
    return EngineSample(
        at,
        0.9,
        load.kv_usage,
        load.running,
        load.waiting,
        *zeros,
        8192.0,
        1024.0,
        8192.0,
        1024.0,
        token_load=load.token_load,
        step_overhead=0.1,
        classes={"chat": ClassSample(0.0, 0.0, ttft_ratio=load.ttft)},
    )


@dataclass
class World:
    """One service over time.

    Attributes:
        now_s: seconds since the beginning.
        plans: one for each look.
    """

    fields: dict[str, Any] = field(default_factory=spec)
    now_s: float = 0.0
    plans: list[Plan] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.snapshot: Snapshot = snapshot(service(self.fields), children={})
        self.look()

    @property
    def steps(self) -> tuple[TakenStep, ...]:
        """Steps in force, as the status has them."""
        return self.snapshot.service.status.degradation

    @property
    def template(self) -> dict[str, Any]:
        """The pods' template in force."""
        assert self.snapshot.rollout is not None
        assert self.snapshot.rollout.template is not None
        template: dict[str, Any] = json.loads(self.snapshot.rollout.template.text)
        return template

    @property
    def hash(self) -> str:
        """Its hash, which new pods carry."""
        text: str = self.template["metadata"]["labels"][TEMPLATE_LABEL]
        return text

    @property
    def engine(self) -> dict[str, Any]:
        """The engine's container in it."""
        container: dict[str, Any] = self.template["spec"]["containers"][0]
        return container

    @property
    def deployment(self) -> dict[str, Any]:
        """Spec of the Deployment as it was applied last."""
        applied = [a.body for plan in self.plans for a in plan.applications]
        deployment: dict[str, Any] = [b for b in applied if b["kind"] == "Deployment"][-1]
        found: dict[str, Any] = deployment["spec"]
        return found

    def look(
        self, *makes: MakePod, load: Load | None = None, old: int = 0, after_s: float = TICK_SECONDS
    ) -> Plan:
        """Let time go by, then decide about these pods, and carry that out.

        Args:
            makes: how current pods are made.
            load: what ready ones tell; None without metrics.
            old: so many more that answer, of an older template.
            after_s: time that goes by.
        """
        self.now_s += after_s
        template = self.hash if self.plans else ""
        pods = [make(f"demo-{at}", template=template) for at, make in enumerate(makes)]
        pods += [ready_pod(f"old-{at}", template="old") for at in range(old)]
        metrics = ServiceMetrics()
        if load is not None:
            metrics = self._metrics(pods, load)
        rollout_pods = tuple(sorted(pods, key=lambda each: each.name))
        self.snapshot = replace(self.snapshot, pods=rollout_pods, metrics=metrics)
        plan = decide(self.snapshot, later(self.now_s))
        self.snapshot = carried_out(self.snapshot, plan)
        self.plans.append(plan)
        return plan

    def looks(self, count: int, *makes: MakePod, **more: Any) -> list[Plan]:
        """The same so many times."""
        return [self.look(*makes, **more) for _ in range(count)]

    def change(self, **changes: Any) -> None:
        """The user changes the spec."""
        self.fields = spec(**changes)
        generation = self.snapshot.service.generation + 1
        changed = service(self.fields, generation=generation)
        kept = replace(changed, status=self.snapshot.service.status)
        self.snapshot = replace(self.snapshot, service=kept, spec=snapshot(changed).spec)

    def restart_operator(self) -> None:
        """Another operator leads, and knows what stands in the cluster."""
        epoch = self.snapshot.operator.epoch + 1
        operator: OperatorFacts = replace(OPERATOR, epoch=epoch)
        self.snapshot = replace(
            self.snapshot,
            operator=operator,
            shortages=None,
            scaling=None,
            published=None,
            tuning=None,
        )

    def _metrics(self, pods: list[PodRecord], load: Load) -> ServiceMetrics:
        at = NOW.unix + self.now_s
        told = {each.uid: (sample(at - 5, load), sample(at, load)) for each in pods if each.ready}
        if not told:
            return ServiceMetrics()
        return ServiceMetrics(len(self.plans) + 1, told, Source.PROMETHEUS)


def heard(plans: list[Plan], *reasons: str) -> list[Notice]:
    """Events of these reasons."""
    wanted = reasons or ("Degraded", "Recovered")
    return [each for plan in plans for each in plan.notices if each.reason in wanted]


def taken(world: World) -> list[str]:
    """The steps that are in force."""
    return [each.step.value for each in world.steps]


def deployments(plan: Plan) -> list[str]:
    """The Deployments that are applied."""
    return [each.kind for each in plan.applications if each.kind == "Deployment"]


__all__ = [
    "CALM",
    "CLASSES",
    "FALLBACK",
    "GPU",
    "PRESSED",
    "UP_TO_FOUR",
    "Load",
    "MakePod",
    "World",
    "deployments",
    "found",
    "heard",
    "killed",
    "loading_pod",
    "pending",
    "ready_pod",
    "taken",
]
