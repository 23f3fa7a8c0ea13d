"""Leadership by one Lease; its transitions are the epoch that fences policies.

``kubernetes.aio.leaderelection`` is not used: it keeps no count of transitions.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import aiohttp
from kubernetes.aio.client import ApiException
from kubernetes.aio.dynamic.exceptions import ConflictError

from headway_operator.act.cluster_client import ClusterClient
from headway_operator.errors import told

LEASE_NAME = "headway-operator"
LEASE_SECONDS = 15
"""A Lease that was not renewed for this long may be taken."""
RENEW_SECONDS = 3
_VALID_SECONDS = 10
"""The leader stops acting this long after its last renewal: before anybody may take the Lease."""
_RELEASE_TIMEOUT_SECONDS = 2

logger = logging.getLogger(__name__)


def _minutes_since_1970() -> int:
    return int(time.time() // 60)


class NotLeaderError(Exception):
    """This process must not act: it does not hold the Lease."""


class Leadership:
    """Acquires and renews the Lease. All times are this process's own: clocks may differ."""

    def __init__(
        self,
        cluster: ClusterClient,
        namespace: str,
        identity: str,
        on_acquired: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._identity = identity
        self._on_acquired = on_acquired
        self._clock = clock
        self._epoch = 0
        self._valid_until = float("-inf")
        self._seen: tuple[Any, Any] | None = None
        self._seen_at = float("-inf")
        self.looks = 0
        """How often the API server has shown the Lease, or taken its renewal."""

    @property
    def epoch(self) -> int | None:
        """The term of leadership; None while this process does not lead."""
        return self._epoch if self._clock() < self._valid_until else None

    def require(self) -> None:
        """Check before every write.

        Raises:
            NotLeaderError: this process does not hold the Lease.
        """
        if self.epoch is None:
            raise NotLeaderError

    async def run(self) -> None:
        """Acquire and renew until cancelled; then hand the Lease back."""
        try:
            while True:
                await self._try_once()
                await asyncio.sleep(RENEW_SECONDS)
        finally:
            with suppress(ApiException, aiohttp.ClientError, TimeoutError):
                await asyncio.wait_for(self._release(), _RELEASE_TIMEOUT_SECONDS)

    async def _try_once(self) -> None:
        try:
            await self.acquire_or_renew()
        except ConflictError:
            logger.debug("Somebody else wrote the Lease first")
        except (ApiException, aiohttp.ClientError, TimeoutError) as error:
            logger.warning("The Lease cannot be renewed: %s", told(error))

    async def acquire_or_renew(self) -> None:
        """One attempt.

        Raises:
            kubernetes.aio.client.ApiException, aiohttp.ClientError, TimeoutError: it failed.
        """
        began, led = self._clock(), self.epoch
        lease = await self._cluster.get("Lease", self._namespace, LEASE_NAME)
        if lease is not None and not self._may_take(lease["spec"]):
            self._valid_until = float("-inf")
            self.looks += 1
            return
        spec = self._next_spec(lease["spec"] if lease else {})
        if lease is None:
            await self._cluster.create("Lease", {"metadata": self._metadata(), "spec": spec})
        else:
            await self._cluster.replace("Lease", {**lease, "spec": spec})
        self.looks += 1
        self._epoch, self._valid_until = spec["leaseTransitions"], began + _VALID_SECONDS
        if led != self._epoch:
            logger.info("Leading, term %d", self._epoch)
            self._on_acquired()

    def _may_take(self, spec: dict[str, Any]) -> bool:
        """Ours, free, or not renewed for as long as it lasts, as far as we have seen."""
        holder = spec.get("holderIdentity")
        seen = (holder, spec.get("renewTime"))
        if seen != self._seen:
            self._seen, self._seen_at = seen, self._clock()
        lasts = spec.get("leaseDurationSeconds") or LEASE_SECONDS
        return holder in (self._identity, "", None) or self._clock() >= self._seen_at + lasts

    def _next_spec(self, old: dict[str, Any]) -> dict[str, Any]:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        renewed = old.get("holderIdentity") == self._identity
        transitions = old.get("leaseTransitions", 0)
        return {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": LEASE_SECONDS,
            "acquireTime": old.get("acquireTime", now) if renewed else now,
            "renewTime": now,
            "leaseTransitions": transitions if renewed else self._next_term(transitions),
        }

    def _next_term(self, last: int) -> int:
        """Above every earlier term, also if the Lease, and with it the count, was lost.

        Terms last for longer than a minute on average, so the minutes since 1970 stay ahead.
        """
        return max(last + 1, self._epoch + 1, _minutes_since_1970())

    def _metadata(self) -> dict[str, Any]:
        labels = {"app.kubernetes.io/name": "headway"}
        return {"name": LEASE_NAME, "namespace": self._namespace, "labels": labels}

    async def _release(self) -> None:
        if self.epoch is None:
            return
        self._valid_until = float("-inf")
        lease = await self._cluster.get("Lease", self._namespace, LEASE_NAME)
        if lease is not None and lease["spec"].get("holderIdentity") == self._identity:
            spec = {**lease["spec"], "holderIdentity": ""}
            await self._cluster.replace("Lease", {**lease, "spec": spec})
