"""Puts together the snapshot of a service from all that is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum, auto
from typing import Protocol

from headway_operator.api import InferenceServiceSpec
from headway_operator.api.labels import (
    ACTIVATOR_SLOTS,
    CHILD_KINDS,
    CHILD_SLOTS,
    ENGINES_SERVICE_SLOT,
    ROUTER_SLOTS,
)
from headway_operator.memory.claims import GpuQuota
from headway_operator.memory.memory import Memory
from headway_operator.observe.classify import sorted_by_name
from headway_operator.observe.cluster import Cluster
from headway_operator.observe.engine_metrics.sample import ServiceMetrics
from headway_operator.observe.records import ChildRecord, PodRecord, ServiceKey
from headway_operator.snapshot import OperatorFacts, Snapshot

MetricsOfPods = Callable[[Iterable[PodRecord]], ServiceMetrics]
"""What is known of the metrics of some pods."""


class ChildReader(Protocol):
    """Reads an object that the watch does not show."""

    async def read_child(self, slot: str, service: ServiceKey) -> ChildRecord | None:
        """The object that has the service's name for that slot; None if there is none."""


class Observer:
    """Knows the cluster, and remembers."""

    def __init__(
        self, cluster: Cluster, reader: ChildReader, memory: Memory, metrics: MetricsOfPods
    ) -> None:
        self.cluster = cluster
        self.memory = memory
        self._reader = reader
        self._metrics = metrics

    async def snapshot(self, key: ServiceKey, operator: OperatorFacts) -> Snapshot | None:
        """The service as it is now; None if there is nothing to decide about."""
        watched = self.cluster.service(key)
        # One that the watch does not show is gone, whatever was answered to our last write of it.
        service = watched and self.memory.services.latest(key, watched)
        if service is None:
            self.memory.forget(key)
            return None
        if service.deleting:
            self.memory.let_go(key, operator.epoch)
            return None
        remembered = self.memory.of(service)
        parsed = remembered.parsed(service)
        children = await self._children(key, parsed.spec)
        owners = {child.slot: _owner(service.uid, child) for child in children}
        pods = tuple(sorted_by_name(self.cluster.pods.get(key, ())))
        activators = tuple(sorted_by_name(self.cluster.activators.get(key, ())))
        return Snapshot(
            service=service,
            operator=operator,
            spec=parsed.spec,
            spec_problem=parsed.problem,
            children={child.slot: child for child in children if owners[child.slot] is Owner.US},
            foreign=_slots(owners, Owner.SOMEBODY_ELSE),
            leftovers=_slots(owners, Owner.PREDECESSOR),
            pods=pods,
            routers=tuple(sorted_by_name(self.cluster.routers.get(key, ()))),
            activators=activators,
            activator_reports=self.memory.activators.of(pod.uid for pod in activators),
            silent=self.memory.activators.silent(pod.uid for pod in activators),
            reports={pod.uid: self.memory.sidecars.report(pod.uid) for pod in pods},
            refusals=tuple(remembered.refusals.values()),
            published=remembered.published,
            metrics=self._metrics(pods),
            tuning=remembered.tuning,
            scaling=remembered.scaling,
            idleness=remembered.idleness,
            shortages=remembered.shortages,
            told=remembered.told,
            quota=self._quota(key, operator),
            memo=remembered.memo,
        )

    def _quota(self, key: ServiceKey, operator: OperatorFacts) -> GpuQuota | None:
        if operator.gpu_quota is None:
            return None
        services = len(self.cluster.services)
        return self.memory.claims.quota(operator.gpu_quota, key, services, operator.epoch)

    async def _children(
        self, key: ServiceKey, spec: InferenceServiceSpec | None
    ) -> list[ChildRecord]:
        """The objects of a service. What the watch does not show is asked for.

        It may be somebody else's: without our label it is not watched, and must not be taken over.
        """
        watched = {child.slot: child for child in self.cluster.children.get(key, ())}
        expected = _expected_slots(spec)
        found = []
        for slot in CHILD_SLOTS:
            child = self.memory.children.latest((slot, key), watched.get(slot))
            if child is None and slot in expected:
                child = await self._reader.read_child(slot, key)
            if child is not None:
                found.append(child)
        return found


def _expected_slots(spec: InferenceServiceSpec | None) -> frozenset[str]:
    """Slots that are to have an object."""
    found = set(CHILD_KINDS)
    if spec is not None and spec.router.enabled:
        found.update(ROUTER_SLOTS)
    if spec is not None and spec.scaling.may_be_zero:
        found.update((*ACTIVATOR_SLOTS, ENGINES_SERVICE_SLOT))
    return frozenset(found)


class Owner(Enum):
    """Whose an object is that has our name."""

    US = auto()
    PREDECESSOR = auto()
    """A service of the same name that was deleted: the cluster is about to delete it too."""
    SOMEBODY_ELSE = auto()


def _owner(service_uid: str, child: ChildRecord) -> Owner:
    """Without an owner it is ours only if we have applied it."""
    if child.controller_uid == service_uid:
        return Owner.US
    if child.applied_hash is None:
        return Owner.SOMEBODY_ELSE
    return Owner.US if child.controller_uid is None else Owner.PREDECESSOR


def _slots(owners: Mapping[str, Owner], wanted: Owner) -> tuple[str, ...]:
    return tuple(slot for slot, owner in owners.items() if owner is wanted)
