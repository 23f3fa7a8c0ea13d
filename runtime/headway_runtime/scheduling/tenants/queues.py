"""Waiting requests without a TTFT to keep, of each tenant in order."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, Generic, NamedTuple, TypeVar

from headway_runtime.scheduling.view import Urgency

_Request = TypeVar("_Request")

_PLACE = itemgetter(0, 1)


class _Entry(NamedTuple):
    urgency: Urgency
    number: int
    tenant: str
    request: Any


class TenantQueues(Generic[_Request]):
    """Knows what waits of each tenant; who waits in an engine's own queue is there as well."""

    def __init__(self) -> None:
        self._queues: dict[str, list[_Entry]] = {}
        self._entries: dict[str, _Entry] = {}
        self._number = 0

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, request_id: str, tenant: str, urgency: Urgency, request: _Request) -> None:
        """A request waits, with this urgency from now on."""
        self.take(request_id)
        self._number += 1
        entry = _Entry(urgency, self._number, tenant, request)
        self._entries[request_id] = entry
        insort(self._queues.setdefault(tenant, []), entry, key=_PLACE)

    def take(self, request_id: str) -> None:
        """A request waits no more."""
        entry = self._entries.pop(request_id, None)
        if entry is None:
            return
        queue = self._queues[entry.tenant]
        del queue[bisect_left(queue, _PLACE(entry), key=_PLACE)]
        if not queue:
            del self._queues[entry.tenant]

    def clear(self) -> None:
        """Nothing waits."""
        self._queues.clear()
        self._entries.clear()

    def request(self, request_id: str) -> _Request | None:
        """A waiting request by its id."""
        entry = self._entries.get(request_id)
        found: _Request | None = entry.request if entry is not None else None
        return found

    def of(self, tenant: str) -> Sequence[_Entry]:
        """Entries of a tenant, most urgent first."""
        return self._queues.get(tenant, ())
