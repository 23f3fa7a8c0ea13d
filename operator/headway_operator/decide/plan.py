"""What is to be done about one service, each item with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from headway_operator.api import InferenceServiceStatus
from headway_operator.api.labels import slot_of
from headway_operator.decide.retune import Change
from headway_operator.memory.claims import GpuClaim
from headway_operator.memory.idleness import Idleness
from headway_operator.memory.published import PublishedPolicy
from headway_operator.memory.scaling import Scaling
from headway_operator.memory.shortage import ShortageWatch
from headway_operator.memory.tuning import Tuning
from headway_operator.observe.quarantine import BadRequests
from headway_operator.observe.records import PodRecord


class Cause(StrEnum):
    """Why an object is applied."""

    MISSING = "Missing"
    """It does not exist."""
    CHANGED = "Changed"
    """It should look different than it was last applied."""
    TAKEN = "Taken"
    """Somebody else wrote one of its fields."""


@dataclass(frozen=True)
class Application:
    """An object to apply.

    Attributes:
        body: the whole object.
        cause: why it is applied.
        taken_field: path of the field somebody else wrote.
        resource_version: of the object as it is; None if there is none.
    """

    body: Mapping[str, Any] = field(repr=False)
    cause: Cause
    taken_field: str = ""
    resource_version: int | None = None

    @property
    def kind(self) -> str:
        """Kind of the object."""
        kind: str = self.body["kind"]
        return kind

    @property
    def slot(self) -> str:
        """What the object is to its service."""
        return slot_of_body(self.body)


def slot_of_body(body: Mapping[str, Any]) -> str:
    """The slot of a rendered object."""
    metadata = body["metadata"]
    return slot_of(body["kind"], metadata["name"], metadata["labels"])


@dataclass(frozen=True)
class Notice:
    """Something people should hear of, once: it becomes an event.

    Attributes:
        warning: whether it needs attention.
        reason: one word.
        message: what happened.
    """

    warning: bool
    reason: str
    message: str


@dataclass(frozen=True)
class Plan:
    """What is to be done about one service.

    Attributes:
        applications: objects to apply, in this order.
        published: the policy in force; None where the spec cannot be read.
        recipients: pods that do not hold it yet.
        status: the status as it should read.
        status_changed: whether it has to be written.
        notices: events to emit, without those for what is applied.
        tuning: how the engines are tuned; None while that is being found out.
        changes: what was retuned, each with its reason.
        scaling: how many pods were needed; None where others decide that.
        idleness: how long the service was not used; None where it always has pods.
        shortages: for how long something has been short.
        told: the requests that broke something of which events have told then, by pod uid.
        rung: place in its ladder of the last step that it stands on, from 1; 0 without any.
        claim: what the service wants of GPUs that are shared; None without any.
    """

    applications: tuple[Application, ...]
    published: PublishedPolicy | None
    recipients: tuple[PodRecord, ...]
    status: InferenceServiceStatus
    status_changed: bool
    notices: tuple[Notice, ...]
    tuning: Tuning | None = None
    changes: tuple[Change, ...] = ()
    scaling: Scaling | None = None
    idleness: Idleness | None = None
    shortages: ShortageWatch | None = None
    told: Mapping[str, BadRequests] = field(default_factory=dict)
    rung: int = 0
    claim: GpuClaim | None = None

    @property
    def is_quiet(self) -> bool:
        """Whether there was nothing to do, and nothing is tuned that may have to come back."""
        idle = not (self.applications or self.recipients or self.notices or self.changes)
        untuned = self.tuning is not None and self.tuning.point.is_as_declared
        leaving = self.idleness is not None and self.idleness.handed_over is not None
        return idle and untuned and not self.status_changed and not leaving
