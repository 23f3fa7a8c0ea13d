"""Finds out which engines take requests: resolves their name, and asks each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import aiohttp

from headway_runtime.discovery.addresses import addresses_of, url_of
from headway_runtime.discovery.membership import Membership
from headway_runtime.discovery.probing import ask

RESOLVE_SECONDS = 1.0
PROBE_SECONDS = 0.25
"""How often an engine is asked. With many of them less often: the more there are, the smaller is
the share of requests that one dead among them meets."""
PROBES_PER_SECOND = 200


@dataclass(frozen=True)
class EnginesAt:
    """Where engines are.

    Attributes:
        name: DNS name that stands for the addresses of all engines.
        port: port on which they take requests.
        readiness_port: port on which their sidecars say whether they are being stopped.
    """

    name: str
    port: int
    readiness_port: int


class EngineWatch:
    """Keeps a membership up to date.

    Args:
        at: where the engines are.
        session: to ask with.
        on_news: called after each answer, of engines or of the name server.
    """

    def __init__(
        self, at: EnginesAt, session: aiohttp.ClientSession, on_news: Callable[[], None]
    ) -> None:
        self.membership = Membership()
        self._at = at
        self._session = session
        self._on_news = on_news
        self._asked: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                found = await addresses_of(self._at.name)
                if found is not None:
                    self._found(found, group)
                await asyncio.sleep(RESOLVE_SECONDS)

    def _found(self, addresses: frozenset[str], group: asyncio.TaskGroup) -> None:
        engines = {url_of(each, self._at.port): each for each in addresses}
        self.membership.found(engines)
        for url in self._asked.keys() - engines.keys():
            self._asked.pop(url).cancel()
        for url in engines.keys() - self._asked.keys():
            self._asked[url] = group.create_task(self._keep_asking(url, engines[url]))
        self._on_news()

    async def _keep_asking(self, url: str, address: str) -> None:
        asked = (f"{url}/health", f"{url_of(address, self._at.readiness_port)}/readyz")
        while True:
            self.membership.answered(url, await ask(self._session, asked))
            self._on_news()
            await asyncio.sleep(max(PROBE_SECONDS, len(self._asked) / PROBES_PER_SECOND))
