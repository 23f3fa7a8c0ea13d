"""What clients meet at an activator, over real HTTP on loopback."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator

import aiohttp
import pytest

from headway_runtime.activator.settings import Limits
from tests.unit.activator.serving import (
    LIMITS,
    PATH,
    Activator,
    Engine,
    activator,
    becomes,
    error_of,
    post,
)


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as made:
        yield made


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    async with Engine() as made:
        yield made


@pytest.fixture
async def front() -> AsyncIterator[Activator]:
    async with activator() as made:
        yield made


def unused_url() -> str:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{reserved.getsockname()[1]}"


async def test_a_request_is_held_until_an_engine_takes_it(
    session: aiohttp.ClientSession, front: Activator, engine: Engine
) -> None:
    asked = asyncio.create_task(post(session, front.url + "/x%2Fy?a=%26&c", b"what"))
    await becomes(lambda: front.front.in_flight.held == 1)
    assert not asked.done()
    front.engines(engine)
    status, headers, body = await asked
    assert (status, body) == (200, b"0:what1:what2:what")
    assert headers["X-Of-Engine"] == "yes"
    ((method, path, _, sent),) = engine.received
    assert (method, path, sent) == ("POST", "/x%2Fy?a=%26&c" + PATH, b"what")
    assert front.front.in_flight.held == 0
    assert front.front.room.body_bytes == 0
    assert front.outcomes() == {"Passed": 1}


async def test_a_request_passes_at_once_where_an_engine_is_there_and_is_no_demand(
    session: aiohttp.ClientSession, front: Activator, engine: Engine
) -> None:
    front.engines(engine)
    large = b"x" * 300_000  # more than may be held
    status, headers, body = await post(session, front.url, large)
    assert (status, len(body)) == (200, 3 * (2 + len(large)))
    assert headers["Connection"] == "close"  # the next one has a shorter way
    async with session.get(front.url + "/v1/models") as response:
        assert response.status == 200
        assert await response.read() == b"0:1:2:"
    assert (await front.told(session))["secondsSinceAsked"] is None


async def test_headers_pass_both_ways_but_those_of_the_connection(
    session: aiohttp.ClientSession, front: Activator, engine: Engine
) -> None:
    front.engines(engine)
    engine.answers = 503  # a refusal of the engine's own passes as it is
    sent = {"Authorization": "Bearer k", "X-Session-ID": "s", "Connection": "X-Hop", "X-Hop": "1"}
    async with session.post(front.url + PATH, data=b"", headers=sent) as response:
        assert (response.status, response.headers["Retry-After"]) == (503, "7")
    ((_, _, received, _),) = engine.received
    assert (received["Authorization"], received["X-Session-ID"]) == ("Bearer k", "s")
    assert "X-Hop" not in received


async def test_answers_are_streamed_as_they_come(
    session: aiohttp.ClientSession, front: Activator, engine: Engine
) -> None:
    engine.may_go_on.clear()
    asked = asyncio.create_task(session.post(front.url + PATH, data=b"a"))
    await becomes(lambda: front.front.in_flight.held == 1)
    front.engines(engine)
    async with await asked as response:
        assert await response.content.readany() == b"0:a"
        told = await front.told(session)
        assert (told["held"], told["passing"]) == (0, 1)
        # What an engine has taken takes no room from others.
        assert (front.front.room.requests, front.front.room.body_bytes) == (0, 0)
        engine.may_go_on.set()
        assert await response.read() == b"1:a2:a"


async def test_more_requests_than_may_be_held_are_told_when_to_come_again(
    session: aiohttp.ClientSession, engine: Engine
) -> None:
    async with activator(start_s=42.0) as front:
        held = [asyncio.create_task(post(session, front.url)) for _ in range(LIMITS.requests)]
        await becomes(lambda: front.front.in_flight.held == LIMITS.requests)
        status, headers, body = await post(session, front.url)
        assert status == 503
        assert 40 <= int(headers["Retry-After"]) <= 42
        assert error_of(body).startswith("ActivatorFull: no engine is ready, and 2 requests are")
        front.engines(engine)
        assert [status for status, _, _ in await asyncio.gather(*held)] == [200, 200]
        assert front.outcomes() == {"ActivatorFull": 1, "Passed": 2}


async def test_bodies_are_held_up_to_a_bound_of_all_together(
    session: aiohttp.ClientSession, front: Activator, engine: Engine
) -> None:
    first = asyncio.create_task(post(session, front.url, b"x" * 900))
    await becomes(lambda: front.front.room.body_bytes == 900)
    status, _, body = await post(session, front.url, b"y" * 200)
    assert status == 503
    assert "may have 1000 bytes together" in error_of(body)
    assert front.front.room.body_bytes == 900
    front.engines(engine)
    assert (await first)[0] == 200
    assert front.front.room.body_bytes == 0


async def test_a_request_is_held_no_longer_than_it_may_be(session: aiohttp.ClientSession) -> None:
    async with activator(Limits(2, 1000, hold_s=0.05)) as front:
        status, headers, body = await post(session, front.url)
        assert (status, "Retry-After" in headers) == (503, True)
        assert error_of(body).startswith("EngineNotReady: no engine became ready in ")
        assert (front.front.in_flight.held, front.front.room.requests) == (0, 0)


async def test_nothing_need_be_held_for_an_engine_to_be_asked_for(
    session: aiohttp.ClientSession,
) -> None:
    async with activator(Limits(0, 1000, hold_s=30.0)) as front:
        assert (await post(session, front.url))[0] == 503
        told = await front.told(session)
        assert told["held"] == 0
        assert 0 <= told["secondsSinceAsked"] < 30


async def test_clients_of_anthropics_api_get_its_errors(session: aiohttp.ClientSession) -> None:
    async with activator(Limits(0, 1000, hold_s=30.0)) as front:
        _, _, body = await post(session, front.url, path="/v1/messages")
        assert json.loads(body)["error"]["type"] == "overloaded_error"


async def test_who_only_looks_starts_no_engine(
    session: aiohttp.ClientSession, front: Activator
) -> None:
    found = {}
    for path in ("/health", "/ping", "/v1/models", "/metrics", "/v1/responses/7"):
        async with session.get(front.url + path) as response:
            found[path] = response.status
            text = await response.text()
        if path == "/v1/models":
            assert [each["id"] for each in json.loads(text)["data"]] == ["small"]
    assert list(found.values()) == [200, 200, 200, 503, 503]
    assert (await front.told(session))["secondsSinceAsked"] is None


async def test_who_only_looks_at_an_engine_does_not_use_it(
    session: aiohttp.ClientSession, front: Activator, engine: Engine
) -> None:
    front.engines(engine)
    engine.may_go_on.clear()
    before = await front.told(session)
    async with session.get(front.url + "/health") as response:
        assert await response.content.readany() == b"0:"
        assert await front.told(session) == before
        engine.may_go_on.set()
    asked = asyncio.create_task(post(session, front.url))
    await asked
    assert (await front.told(session))["version"] != before["version"]


async def test_a_websocket_starts_an_engine_and_is_told_to_come_again(
    session: aiohttp.ClientSession, front: Activator
) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await session.ws_connect(front.url + "/v1/realtime")
    assert refused.value.status == 503
    assert (await front.told(session))["secondsSinceAsked"] is not None


async def test_a_client_that_leaves_gives_its_place_back(
    session: aiohttp.ClientSession, front: Activator
) -> None:
    asked = asyncio.create_task(post(session, front.url))
    await becomes(lambda: front.front.in_flight.held == 1)
    asked.cancel()
    await becomes(lambda: front.front.room.requests == 0)
    assert front.front.in_flight.held == 0
    assert front.front.room.body_bytes == 0
    assert front.outcomes() == {"GaveUp": 1}
    assert (await front.told(session))["secondsSinceAsked"] is not None


async def test_an_engine_hears_of_a_client_that_leaves(
    session: aiohttp.ClientSession, front: Activator, engine: Engine
) -> None:
    front.engines(engine)
    engine.may_go_on.clear()
    response = await session.post(front.url + PATH, data=b"a")
    await response.content.readany()
    response.close()
    await asyncio.wait_for(engine.client_left.wait(), 30)
    await becomes(lambda: front.front.in_flight.passing == 0)


async def test_an_engine_that_cannot_be_reached_is_left_out_and_the_request_waits_for_another(
    session: aiohttp.ClientSession, front: Activator, engine: Engine
) -> None:
    front.front.engines.are(frozenset({unused_url()}))
    asked = asyncio.create_task(post(session, front.url, b"a"))
    await becomes(lambda: front.front.in_flight.held == 1)
    front.front.engines.are(frozenset({unused_url()}))
    await becomes(lambda: front.front.engines.next() is None)
    front.engines(engine)
    assert (await asked)[2] == b"0:a1:a2:a"


async def test_an_engine_that_dies_before_it_answers_costs_the_request(
    session: aiohttp.ClientSession, front: Activator, engine: Engine
) -> None:
    front.engines(engine)
    engine.dies_after = 0
    status, headers, body = await post(session, front.url)
    assert status == 502
    assert "Retry-After" not in headers
    assert error_of(body).startswith("EngineLost")
    assert len(engine.received) == 1  # it is not known what it has done of it
    assert front.outcomes() == {"Lost": 1}


async def test_an_answer_that_is_cut_short_does_not_look_whole(
    session: aiohttp.ClientSession, front: Activator, engine: Engine
) -> None:
    front.engines(engine)
    engine.dies_after = 2
    async with session.post(front.url + PATH, data=b"a") as response:
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.read()
    await becomes(lambda: front.outcomes() == {"Lost": 1})


async def test_a_target_that_is_no_path_goes_nowhere(front: Activator, engine: Engine) -> None:
    front.engines(engine)
    reader, writer = await asyncio.open_connection("127.0.0.1", front.clients.port)
    writer.write(b"POST @elsewhere/ HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
    answer = await reader.readline()
    writer.close()
    await writer.wait_closed()
    assert b" 400 " in answer
    assert engine.received == []


async def test_the_operator_is_answered_when_there_are_news(
    session: aiohttp.ClientSession, front: Activator
) -> None:
    version = (await front.told(session))["version"]
    waiting = asyncio.create_task(front.told(session, known=version, wait="30"))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    asked = asyncio.create_task(post(session, front.url))
    told = await waiting
    assert told["version"] != version
    assert told["secondsSinceAsked"] is not None
    asked.cancel()
    await becomes(lambda: front.front.in_flight.held == 0)
    same = (await front.told(session))["version"]
    assert (await front.told(session, known="other", wait="30"))["version"] == same
