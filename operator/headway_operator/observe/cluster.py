"""The watched part of the cluster."""

from __future__ import annotations

from dataclasses import dataclass, field

from headway_operator.observe.records import ChildRecord, PodRecord, ServiceKey, ServiceRecord
from headway_operator.observe.store import Store


@dataclass(frozen=True)
class Cluster:
    """Records of everything that is watched. They change as events arrive."""

    services: Store[ServiceRecord] = field(default_factory=Store)
    children: Store[ChildRecord] = field(default_factory=Store)
    pods: Store[PodRecord] = field(default_factory=Store)

    def service(self, key: ServiceKey) -> ServiceRecord | None:
        """The newest InferenceService of that name."""
        found = self.services.get(key, ())
        return max(found, key=lambda each: each.resource_version, default=None)

    def uids(self) -> set[str]:
        """Uids of all objects."""
        return self.services.uids() | self.children.uids() | self.pods.uids()

    def drop(self, uid: str) -> ServiceKey | None:
        """Forget an object. Returns the service it belonged to, if it was known."""
        return self.services.drop(uid) or self.children.drop(uid) or self.pods.drop(uid)
