"""A client, and an application that tells what it was asked, without a server between them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

CHAT = "/v1/chat/completions"


class Engine:
    """An application that reads a request, keeps it, and answers.

    Attributes:
        scopes: of the requests that came.
        bodies: their bodies.
        after: what else was received once the body was there.
        fails: whether it raises an error instead of answering.
        gate: it answers when this is set.
    """

    def __init__(self) -> None:
        self.scopes: list[Any] = []
        self.bodies: list[bytes] = []
        self.after: list[Any] = []
        self.fails = False
        self.gate = asyncio.Event()
        self.gate.set()

    @property
    def documents(self) -> list[Any]:
        return [json.loads(body) for body in self.bodies]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scopes.append(scope)
        if scope["type"] != "http":
            return
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.after.append(message)
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
        self.bodies.append(body)
        await self.gate.wait()
        if self.fails:
            raise RuntimeError("the application's own")
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})
        self.after.append(await receive())


def scope(path: str = CHAT, headers: dict[str, str] | None = None, **changed: Any) -> Any:
    """The scope of a request."""
    sent = [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()]
    made = {"type": "http", "path": path, "root_path": "", "method": "POST", "headers": sent}
    return {**made, **changed}


async def ask(app: Any, asked: Any, chunks: Sequence[bytes], *, gives_up: bool = False) -> Any:
    """Send a request in these chunks; status, headers and body of the answer.

    A client that gives up goes away after the last of them.
    """
    messages = [
        {"type": "http.request", "body": chunk, "more_body": gives_up or number < len(chunks)}
        for number, chunk in enumerate(chunks, 1)
    ]
    coming = iter(messages)
    sent: list[Any] = []

    async def receive() -> Any:
        return next(coming, {"type": "http.disconnect"})

    async def send(message: Any) -> None:
        sent.append(message)

    await app(asked, receive, send)
    if not sent:
        return None
    return sent[0]["status"], dict(sent[0]["headers"]), sent[1]["body"]


async def post(app: Any, document: Any, path: str = CHAT, **headers: str) -> Any:
    """Send a document in one piece."""
    body = json.dumps(document).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await ask(app, scope(path, {"content-length": str(len(body)), **named}), [body])
