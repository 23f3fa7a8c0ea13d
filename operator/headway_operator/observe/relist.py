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


async def relist(cluster: Cluster, lister: Lister, on_missed: Callable[[ServiceKey], None]) -> bool:
    """Drop what no longer exists. Returns whether everything that exists is known.

    Nothing may be decided before that is so for the first time: a service whose pods are not
    known yet looks as if it had none.
    """
    known = cluster.uids()
    existing = await lister.list_uids()
    for uid in known - existing:
        key = cluster.drop(uid)
        if key is not None:
            on_missed(key)
    return existing <= cluster.uids()
