"""The process beside the router, with real HTTP on loopback and a name server that is made up."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from headway_runtime.discovery import __main__ as process
from headway_runtime.discovery import engine_watch
from headway_runtime.discovery.addresses import addresses_of, url_of
from headway_runtime.discovery.membership import Answer
from headway_runtime.discovery.probing import ask
from headway_runtime.discovery.settings import Settings

STRANGER = "http://192.0.2.1:8000"


class FakeRouter:
    """As vllm-router keeps its list."""

    def __init__(self) -> None:
        self.urls = [STRANGER]
        application = web.Application()
        application.router.add_get("/list_workers", self._list)
        application.router.add_post("/add_worker", self._add)
        application.router.add_post("/remove_worker", self._remove)
        self.server = TestServer(application, host="127.0.0.1")

    async def _list(self, _request: web.Request) -> web.Response:
        return web.json_response({"urls": self.urls})

    async def _add(self, request: web.Request) -> web.Response:
        self.urls.append(request.query["url"])
        return web.Response()

    async def _remove(self, request: web.Request) -> web.Response:
        self.urls.remove(request.query["url"])
        return web.Response()


class FakeEngine:
    """An engine, and on the same port its sidecar."""

    def __init__(self) -> None:
        self.status = {"/health": 200, "/readyz": 200}
        application = web.Application()
        application.router.add_get("/{path}", self._say)
        self.server = TestServer(application, host="127.0.0.1")

    async def _say(self, request: web.Request) -> web.Response:
        return web.Response(status=self.status[request.path])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"


@pytest.fixture
async def router() -> AsyncIterator[FakeRouter]:
    made = FakeRouter()
    async with made.server:
        yield made


@pytest.fixture
async def engine() -> AsyncIterator[FakeEngine]:
    made = FakeEngine()
    async with made.server:
        yield made


@asynccontextmanager
async def running(router: FakeRouter, engine: FakeEngine) -> AsyncIterator[None]:
    port = engine.server.port
    assert port is not None
    settings = Settings("engines", port, port, f"http://127.0.0.1:{router.server.port}")
    async with aiohttp.ClientSession() as session:
        task = asyncio.create_task(process.Discovery(settings, session).run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def becomes(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)


async def test_a_router_gets_the_engines_that_take_requests(
    router: FakeRouter, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def resolved(_name: str) -> frozenset[str]:
        return frozenset({"127.0.0.1"})

    monkeypatch.setattr(engine_watch, "addresses_of", resolved)
    async with running(router, engine):
        await becomes(lambda: router.urls == [engine.url])
        engine.status["/readyz"] = 503  # it is being stopped; its server goes on
        await becomes(lambda: router.urls == [])
        engine.status["/readyz"] = 200
        await becomes(lambda: router.urls == [engine.url])
        router.urls.append(STRANGER)
        await becomes(lambda: router.urls == [engine.url])
        router.urls.clear()  # as after a restart
        await becomes(lambda: router.urls == [engine.url])
        await engine.server.close()
        await becomes(lambda: router.urls == [])


async def test_a_name_that_cannot_be_resolved_changes_nothing(
    router: FakeRouter, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[frozenset[str] | None] = [frozenset({"127.0.0.1"})]
    asked = asyncio.Event()

    async def resolved(_name: str) -> frozenset[str] | None:
        asked.set()
        return answers[0]

    monkeypatch.setattr(engine_watch, "addresses_of", resolved)
    monkeypatch.setattr(engine_watch, "RESOLVE_SECONDS", 0.01)
    async with running(router, engine):
        await becomes(lambda: router.urls == [engine.url])
        answers[0] = None
        asked.clear()
        await asked.wait()
        await asyncio.sleep(0.05)
        assert router.urls == [engine.url]
        answers[0] = frozenset()
        await becomes(lambda: router.urls == [])


async def test_what_an_engine_answers() -> None:
    engine = FakeEngine()
    async with aiohttp.ClientSession() as session:
        async with engine.server:
            urls = (f"{engine.url}/health", f"{engine.url}/readyz")
            assert await ask(session, urls) is Answer.YES
            engine.status["/readyz"] = 503
            assert await ask(session, urls) is Answer.NO
        assert await ask(session, urls) is Answer.NO


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (socket.gaierror(socket.EAI_NONAME, ""), frozenset()),
        (socket.gaierror(socket.EAI_AGAIN, ""), None),
        (OSError(), None),
    ],
)
async def test_only_a_name_that_stands_for_nothing_means_nobody(
    error: Exception, expected: frozenset[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(socket, "getaddrinfo", fails)
    assert await addresses_of("engines") == expected


async def test_addresses_and_urls() -> None:
    assert await addresses_of("127.0.0.1") == {"127.0.0.1"}
    assert url_of("10.0.0.1", 8000) == "http://10.0.0.1:8000"
    assert url_of("fd00::1", 8000) == "http://[fd00::1]:8000"


def test_what_the_process_is_told() -> None:
    variables = {
        "HEADWAY_ENGINES_NAME": "demo-engines",
        "HEADWAY_ENGINE_PORT": "8000",
        "HEADWAY_READINESS_PORT": "8901",
        "HEADWAY_ROUTER_URL": "http://127.0.0.1:8000/",
    }
    expected = Settings("demo-engines", 8000, 8901, "http://127.0.0.1:8000")
    assert Settings.from_environment(variables) == expected
