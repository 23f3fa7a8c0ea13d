"""Which objects of a service have to be applied."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from headway_operator.api import InferenceServiceSpec
from headway_operator.api.labels import APPLIED_HASH
from headway_operator.decide.ownership import lost_field
from headway_operator.decide.plan import Application, Cause
from headway_operator.observe.instant import Instant
from headway_operator.observe.records import ChildRecord
from headway_operator.observe.snapshot import Refusal, Snapshot
from headway_operator.render import Blueprint, render_children

# One entry per service: rendering takes longer than everything else in a decision, and most
# decisions are made about services that have not changed.
_rendered = lru_cache(maxsize=8192)(render_children)


def children_of(snapshot: Snapshot, spec: InferenceServiceSpec) -> tuple[dict[str, Any], ...]:
    """The objects of a service as they should be."""
    service, operator = snapshot.service, snapshot.operator
    return _rendered(
        Blueprint(
            namespace=service.key.namespace,
            name=service.key.name,
            uid=service.uid,
            generation=service.generation,
            spec=spec,
            runtime_image=runtime_image(snapshot, spec),
            operator_namespace=operator.namespace,
            public_keys=operator.public_keys,
        )
    )


def runtime_image(snapshot: Snapshot, spec: InferenceServiceSpec) -> str:
    """Headway's image: as the spec pins it, else as it runs, else the operator's own default."""
    running = snapshot.rollout.runtime_image if snapshot.rollout else None
    return spec.runtime.image or running or snapshot.operator.runtime_image


def applications(
    snapshot: Snapshot, children: tuple[dict[str, Any], ...], now: Instant
) -> tuple[Application, ...]:
    """What has to be applied: nothing, while everything is as it was last applied."""
    refusals = {refusal.kind: refusal for refusal in snapshot.refusals}
    found = (
        _application(child, snapshot.children.get(child["kind"]))
        for child in children
        if child["kind"] not in snapshot.foreign
    )
    return tuple(
        application
        for application in found
        if application is not None
        and not _held_back(application, refusals.get(application.kind), now)
    )


def applied_hash(body: Mapping[str, Any]) -> str:
    """The hash that tells a rendered object from what it looked like before."""
    text: str = body["metadata"]["annotations"][APPLIED_HASH]
    return text


def _application(child: Mapping[str, Any], live: ChildRecord | None) -> Application | None:
    if live is None:
        return Application(child, Cause.MISSING)
    version = live.resource_version
    if live.applied_hash != applied_hash(child):
        return Application(child, Cause.CHANGED, resource_version=version)
    taken = _taken_field(_Comparable(child), live.owned_fields)
    return None if taken is None else Application(child, Cause.TAKEN, taken, version)


def _held_back(application: Application, refusal: Refusal | None, now: Instant) -> bool:
    """What was refused is not tried again before its time, unless something has changed."""
    return (
        refusal is not None
        and now.unix < refusal.retry_at
        and refusal.applied_hash == applied_hash(application.body)
        and refusal.resource_version == application.resource_version
    )


class _Comparable:
    """A rendered object as a key: equal hash, equal object."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self.body = body
        self._key = (body["kind"], applied_hash(body))

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Comparable) and self._key == other._key


@lru_cache(maxsize=32768)
def _taken_field(child: _Comparable, owned_fields: str) -> str | None:
    return lost_field(child.body, owned_fields)
