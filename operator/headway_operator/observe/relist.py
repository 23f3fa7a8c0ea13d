"""Compares what is known with what exists: watches begin late and can miss deletions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from headway_operator.observe.cluster import Cluster
from headway_operator.observe.records import ServiceKey


class Lister(Protocol):
    """Lists what should be known."""

    async def list_uids(self) -> set[str]:
        """Uids of all objects that are watched."""


class Relist:
    """Tells when all that existed at the start is known, and drops what no longer exists.

    Nothing may be decided before that: a service whose pods are not known yet looks as if it had
    none. Objects made since do not count, or a busy cluster would never be known.
    """

    def __init__(
        self, cluster: Cluster, lister: Lister, on_missed: Callable[[ServiceKey], None]
    ) -> None:
        self._cluster = cluster
        self._lister = lister
        self._on_missed = on_missed
        self._awaited: set[str] | None = None
        self._unseen: set[str] = set()
        self.overlooked = 0
        """Objects that the watches have not shown from one comparison to the next: one is dead."""
        self.in_vain = 0
        """Comparisons in a row that waited for something, and found nothing more of it known."""

    @property
    def complete(self) -> bool:
        """Whether all that existed at the start is known."""
        return self._awaited is not None and not self._awaited

    @property
    def is_unsure(self) -> bool:
        """Whether the last comparison found what the watches have not shown: it may be new."""
        return bool(self._unseen)

    async def compare(self) -> None:
        """List everything and compare.

        Raises:
            kubernetes.aio.client.ApiException: the API server could not do it now.
        """
        existing = await self.drop_missed()
        unseen = existing - self._cluster.uids()
        awaited = unseen if self._awaited is None else self._awaited & unseen
        self.in_vain = self.in_vain + 1 if awaited and awaited == self._awaited else 0
        self._awaited = awaited
        if self.complete:
            self.overlooked = len(unseen & self._unseen)
            self._unseen = unseen

    async def drop_missed(self) -> set[str]:
        """List everything and drop what no longer exists. Returns the uids of what does.

        What the watches do not show yet is not judged: one of them may have just begun anew.

        Raises:
            kubernetes.aio.client.ApiException: the API server could not do it now.
        """
        known = self._cluster.uids()
        existing = await self._lister.list_uids()
        for uid in known - existing:
            key = self._cluster.drop(uid)
            if key is not None:
                self._on_missed(key)
        return existing
