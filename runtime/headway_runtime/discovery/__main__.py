"""The process: resolve, ask, tell the router. See the package."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal

import aiohttp

from headway_runtime.discovery.engine_watch import EnginesAt, EngineWatch
from headway_runtime.discovery.router_client import RouterClient
from headway_runtime.discovery.settings import Settings

COMPARE_SECONDS = 1.0
"""The router's list is looked at so often though nothing was heard: it may have been restarted, or
somebody else may have changed it."""


class Discovery:
    """Keeps one router's list right."""

    def __init__(self, settings: Settings, session: aiohttp.ClientSession) -> None:
        self._router = RouterClient(session, settings.router_url)
        self._news = asyncio.Event()
        at = EnginesAt(settings.engines_name, settings.engine_port, settings.readiness_port)
        self._engines = EngineWatch(at, session, self._news.set)

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._engines.run())
            group.create_task(self._compare())

    async def _compare(self) -> None:
        loop = asyncio.get_running_loop()
        present: frozenset[str] | None = None
        read_at = loop.time()
        while True:
            await self._wait_for_news()
            if present is None or loop.time() - read_at >= COMPARE_SECONDS:
                present, read_at = await self._router.workers(), loop.time()
            changes = self._engines.membership.changes(present or ())
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
