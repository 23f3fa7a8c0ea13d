"""Applies the objects of a service."""

from __future__ import annotations

import json
import logging
import re
from typing import Any

from kubernetes.aio.client import ApiException

from headway_operator.act.cluster_client import ClusterClient
from headway_operator.act.lease import Leadership
from headway_operator.decide import Application
from headway_operator.decide.children import applied_hash
from headway_operator.errors import told
from headway_operator.memory.memory import Memory
from headway_operator.memory.refusal import Refusal
from headway_operator.metrics import WRITES
from headway_operator.observe.instant import Instant
from headway_operator.observe.records import ServiceRecord
from headway_operator.observe.trimming import child_record

_REFUSALS = frozenset({400, 403, 422})
"""Answers that the same object would get again: malformed, not allowed, invalid."""

_UNTYPED = "failed to create typed patch object"
"""Comes with status 500, although it is the object that does not fit its schema."""

_RETRY_REFUSED_SECONDS = 60
_MAX_FIELDS = 3
_FIELD = re.compile(r"[A-Za-z][-\w.\[\]/]{0,199}\Z", re.ASCII)
_UNDECLARED = re.compile(r"\.(spec[-\w.\[\]]{0,199}): field not declared in schema", re.ASCII)


logger = logging.getLogger(__name__)


class Applier:
    """Applies objects and remembers how the API server answered."""

    def __init__(self, cluster: ClusterClient, leadership: Leadership, memory: Memory) -> None:
        self._cluster = cluster
        self._leadership = leadership
        self._memory = memory

    async def apply(self, service: ServiceRecord, application: Application, now: Instant) -> bool:
        """Apply one object. Returns whether the API server's opinion of it has changed.

        Raises:
            NotLeaderError: this process does not lead (any more).
            kubernetes.aio.client.ApiException: the API server could not do it now.
        """
        self._leadership.require()
        refusals = self._memory.of(service).refusals
        try:
            body = await self._cluster.apply(application.body)
        except ApiException as error:
            if not _is_refusal(error):
                raise
            known = refusals.get(application.slot)
            if known is None:
                logger.warning("%s: %s refused: %s", service.key, application.slot, told(error))
            refusals[application.slot] = _refusal(application, error, now)
            return known is None
        WRITES.labels(kind=application.kind).inc()
        self._memory.children.note(
            (application.slot, service.key), child_record(body, application.slot)
        )
        return refusals.pop(application.slot, None) is not None


def _is_refusal(error: ApiException) -> bool:
    return error.status in _REFUSALS or _UNTYPED in str(error.body)


def _refusal(application: Application, error: ApiException, now: Instant) -> Refusal:
    return Refusal(
        kind=application.slot,
        applied_hash=applied_hash(application.body),
        status=error.status,
        fields=_fields(error.body),
        resource_version=application.resource_version,
        retry_at=now.unix + _RETRY_REFUSED_SECONDS,
    )


def _fields(body: Any) -> tuple[str, ...]:
    """Paths of the fields the API server names; its texts may quote values and are not shown."""
    try:
        answer = json.loads(body)
        causes = answer.get("details", {}).get("causes", [])
        named = [str(cause.get("field", "")) for cause in causes]
        named += _UNDECLARED.findall(str(answer.get("message", "")))
    except (ValueError, TypeError, AttributeError):
        return ()
    return tuple(dict.fromkeys(each for each in named if _FIELD.match(each)))[:_MAX_FIELDS]
