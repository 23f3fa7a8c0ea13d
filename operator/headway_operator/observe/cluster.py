"""The watched part of the cluster."""

from __future__ import annotations

from dataclasses import dataclass, field

from headway_operator.api.labels import ACTIVATOR, ROUTER
from headway_operator.observe.records import ChildRecord, PodRecord, ServiceKey, ServiceRecord
from headway_operator.observe.store import Store

_AnyStore = Store[ServiceRecord] | Store[ChildRecord] | Store[PodRecord]


@dataclass(frozen=True)
class Cluster:
    """Records of everything that is watched. They change as events arrive."""

    services: Store[ServiceRecord] = field(default_factory=Store)
    children: Store[ChildRecord] = field(default_factory=Store)
    pods: Store[PodRecord] = field(default_factory=Store)
    """Of engines."""
    routers: Store[PodRecord] = field(default_factory=Store)
    """Pods of routers."""
    activators: Store[PodRecord] = field(default_factory=Store)
    """Pods of activators."""

    def service(self, key: ServiceKey) -> ServiceRecord | None:
        """The newest InferenceService of that name."""
        found = self.services.get(key, ())
        return max(found, key=lambda each: each.resource_version, default=None)

    def pods_of(self, component: str) -> Store[PodRecord]:
        """Pods of a component; those of an unknown one are taken for engines."""
        return {ROUTER: self.routers, ACTIVATOR: self.activators}.get(component, self.pods)

    def uids(self) -> set[str]:
        """Uids of all objects."""
        return set().union(*(store.uids() for store in self._stores))

    def drop(self, uid: str) -> ServiceKey | None:
        """Forget an object. Returns the service it belonged to, if it was known."""
        dropped = (store.drop(uid) for store in self._stores)
        return next((key for key in dropped if key is not None), None)

    @property
    def _stores(self) -> tuple[_AnyStore, ...]:
        return (self.services, self.children, self.pods, self.routers, self.activators)
