"""What an ASGI server and an application hand each other, and how a body is taken and passed on."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any, NamedTuple

from headway_runtime.door.refusals import Answer

_FAILURE = b'data: {"error"'
_ENGINES_OWN = range(500, 600)

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Taken(NamedTuple):
    """What was received of a request so far.

    Attributes:
        messages: what came, to be passed on.
        body: the whole body; None where it is too long, or its client is gone.
    """

    messages: list[Message]
    body: bytes | None


async def take_body(receive: Receive, most_bytes: int) -> Taken:
    """Receive a request's body, but not much more of it than this many bytes."""
    messages: list[Message] = []
    chunks: list[bytes] = []
    length = 0
    while length <= most_bytes:
        message = await receive()
        messages.append(message)
        if message["type"] != "http.request":
            return Taken(messages, None)
        chunk = message.get("body", b"")
        chunks.append(chunk)
        length += len(chunk)
        if not message.get("more_body", False):
            return Taken(messages, b"".join(chunks) if length <= most_bytes else None)
    return Taken(messages, None)


def replay(messages: list[Message], receive: Receive) -> Receive:
    """Gives what was taken once more, then what comes: the client may still go away."""
    # None of it is held for longer than it is needed.
    left = deque(messages)

    async def again() -> Message:
        return left.popleft() if left else await receive()

    return again


def with_body(scope: Scope, body: bytes) -> tuple[Scope, list[Message]]:
    """The scope of a request that has this body, and the message that brings it."""
    length = b"%d" % len(body)
    headers = [
        (name, length if name == b"content-length" else value) for name, value in scope["headers"]
    ]
    message = {"type": "http.request", "body": body, "more_body": False}
    return {**scope, "headers": headers}, [message]


def begun_with_content(send: Send) -> Send:
    """Sends the head of an answer only with the first of its content.

    A stream's head would otherwise leave before its first token, and what is between client and
    engine could no longer ask another engine when this one dies. So it can for as long as the
    client has nothing. A stream that begins with an error of the engine's says so in its status.
    """
    head: Message | None = None

    async def send_on(message: Message) -> None:
        nonlocal head
        if message["type"] == "http.response.start":
            head = message
            return
        if head is not None:
            if message["type"] == "http.response.body" and not _says_anything(message):
                return
            held, head = head, None
            await send(_with_status_of_failure(held, message))
        await send(message)

    return send_on


def _with_status_of_failure(head: Message, first: Message) -> Message:
    """VLLM tells what goes wrong in a stream within it, though its status is 200."""
    content = first.get("body", b"")
    if head["status"] != HTTPStatus.OK or not content.startswith(_FAILURE):
        return head
    try:
        code = json.loads(content.partition(b"\n")[0].removeprefix(b"data: "))["error"]["code"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return head
    is_engines_own = isinstance(code, int) and code in _ENGINES_OWN
    return {**head, "status": code} if is_engines_own else head


def _says_anything(message: Message) -> bool:
    return bool(message.get("body")) or not message.get("more_body", False)


async def reply(answer: Answer, send: Send) -> None:
    """Send an answer of our own."""
    await send(
        {"type": "http.response.start", "status": int(answer.status), "headers": answer.headers}
    )
    await send({"type": "http.response.body", "body": answer.body})
