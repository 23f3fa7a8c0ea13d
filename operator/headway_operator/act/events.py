"""Emits events about services; the same event again only raises the count of the first."""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import Any

import aiohttp
from kubernetes.aio.client import ApiException

from headway_operator.act.cluster_client import ClusterClient
from headway_operator.act.lease import Leadership
from headway_operator.api import API_VERSION, KIND
from headway_operator.decide import Notice
from headway_operator.errors import told
from headway_operator.observe.instant import Instant
from headway_operator.observe.records import ServiceRecord
from headway_operator.render.hashing import content_hash

_REMEMBERED = 4096
_COMPONENT = "headway"

logger = logging.getLogger(__name__)


class EventRecorder:
    """Writes events. They are a courtesy: one that cannot be written is only logged."""

    def __init__(self, cluster: ClusterClient, leadership: Leadership, identity: str) -> None:
        self._cluster = cluster
        self._leadership = leadership
        self._identity = identity
        self._counts: OrderedDict[str, int] = OrderedDict()

    async def emit(self, service: ServiceRecord, notice: Notice, now: Instant) -> None:
        """Emit one event.

        Raises:
            NotLeaderError: this process does not lead (any more).
        """
        self._leadership.require()
        name = self._name(service, notice)
        count = self._counts.get(name, 0) + 1
        try:
            if count == 1:
                await self._cluster.create("Event", self._event(service, notice, name, now))
            else:
                patch = {"count": count, "lastTimestamp": now.text}
                await self._cluster.merge("Event", service.key.namespace, name, patch)
        except (ApiException, aiohttp.ClientError, TimeoutError) as error:
            logger.warning("%s: event %s not written: %s", service.key, notice.reason, told(error))
            count = 0  # it may have expired: begin anew
        self._remember(name, count)

    def _name(self, service: ServiceRecord, notice: Notice) -> str:
        identity = [service.uid, self._identity, notice.reason, notice.message]
        return f"{service.key.name}.{content_hash(identity)}"

    def _remember(self, name: str, count: int) -> None:
        self._counts[name] = count
        self._counts.move_to_end(name)
        if len(self._counts) > _REMEMBERED:
            self._counts.popitem(last=False)

    def _event(
        self, service: ServiceRecord, notice: Notice, name: str, now: Instant
    ) -> dict[str, Any]:
        involved = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "namespace": service.key.namespace,
            "name": service.key.name,
            "uid": service.uid,
        }
        return {
            "metadata": {"name": name, "namespace": service.key.namespace},
            "involvedObject": involved,
            "type": "Warning" if notice.warning else "Normal",
            "reason": notice.reason,
            "message": notice.message,
            "count": 1,
            "firstTimestamp": now.text,
            "lastTimestamp": now.text,
            "source": {"component": _COMPONENT},
            "reportingComponent": _COMPONENT,
            "reportingInstance": self._identity,
        }
