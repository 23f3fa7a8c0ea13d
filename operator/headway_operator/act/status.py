"""Writes the status of a service."""

from __future__ import annotations

from kubernetes.aio.dynamic.exceptions import ConflictError, NotFoundError

from headway_operator.act.cluster_client import ClusterClient
from headway_operator.act.lease import Leadership
from headway_operator.api import API_VERSION, KIND, InferenceServiceStatus
from headway_operator.memory.memory import Memory
from headway_operator.metrics import WRITES
from headway_operator.observe.records import ServiceRecord
from headway_operator.observe.trimming import service_record


class StatusWriter:
    """Applies statuses; other managers' conditions stay."""

    def __init__(self, cluster: ClusterClient, leadership: Leadership, memory: Memory) -> None:
        self._cluster = cluster
        self._leadership = leadership
        self._memory = memory

    async def write(self, service: ServiceRecord, status: InferenceServiceStatus) -> None:
        """Write a status. Nothing happens if the service is gone or another has its name.

        Raises:
            NotLeaderError: this process does not lead (any more).
            kubernetes.aio.client.ApiException: the API server could not do it now.
        """
        self._leadership.require()
        namespace, name = service.key
        body = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"namespace": namespace, "name": name, "uid": service.uid},
            "status": status.to_kubernetes(),
        }
        try:
            written = await self._cluster.apply(body, "status")
        except (NotFoundError, ConflictError):
            return
        WRITES.labels(kind="Status").inc()
        self._memory.services.note(service.key, service_record(written))
