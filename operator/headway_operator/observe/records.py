"""What is kept of each observed object: only what decisions need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from headway_operator.api import InferenceServiceStatus
from headway_operator.api.labels import SIDECAR


class ServiceKey(NamedTuple):
    """Names one InferenceService."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True)
class ServiceRecord:
    """An InferenceService.

    Attributes:
        resource_version: grows with every write of the object.
        deleting: whether its deletion has begun.
        spec: as stored; it may predate the current CRD.
        status: as stored; empty where it could not be read.
    """

    key: ServiceKey
    uid: str
    resource_version: int
    generation: int
    deleting: bool
    spec: Mapping[str, Any] = field(repr=False)
    status: InferenceServiceStatus = field(default_factory=InferenceServiceStatus)


@dataclass(frozen=True)
class ConditionRecord:
    """A condition of a Deployment or a pod; ``since`` is Unix time in seconds."""

    status: str
    reason: str = ""
    message: str = field(default="", repr=False)
    since: float = 0.0


@dataclass(frozen=True)
class AppliedTemplate:
    """A pod template as it was last applied, from the Deployment's annotations.

    Attributes:
        inputs: hash of what it was made from.
        text: the template, as JSON; it may have been tampered with.
    """

    inputs: str
    text: str = field(repr=False)


@dataclass(frozen=True)
class RolloutRecord:
    """State of a Deployment.

    Attributes:
        template: its pod template as it was applied; None where that is not known.
        generation, observed_generation: its spec's, and the one its status is about.
        replicas: pods that exist, of any template.
        conditions: by type.
        wanted: pods that it is to run.
    """

    template: AppliedTemplate | None
    generation: int
    observed_generation: int
    replicas: int
    conditions: Mapping[str, ConditionRecord]
    wanted: int = 1


@dataclass(frozen=True)
class ChildRecord:
    """An object that belongs to a service.

    Attributes:
        controller_uid: uid of the owner that controls it; None where none does.
        applied_hash: what was last applied; None where nothing was.
        owned_fields: the fields our field manager owns (``fieldsV1``), as JSON text.
        rollout: for a Deployment, its state.
        slot: what it is to the service; its kind where that says it all.
        name: of the object.
        points_to: for a Service, the component whose pods it selects.
    """

    kind: str
    key: ServiceKey
    uid: str
    resource_version: int
    controller_uid: str | None
    applied_hash: str | None
    owned_fields: str = field(repr=False)
    rollout: RolloutRecord | None = None
    slot: str = ""
    name: str = ""
    points_to: str = ""


@dataclass(frozen=True)
class Waiting:
    """A container that has not started."""

    reason: str
    message: str = field(default="", repr=False)


@dataclass(frozen=True)
class Terminated:
    """A container that has ended.

    Attributes:
        ran_seconds: how long it had run; 0 where that is not known.
    """

    reason: str
    exit_code: int
    message: str = field(default="", repr=False)
    ran_seconds: float = 0.0


@dataclass(frozen=True)
class ContainerRecord:
    """State of one container.

    Attributes:
        started: it runs and its startup probe has succeeded.
        restarts: in its whole life, however long ago.
        running_since: when it began to run, as Unix time in seconds; None while it does not run.
        waiting, terminated: why it does not run.
        last_terminated: how its previous run ended.
        memory_limit: as written in the pod's spec.
        startup_seconds: most that its startup probe lets a start take; 0 without one.
    """

    name: str
    image: str
    started: bool
    ready: bool
    restarts: int
    running_since: float | None = None
    waiting: Waiting | None = None
    terminated: Terminated | None = None
    last_terminated: Terminated | None = None
    memory_limit: str | None = None
    startup_seconds: float = 0.0


@dataclass(frozen=True)
class PodRecord:
    """A pod of a service.

    Attributes:
        namespace: of the service too.
        template: hash of the template it was made from.
        ip: None until it has one.
        ready: answers requests and has a policy.
        scheduled: the PodScheduled condition; None until there is one.
        prepared: the PodReadyToStartContainers condition, true once volumes are mounted and the
            network is there; None until there is one.
        containers: by name, init containers included.
        gated: it is unready because somebody's readiness gate says so.
        unready_since: since when its node has called it not ready, as Unix time in seconds, but
            since it was made at most; None while it is ready, and before it has a node.
    """

    namespace: str
    name: str
    uid: str
    resource_version: int
    template: str
    ip: str | None
    phase: str
    deleting: bool
    ready: bool
    scheduled: ConditionRecord | None
    prepared: ConditionRecord | None
    containers: Mapping[str, ContainerRecord]
    gated: bool = False
    unready_since: float | None = None

    @property
    def takes_policies(self) -> bool:
        """Whether its sidecar runs and can be reached."""
        sidecar = self.containers.get(SIDECAR)
        return bool(self.ip) and not self.deleting and sidecar is not None and sidecar.started
