"""The process: look for engines, and serve. See the package."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time

import aiohttp
from aiohttp import web

from headway_runtime.activator.application import (
    client_application,
    control_application,
    metrics_application,
)
from headway_runtime.activator.front import Front
from headway_runtime.activator.passing import open_session
from headway_runtime.activator.settings import Settings
from headway_runtime.activator.start_time import StartTime
from headway_runtime.discovery.engine_watch import EngineWatch

_ALL_ADDRESSES = "0.0.0.0"  # noqa: S104 - a pod's own network namespace
_BACKLOG = 1024

logger = logging.getLogger(__name__)


class Activator:
    """Everything wired together.

    Args:
        settings: what it is told.
        passing: to pass requests on with.
        asking: to ask engines with.
    """

    def __init__(
        self, settings: Settings, passing: aiohttp.ClientSession, asking: aiohttp.ClientSession
    ) -> None:
        self.settings = settings
        self.front = Front(
            passing,
            settings.limits,
            settings.served_name,
            StartTime(settings.start_s),
            time.monotonic,
        )
        self.engines = EngineWatch(settings.engines, asking, self._heard)
        self._taking: frozenset[str] = frozenset()

    def _heard(self) -> None:
        membership, start_time = self.engines.membership, self.front.start_time
        taking, now = membership.taking_requests, time.monotonic()
        if taking and not self._taking:
            start_time.ends(now)
        elif membership.candidates and not taking and not self._taking:
            start_time.begins(now)
        for url in taking - self._taking:
            logger.info("%s takes requests", url)
        for url in self._taking - taking:
            logger.info("%s takes no requests any more", url)
        self._taking = taking
        self.front.engines.are(taking)

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until told to stop, and then until what is there has ended, or its time is over."""
        settings, front = self.settings, self.front
        clients = _runner(client_application(front), settings.drain_s)
        others = [
            (_runner(control_application(front), 1.0), settings.control_port),
            (_runner(metrics_application(front), 1.0), settings.metrics_port),
        ]
        watching = asyncio.create_task(self.engines.run())
        try:
            for runner, port in (*others, (clients, settings.http_port)):
                await runner.setup()
                await web.TCPSite(runner, _ALL_ADDRESSES, port, backlog=_BACKLOG).start()
            waiting = asyncio.create_task(stop.wait())
            # Without the watch nothing would ever be passed on: end, and be started again.
            await asyncio.wait({waiting, watching}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
        finally:
            for runner in (clients, *(each for each, _ in others)):
                await runner.cleanup()
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)


def _runner(application: web.Application, drain_s: float) -> web.AppRunner:
    return web.AppRunner(
        application,
        # No line for any request: paths and queries are the clients' own.
        access_log=None,
        # What a client waits for no more is given up.
        handler_cancellation=True,
        shutdown_timeout=drain_s,
    )


async def serve(settings: Settings) -> None:
    """Run until the process is asked to stop."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, stop.set)
    connector = aiohttp.TCPConnector(limit=0)
    async with open_session() as passing, aiohttp.ClientSession(connector=connector) as asking:
        await Activator(settings, passing, asking).run(stop)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    # Its tracebacks may quote what a client sent.
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)
    asyncio.run(serve(Settings.from_environment(os.environ)))
