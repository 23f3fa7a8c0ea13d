"""The head of an answer waits for the first of its content."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.door.asgi import begun_with_content
from headway_runtime.door.middleware import Door
from tests.unit.door.asgi_client import scope
from tests.unit.door.world import World

HEAD = {"type": "http.response.start", "status": 200, "headers": []}


def content(text: bytes, *, more: bool = True) -> dict[str, Any]:
    return {"type": "http.response.body", "body": text, "more_body": more}


async def passed(*messages: Any) -> list[Any]:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    later = begun_with_content(send)
    for message in messages:
        await later(message)
    return sent


async def test_nothing_leaves_before_the_first_content() -> None:
    assert await passed(HEAD) == []
    assert await passed(HEAD, content(b"")) == []
    assert await passed(HEAD, content(b"a")) == [HEAD, content(b"a")]


async def test_an_empty_answer_leaves_when_it_is_whole() -> None:
    assert await passed(HEAD, content(b"", more=False)) == [HEAD, content(b"", more=False)]
    without_body = {"type": "http.response.body"}
    assert await passed(HEAD, without_body) == [HEAD, without_body]


@given(st.lists(st.binary(max_size=2), max_size=5), st.binary(max_size=2))
async def test_what_a_client_gets_is_the_same(chunks: list[bytes], last: bytes) -> None:
    whole = [HEAD, *(content(each) for each in chunks), content(last, more=False)]
    sent = await passed(*whole)
    assert sent[0] == HEAD
    assert b"".join(each["body"] for each in sent[1:]) == b"".join([*chunks, last])
    assert [each["more_body"] for each in sent[1:]][-1] is False


@pytest.mark.parametrize(
    ("first", "status"),
    [
        (b'data: {"error": {"message": "EngineDeadError", "code": 500}}\n\n', 500),
        (b'data: {"error": {"message": "too long", "code": 400}}\n\n', 200),
        (b'data: {"error": {"message": "no code"}}\n\n', 200),
        (b'data: {"error": "text"}\n\n', 200),
        (b'data: {"error"', 200),
        (b'data: {"choices": []}\n\n', 200),
    ],
)
async def test_a_stream_that_begins_with_the_engines_failure_has_its_status(
    first: bytes, status: int
) -> None:
    head, sent = await passed(HEAD, content(first))
    assert head == {**HEAD, "status": status}
    assert sent["body"] == first


async def test_a_failure_in_mid_stream_changes_no_status() -> None:
    failure = content(b'data: {"error": {"code": 500}}\n\n')
    assert await passed(HEAD, content(b"a"), failure) == [HEAD, content(b"a"), failure]


async def test_an_engine_that_fails_before_its_first_token_has_not_answered(world: World) -> None:
    async def fails_in_mid_stream(_scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send(HEAD)
        raise RuntimeError("the engine is dead")

    door = Door(fails_in_mid_stream, world.door._desk)
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b'{"messages": []}'}

    async def send(message: Any) -> None:
        sent.append(message)

    with pytest.raises(RuntimeError, match="the engine is dead"):
        await door(scope(), receive, send)
    assert sent == []
