"""The whole process, with a name server that is made up."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from headway_runtime.activator import __main__ as process
from headway_runtime.activator.passing import open_session
from headway_runtime.activator.settings import Limits, Settings
from headway_runtime.discovery import engine_watch
from headway_runtime.discovery.engine_watch import EnginesAt
from tests.unit.activator.serving import becomes, post

RUNTIME = Path(__file__).parents[3] / "runtime"
VARIABLES = {
    "HEADWAY_ENGINES_NAME": "demo-engines",
    "HEADWAY_ENGINE_PORT": "8000",
    "HEADWAY_READINESS_PORT": "8901",
    "HEADWAY_HTTP_PORT": "8000",
    "HEADWAY_CONTROL_PORT": "8900",
    "HEADWAY_METRICS_PORT": "8901",
    "HEADWAY_SERVED_NAME": "small",
    "HEADWAY_HELD_REQUESTS": "2",
    "HEADWAY_HELD_BYTES": "1000",
    "HEADWAY_HOLD_SECONDS": "30",
    "HEADWAY_START_SECONDS": "60",
    "HEADWAY_DRAIN_SECONDS": "20",
}


class FakeEngine:
    """An engine, and on the same port its sidecar."""

    def __init__(self) -> None:
        self.ready = 503
        self.may_answer = asyncio.Event()
        application = web.Application()
        application.router.add_get("/{path}", self._say)
        application.router.add_post("/{path:.*}", self._answer)
        self.server = TestServer(application, host="127.0.0.1")

    async def _say(self, request: web.Request) -> web.Response:
        return web.Response(status=self.ready if request.path == "/readyz" else 200)

    async def _answer(self, _request: web.Request) -> web.Response:
        await self.may_answer.wait()
        return web.Response(text="answer")


def free_ports() -> list[int]:
    with socket.socket() as one, socket.socket() as two, socket.socket() as three:
        for each in (one, two, three):
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in (one, two, three)]


@asynccontextmanager
async def running(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Settings, asyncio.Event, asyncio.Task[None]]]:
    async def resolved(_name: str) -> frozenset[str]:
        return frozenset({"127.0.0.1"})

    monkeypatch.setattr(engine_watch, "addresses_of", resolved)
    port = engine.server.port
    assert port is not None
    http, control, metrics = free_ports()
    settings = replace(
        Settings.from_environment(VARIABLES),
        engines=EnginesAt("demo-engines", port, port),
        http_port=http,
        control_port=control,
        metrics_port=metrics,
    )
    stop = asyncio.Event()
    async with open_session() as passing, aiohttp.ClientSession() as asking:
        task = asyncio.create_task(process.Activator(settings, passing, asking).run(stop))
        try:
            yield settings, stop, task
        finally:
            stop.set()
            await task


async def metrics_of(session: aiohttp.ClientSession, settings: Settings) -> dict[str, str]:
    try:
        async with session.get(f"http://127.0.0.1:{settings.metrics_port}/metrics") as response:
            lines = (await response.text()).splitlines()
    except aiohttp.ClientConnectionError:
        return {}
    return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))


async def metric_becomes(
    session: aiohttp.ClientSession, settings: Settings, name: str, value: str
) -> None:
    async with asyncio.timeout(30):
        while (await metrics_of(session, settings)).get(f"headway_activator_{name}") != value:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)


async def test_it_holds_until_the_engine_says_that_it_is_ready_and_ends_what_it_has_when_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = FakeEngine()
    async with (
        engine.server,
        aiohttp.ClientSession() as session,
        running(engine, monkeypatch) as (settings, stop, task),
    ):
        await metric_becomes(session, settings, "held_requests", "0.0")
        url = f"http://127.0.0.1:{settings.http_port}"
        asked = asyncio.create_task(post(session, url))
        await metric_becomes(session, settings, "held_requests", "1.0")
        engine.ready = 200
        await metric_becomes(session, settings, "passing_requests", "1.0")
        stop.set()
        await asyncio.sleep(0.05)
        assert not task.done()
        engine.may_answer.set()
        assert (await asked)[2] == b"answer"
        await becomes(task.done)


@pytest.mark.parametrize(
    "request_text",
    [
        b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nSECRET",
        b"POST /v1/completions?q=SECRET HTTP/1.1\r\nHost: a\r\nContent-Length: SECRET\r\n\r\n",
        b"SECRET\x00 HTTP/1.1\r\nSECRET\r\n\r\n",
        b"GET /SECRET HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer SECRET\r\n\r\n",
    ],
)
def test_nothing_of_a_request_is_logged(request_text: bytes) -> None:
    http, control, metrics = free_ports()
    ports = {"HTTP": http, "CONTROL": control, "METRICS": metrics}
    variables = {
        **VARIABLES,
        **{f"HEADWAY_{name}_PORT": str(port) for name, port in ports.items()},
        "HEADWAY_ENGINES_NAME": "localhost",
        "HEADWAY_HELD_REQUESTS": "0",
        "PYTHONPATH": str(RUNTIME),
    }
    with subprocess.Popen(
        [sys.executable, "-m", "headway_runtime.activator"],
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as activator:
        try:
            status = answer_to(request_text, http).split(b" ")[1]
        finally:
            activator.terminate()
            logged, _ = activator.communicate(timeout=30)
    assert status in {b"400", b"503"}
    assert b"SECRET" not in logged
    assert activator.returncode == 0


def answer_to(request_text: bytes, port: int) -> bytes:
    """The first part of an answer, of a server that may still be starting."""
    deadline = time.monotonic() + 30
    while True:
        with socket.socket() as connection:
            connection.settimeout(30)
            if connection.connect_ex(("127.0.0.1", port)) == 0:
                connection.sendall(request_text)
                return connection.recv(65_536)
        assert time.monotonic() < deadline, "it does not listen"
        time.sleep(0.02)


def test_what_it_is_told() -> None:
    told = Settings.from_environment(VARIABLES)
    assert told.engines == EnginesAt("demo-engines", 8000, 8901)
    assert told.limits == Limits(2, 1000, 30.0)
    with pytest.raises(KeyError, match="HEADWAY_HOLD_SECONDS"):
        Settings.from_environment(
            {key: value for key, value in VARIABLES.items() if key != "HEADWAY_HOLD_SECONDS"}
        )
