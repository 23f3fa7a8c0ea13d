"""Everything one decision is made from, as one immutable value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headway_operator.api import InferenceServiceSpec
from headway_operator.api.labels import ACTIVATOR, ROUTER
from headway_operator.memory.claims import GpuQuota
from headway_operator.memory.idleness import Idleness
from headway_operator.memory.memo import Memo
from headway_operator.memory.published import PublishedPolicy
from headway_operator.memory.refusal import Refusal
from headway_operator.memory.scaling import Scaling
from headway_operator.memory.shortage import ShortageWatch
from headway_operator.memory.tuning import Tuning
from headway_operator.observe.activators import ActivatorReport
from headway_operator.observe.engine_metrics.sample import ServiceMetrics
from headway_operator.observe.quarantine import BadRequests
from headway_operator.observe.records import (
    ChildRecord,
    PodRecord,
    RolloutRecord,
    ServiceRecord,
)
from headway_operator.observe.sidecars import SidecarReport


@dataclass(frozen=True)
class PublicKey:
    """A key that sidecars accept policies of.

    Attributes:
        key_id: first 16 hex digits of the SHA-256 of ``raw``.
        raw: the Ed25519 public key, 32 bytes.
    """

    key_id: str
    raw: bytes


@dataclass(frozen=True)
class OperatorFacts:
    """What decisions need to know of the operator itself.

    Attributes:
        namespace: where it runs.
        runtime_image: Headway's image for pods whose service pins none.
        router_image: image with vllm-router, likewise.
        public_keys: one key, or two while keys are rotated.
        epoch: its term of leadership; grows with every change of leader.
        gpu_quota: GPUs that all services may use together; None where nobody limits them.
        unreached: services whose activators are ready, and do not answer the operator.
    """

    namespace: str
    runtime_image: str
    public_keys: tuple[PublicKey, ...]
    epoch: int
    router_image: str = ""
    gpu_quota: int | None = None
    unreached: int = 0


@dataclass(frozen=True)
class Snapshot:
    """One service as it is now.

    Attributes:
        service: the InferenceService.
        spec: its spec; None where it cannot be read.
        spec_problem: why it cannot be read.
        children: its objects, by slot.
        foreign: slots for which an object has our name but belongs to somebody else.
        leftovers: slots for which an object of a deleted service of our name is still there.
        pods: its engines' pods, old and new, in order of their names.
        routers: its router's pods, likewise.
        activators: its activator's pods, likewise.
        activator_reports: what those told, by pod uid.
        silent: uids of those that the operator cannot ask.
        reports: what their sidecars said, by pod uid.
        refusals: objects the API server does not take.
        published: the policy decided last in this term; None at first.
        metrics: of its pods.
        tuning: how its engines are tuned; None until that was found out in this term.
        scaling: how many pods it needed; None at first, and where others decide that.
        idleness: how long it was not used; None at first, and where it always has pods.
        shortages: for how long something has been short; None at first.
        told: the requests that broke something of which events have told, by pod uid.
        quota: the GPUs that services share; None where they do not.
        operator: facts about the operator itself.
        memo: results of earlier decisions; they save time and change nothing.
    """

    service: ServiceRecord
    operator: OperatorFacts
    spec: InferenceServiceSpec | None
    spec_problem: str = ""
    children: Mapping[str, ChildRecord] = field(default_factory=dict)
    foreign: tuple[str, ...] = ()
    leftovers: tuple[str, ...] = ()
    pods: tuple[PodRecord, ...] = ()
    routers: tuple[PodRecord, ...] = ()
    activators: tuple[PodRecord, ...] = ()
    activator_reports: Mapping[str, ActivatorReport] = field(default_factory=dict)
    silent: frozenset[str] = frozenset()
    reports: Mapping[str, SidecarReport] = field(default_factory=dict)
    refusals: tuple[Refusal, ...] = ()
    published: PublishedPolicy | None = None
    metrics: ServiceMetrics = field(default_factory=ServiceMetrics)
    tuning: Tuning | None = None
    scaling: Scaling | None = None
    idleness: Idleness | None = None
    shortages: ShortageWatch | None = None
    told: Mapping[str, BadRequests] = field(default_factory=dict)
    quota: GpuQuota | None = None
    memo: Memo = field(default_factory=Memo, compare=False, repr=False)

    @property
    def rollout(self) -> RolloutRecord | None:
        """State of the Deployment; None while there is none."""
        return self._rollout("Deployment")

    @property
    def router_rollout(self) -> RolloutRecord | None:
        """State of the router's Deployment; None while there is none."""
        return self._rollout(f"{ROUTER} Deployment")

    @property
    def activator_rollout(self) -> RolloutRecord | None:
        """State of the activator's Deployment; None while there is none."""
        return self._rollout(f"{ACTIVATOR} Deployment")

    def _rollout(self, slot: str) -> RolloutRecord | None:
        deployment = self.children.get(slot)
        return deployment.rollout if deployment else None
