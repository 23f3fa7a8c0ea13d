"""Asks sidecars how they are, in turn; what they accept is known from pushes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from headway_operator.observe.cluster import Cluster
from headway_operator.observe.records import PodRecord, ServiceKey
from headway_operator.observe.sidecar_client import SidecarClient
from headway_operator.observe.sidecars import Sidecars

POLL_SECONDS = 30.0
"""Nobody is asked more often."""

POLLS_A_TICK = 50
"""Nor are more asked again in one tick: thousands would cost the operator a tenth of a core.
Those that were never asked are asked at once, as decisions wait for them."""


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

    def forget(self) -> None:
        """Everybody is asked again at once, as nobody was yet."""
        self._polled_at = {}

    async def poll_due(self, cluster: Cluster, now: float) -> None:
        """Ask every sidecar whose turn it is; ``now`` is in seconds, of any clock."""
        alive = {pod.uid for pods in cluster.pods.values() for pod in pods}
        self._sidecars.keep_only(alive)
        self._polled_at = {uid: at for uid, at in self._polled_at.items() if uid in alive}
        takers = [
            (key, pod) for key, pods in cluster.pods.items() for pod in pods if pod.takes_policies
        ]
        again = [each for each in takers if self._is_due_again(each[1], now)]
        again.sort(key=lambda each: self._polled_at[each[1].uid])
        due = [each for each in takers if each[1].uid not in self._polled_at]
        due += again[:POLLS_A_TICK]
        self._polled_at.update({pod.uid: now for _, pod in due})
        await asyncio.gather(*(self._poll(key, pod) for key, pod in due))

    def _is_due_again(self, pod: PodRecord, now: float) -> bool:
        return now - self._polled_at.get(pod.uid, now) >= POLL_SECONDS

    async def _poll(self, key: ServiceKey, pod: PodRecord) -> None:
        answer = await self._client.status(pod)
        if answer is None:
            news = self._sidecars.silent(pod.uid)
        else:
            news = self._sidecars.polled(pod.uid, answer)
        if news:
            self._on_news(key)
