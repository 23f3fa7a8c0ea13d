"""Lists the uids of everything that is watched."""

from __future__ import annotations

from dataclasses import dataclass

from headway_operator.act.cluster_client import ClusterClient
from headway_operator.api import KIND
from headway_operator.api.labels import CHILD_KINDS, MANAGED_SELECTOR


@dataclass(frozen=True)
class WatchedObjects:
    """What exists of the kinds that are watched, in the namespaces that are served.

    Attributes:
        client: whom to ask.
        namespaces: the namespaces; all of them when empty.
    """

    client: ClusterClient
    namespaces: tuple[str, ...]

    async def list_uids(self) -> set[str]:
        """Uids of all objects that are watched.

        Raises:
            kubernetes.aio.client.ApiException: the API server could not do it now.
        """
        uids: set[str] = set()
        for namespace in self.namespaces or (None,):
            uids |= await self.client.list_uids(KIND, "", namespace)
            for kind in (*CHILD_KINDS, "Pod"):
                uids |= await self.client.list_uids(kind, MANAGED_SELECTOR, namespace)
        return uids
