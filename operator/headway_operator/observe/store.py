"""Records of watched objects, by the service they belong to.

Not kopf's indexes: while those are filled, every object waits for every other one, which takes
minutes for some thousand objects; and they keep objects whose deletion the watch has missed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from headway_operator.observe.own_writes import Versioned
from headway_operator.observe.records import ServiceKey

RecordT = TypeVar("RecordT", bound=Versioned)


class Store(Mapping[ServiceKey, tuple[RecordT, ...]]):
    """A mapping from services to their records; only what watches changes it."""

    def __init__(self) -> None:
        self._by_service: dict[ServiceKey, dict[str, RecordT]] = {}
        self._service_of: dict[str, ServiceKey] = {}

    def put(self, key: ServiceKey, record: RecordT) -> None:
        """Keep the newest record of an object."""
        self._by_service.setdefault(key, {})[record.uid] = record
        self._service_of[record.uid] = key

    def drop(self, uid: str) -> ServiceKey | None:
        """Forget an object. Returns the service it belonged to, if it was known."""
        key = self._service_of.pop(uid, None)
        if key is None:
            return None
        records = self._by_service[key]
        del records[uid]
        if not records:
            del self._by_service[key]
        return key

    def uids(self) -> set[str]:
        """Uids of all objects."""
        return set(self._service_of)

    def __getitem__(self, key: ServiceKey) -> tuple[RecordT, ...]:
        return tuple(self._by_service[key].values())

    def __iter__(self) -> Iterator[ServiceKey]:
        return iter(tuple(self._by_service))

    def __len__(self) -> int:
        return len(self._by_service)
