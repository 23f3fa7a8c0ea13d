"""An activator and engines on loopback, with real HTTP."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Self

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer

from headway_runtime.activator.application import client_application, control_application
from headway_runtime.activator.front import Front
from headway_runtime.activator.passing import open_session
from headway_runtime.activator.settings import Limits
from headway_runtime.activator.start_time import StartTime

LIMITS = Limits(requests=2, body_bytes=1000, hold_s=30.0)
PATH = "/v1/completions"


class Engine:
    """An engine that streams what it was sent, piece by piece, as it is allowed to."""

    def __init__(self) -> None:
        self.received: list[tuple[str, str, dict[str, str], bytes]] = []
        self.pieces = 3
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()
        self.dies_after: int | None = None
        self.client_left = asyncio.Event()
        self.answers = 200
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._answer)
        self.server = TestServer(application, host="127.0.0.1")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    async def __aenter__(self) -> Self:
        await self.server.start_server()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.close()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.received.append((request.method, request.raw_path, dict(request.headers), body))
        try:
            return await self._stream(request, body)
        except (asyncio.CancelledError, ConnectionError):
            self.client_left.set()
            raise

    async def _stream(self, request: web.Request, body: bytes) -> web.StreamResponse:
        transport = request.transport
        assert transport is not None
        if self.dies_after == 0:
            transport.abort()
            return web.Response()
        response = web.StreamResponse(
            status=self.answers, headers={"X-Of-Engine": "yes", "Retry-After": "7"}
        )
        await response.prepare(request)
        for number in range(self.pieces):
            if self.dies_after == number:
                transport.abort()
                return response
            await response.write(b"%d:" % number + body)
            await self.may_go_on.wait()
        await response.write_eof()
        return response


class Activator:
    """An activator whose engines the test names."""

    def __init__(self, front: Front) -> None:
        self.front = front
        self.clients = TestServer(client_application(front), host="127.0.0.1")
        self.control = TestServer(control_application(front), host="127.0.0.1")

    def engines(self, *engines: Engine) -> None:
        self.front.engines.are(frozenset(each.url for each in engines))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.clients.port}"

    async def told(self, session: aiohttp.ClientSession, **query: str) -> dict[str, Any]:
        """What the operator is told."""
        url = f"http://127.0.0.1:{self.control.port}/v1/demand"
        async with session.get(url, params=query) as response:
            answer: dict[str, Any] = await response.json()
            return answer

    def outcomes(self) -> dict[str, float]:
        """Requests by what became of them."""
        return {
            sample.labels["outcome"]: sample.value
            for family in self.front.metrics.registry.collect()
            for sample in family.samples
            if sample.name == "headway_activator_requests_total"
        }


@asynccontextmanager
async def activator(limits: Limits = LIMITS, start_s: float = 60.0) -> AsyncIterator[Activator]:
    """One that runs, without engines."""
    async with open_session() as session:
        made = Activator(Front(session, limits, "small", StartTime(start_s), time.monotonic))
        await made.clients.start_server(access_log=None)
        await made.control.start_server()
        try:
            yield made
        finally:
            await made.clients.close()
            await made.control.close()


async def becomes(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.005)


async def post(
    session: aiohttp.ClientSession, url: str, body: bytes = b"prompt", path: str = PATH
) -> tuple[int, dict[str, str], bytes]:
    """A request and its whole answer."""
    async with session.post(url + path, data=body) as response:
        return response.status, dict(response.headers), await response.read()


def error_of(body: bytes) -> str:
    """The message of an error in OpenAI's shape."""
    return str(json.loads(body)["error"]["message"])
