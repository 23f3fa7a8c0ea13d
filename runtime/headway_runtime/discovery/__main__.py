"""The process: resolve, ask, tell the router. See the package."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal

import aiohttp

from headway_runtime.discovery.addresses import addresses_of, url_of
from headway_runtime.discovery.membership import Membership
from headway_runtime.discovery.probing import ask
from headway_runtime.discovery.router_client import RouterClient
from headway_runtime.discovery.settings import Settings

RESOLVE_SECONDS = 1.0
PROBE_SECONDS = 0.25
"""How often an engine is asked. With many of them less often: the more there are, the smaller is
the share of requests that one dead among them meets."""
PROBES_PER_SECOND = 200
COMPARE_SECONDS = 1.0
"""The router's list is looked at so often though nothing was heard: it may have been restarted, or
somebody else may have changed it."""


class Discovery:
    """Keeps one router's list right."""

    def __init__(self, settings: Settings, session: aiohttp.ClientSession) -> None:
        self._settings = settings
        self._session = session
        self._router = RouterClient(session, settings.router_url)
        self._membership = Membership()
        self._asked: dict[str, asyncio.Task[None]] = {}
        self._news = asyncio.Event()

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._resolve(group))
            group.create_task(self._compare())

    async def _resolve(self, group: asyncio.TaskGroup) -> None:
        while True:
            found = await addresses_of(self._settings.engines_name)
            if found is not None:
                self._found(found, group)
            await asyncio.sleep(RESOLVE_SECONDS)

    def _found(self, addresses: frozenset[str], group: asyncio.TaskGroup) -> None:
        engines = {url_of(each, self._settings.engine_port): each for each in addresses}
        self._membership.found(engines)
        for url in self._asked.keys() - engines.keys():
            self._asked.pop(url).cancel()
        for url in engines.keys() - self._asked.keys():
            self._asked[url] = group.create_task(self._keep_asking(url, engines[url]))
        self._news.set()

    async def _keep_asking(self, url: str, address: str) -> None:
        asked = (f"{url}/health", f"{url_of(address, self._settings.readiness_port)}/readyz")
        while True:
            self._membership.answered(url, await ask(self._session, asked))
            self._news.set()
            await asyncio.sleep(max(PROBE_SECONDS, len(self._asked) / PROBES_PER_SECOND))

    async def _compare(self) -> None:
        loop = asyncio.get_running_loop()
        present: frozenset[str] | None = None
        read_at = loop.time()
        while True:
            await self._wait_for_news()
            if present is None or loop.time() - read_at >= COMPARE_SECONDS:
                present, read_at = await self._router.workers(), loop.time()
            changes = self._membership.changes(present or ())
            if present is not None and changes:
                await self._router.apply(changes)
                present = None

    async def _wait_for_news(self) -> None:
        """Not for long: see COMPARE_SECONDS."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(COMPARE_SECONDS):
                await self._news.wait()
        self._news.clear()


async def serve(settings: Settings) -> None:
    """Run until the process is asked to stop."""
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        running = asyncio.create_task(Discovery(settings, session).run())
        loop = asyncio.get_running_loop()
        for each in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(each, running.cancel)
        try:
            await running
        except asyncio.CancelledError:
            return


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    asyncio.run(serve(Settings.from_environment(os.environ)))
