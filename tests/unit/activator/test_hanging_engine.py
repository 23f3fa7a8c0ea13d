"""What clients get while an engine is there that never takes requests."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from headway_runtime.activator import __main__ as process
from headway_runtime.activator.passing import open_session
from headway_runtime.activator.settings import Limits, Settings
from headway_runtime.discovery import engine_watch
from headway_runtime.discovery.engine_watch import EnginesAt
from tests.unit.activator.serving import error_of, post
from tests.unit.activator.test_process import VARIABLES, free_ports, metric_becomes


@pytest.mark.parametrize("answers", [True, False])
async def test_who_waits_for_an_engine_that_hangs_is_told_when_to_come_again(
    answers: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = asyncio.Event()

    async def hang(request: web.Request) -> web.Response:
        asked.set()
        assert request.method == "GET", "a request was passed on"
        if not answers:
            await asyncio.Event().wait()
        return web.Response(status=503)

    async def resolved(_name: str) -> frozenset[str]:
        return frozenset({"127.0.0.1"})

    monkeypatch.setattr(engine_watch, "addresses_of", resolved)
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", hang)
    stop, (http, control, metrics) = asyncio.Event(), free_ports()
    async with (
        TestServer(application, host="127.0.0.1") as engine,
        open_session() as passing,
        aiohttp.ClientSession() as session,
        asyncio.TaskGroup() as group,
    ):
        assert engine.port is not None
        settings = replace(
            Settings.from_environment(VARIABLES),
            engines=EnginesAt("demo-engines", engine.port, engine.port),
            limits=Limits(requests=1, body_bytes=1000, hold_s=0.5),
            http_port=http,
            control_port=control,
            metrics_port=metrics,
        )
        group.create_task(process.Activator(settings, passing, session).run(stop))
        await metric_becomes(session, settings, "held_requests", "0.0")
        await asked.wait()
        status, headers, body = await post(session, f"http://127.0.0.1:{http}")
        assert status == 503
        assert 1 <= int(headers["Retry-After"]) <= 60
        assert error_of(body).startswith("EngineNotReady: no engine became ready in ")
        stop.set()
