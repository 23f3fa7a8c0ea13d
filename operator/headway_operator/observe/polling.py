"""Asks sidecars how they are, each every half minute; what they accept is known from pushes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from headway_operator.observe.cluster import Cluster
from headway_operator.observe.records import PodRecord, ServiceKey
from headway_operator.observe.sidecar_client import SidecarClient
from headway_operator.observe.sidecars import Sidecars

POLL_SECONDS = 30.0


class Poller:
    """Keeps the sidecars' reports fresh."""

    def __init__(
        self,
        client: SidecarClient,
        sidecars: Sidecars,
        on_news: Callable[[ServiceKey], None],
    ) -> None:
        self._client = client
        self._sidecars = sidecars
        self._on_news = on_news
        self._polled_at: dict[str, float] = {}

    async def poll_due(self, cluster: Cluster, now: float) -> None:
        """Ask every sidecar whose turn it is; ``now`` is in seconds, of any clock."""
        alive = {pod.uid for pods in cluster.pods.values() for pod in pods}
        self._sidecars.keep_only(alive)
        self._polled_at = {uid: at for uid, at in self._polled_at.items() if uid in alive}
        due = [
            (key, pod)
            for key, pods in cluster.pods.items()
            for pod in pods
            if pod.takes_policies and self._is_due(pod, now)
        ]
        self._polled_at.update({pod.uid: now for _, pod in due})
        await asyncio.gather(*(self._poll(key, pod) for key, pod in due))

    def _is_due(self, pod: PodRecord, now: float) -> bool:
        return now - self._polled_at.get(pod.uid, float("-inf")) >= POLL_SECONDS

    async def _poll(self, key: ServiceKey, pod: PodRecord) -> None:
        answer = await self._client.status(pod)
        if answer is not None and self._sidecars.polled(pod.uid, answer):
            self._on_news(key)
