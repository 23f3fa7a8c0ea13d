"""Which objects of a service have to be applied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headway_operator.api import InferenceServiceSpec
from headway_operator.api.labels import APPLIED_HASH
from headway_operator.decide.activator import activator_replicas
from headway_operator.decide.ownership import lost_field
from headway_operator.decide.plan import Application, Cause, slot_of_body
from headway_operator.decide.router import router_replicas
from headway_operator.memory.memo import Memo
from headway_operator.memory.refusal import Refusal
from headway_operator.observe.instant import Instant
from headway_operator.observe.records import ChildRecord
from headway_operator.render import Blueprint, render_children
from headway_operator.snapshot import Snapshot


def children_of(
    snapshot: Snapshot, spec: InferenceServiceSpec, points_to: str, *, in_place: bool = False
) -> tuple[dict[str, Any], ...]:
    """The objects of a service as they should be.

    Args:
        snapshot: the service as it is now.
        spec: what it should be.
        points_to: the component whose pods its Service selects.
        in_place: its pods are replaced without a spare one.
    """
    service, operator = snapshot.service, snapshot.operator
    blueprint = Blueprint(
        namespace=service.key.namespace,
        name=service.key.name,
        uid=service.uid,
        generation=service.generation,
        spec=spec,
        runtime_image=operator.runtime_image,
        operator_namespace=operator.namespace,
        public_keys=operator.public_keys,
        applied=snapshot.rollout.template if snapshot.rollout else None,
        points_to=points_to,
        router_replicas=router_replicas(snapshot, spec),
        router_image=operator.router_image,
        in_place=in_place,
        router_applied=snapshot.router_rollout.template if snapshot.router_rollout else None,
        activator_replicas=activator_replicas(snapshot, spec),
        activator_applied=snapshot.activator_rollout.template
        if snapshot.activator_rollout
        else None,
    )
    # Rendering takes longer than everything else in a decision, and most decisions are made
    # about services that have not changed.
    return snapshot.memo.last("children", blueprint, render_children)


def needed_applications(
    snapshot: Snapshot, children: tuple[dict[str, Any], ...]
) -> tuple[Application, ...]:
    """What has to be applied: nothing, while everything is as it was last applied."""
    found = (
        _application(child, snapshot.children.get(slot_of_body(child)), snapshot.memo)
        for child in children
        if slot_of_body(child) not in (*snapshot.foreign, *snapshot.leftovers)
    )
    return tuple(application for application in found if application is not None)


def standing_refusals(snapshot: Snapshot, needed: tuple[Application, ...]) -> tuple[Refusal, ...]:
    """Refusals of what is still needed; others are history: the spec was corrected or put back."""
    wanted = {(each.slot, applied_hash(each.body)) for each in needed}
    return tuple(each for each in snapshot.refusals if (each.kind, each.applied_hash) in wanted)


def due_applications(
    needed: tuple[Application, ...], refusals: tuple[Refusal, ...], now: Instant
) -> tuple[Application, ...]:
    """What is applied now: a refused object is tried again in time, or when it was changed."""
    held_back = {
        (each.kind, each.resource_version) for each in refusals if now.unix < each.retry_at
    }
    return tuple(each for each in needed if (each.slot, each.resource_version) not in held_back)


def applied_hash(body: Mapping[str, Any]) -> str:
    """The hash that tells a rendered object from what it looked like before."""
    text: str = body["metadata"]["annotations"][APPLIED_HASH]
    return text


def _application(
    child: Mapping[str, Any], live: ChildRecord | None, memo: Memo
) -> Application | None:
    if live is None:
        return Application(child, Cause.MISSING)
    version = live.resource_version
    if live.applied_hash != applied_hash(child):
        return Application(child, Cause.CHANGED, resource_version=version)
    compared = _Comparison(child, applied_hash(child), live.owned_fields)
    taken = memo.last(f"taken {slot_of_body(child)}", compared, _Comparison.taken_field)
    return None if taken is None else Application(child, Cause.TAKEN, taken, version)


@dataclass(frozen=True)
class _Comparison:
    """A rendered object and what the API server keeps of our ownership of it."""

    body: Mapping[str, Any] = field(compare=False, repr=False)
    applied_hash: str
    owned_fields: str

    def taken_field(self) -> str | None:
        return lost_field(self.body, self.owned_fields)
