"""A server that answers like vLLM's, with made-up tokens at the pace it is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web


@dataclass
class FakeServer:
    """Answers ``/v1/completions`` as a stream.

    Attributes:
        status: of all answers.
        first_s: time to the first token.
        gap_s: time between chunks.
        tokens_per_chunk: tokens that come together.
        missing: tokens that never come.
        error_after: send an error instead of the chunk of this index.
        error_code: of that error.
        hang_after: send nothing more from the chunk of this index on.
        bodies: all requests' bodies.
        headers: all requests' headers.
        url: where it listens.
    """

    status: int = 200
    first_s: float = 0.0
    gap_s: float = 0.0
    tokens_per_chunk: int = 1
    missing: int = 0
    error_after: int | None = None
    error_code: int = 500
    hang_after: int | None = None
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    url: str = ""

    async def complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        self.headers.append(dict(request.headers))
        if self.status != 200:
            return web.json_response({"error": {"message": "no"}}, status=self.status)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await asyncio.sleep(self.first_s)
        wanted = body["max_tokens"] - self.missing
        for index, sent in enumerate(range(0, wanted, self.tokens_per_chunk)):
            if index == self.error_after:
                await self._send(
                    response, {"error": {"message": "broken", "code": self.error_code}}
                )
                return response
            if index == self.hang_after:
                await asyncio.sleep(60)
            count = min(wanted, sent + self.tokens_per_chunk)
            chunk = {"choices": [{"index": 0, "text": "w"}], "usage": {"completion_tokens": count}}
            await self._send(response, chunk)
            await asyncio.sleep(self.gap_s)
        await self._send(response, {"choices": [], "usage": {"completion_tokens": wanted}})
        await response.write(b"data: [DONE]\n\n")
        return response

    @staticmethod
    async def _send(response: web.StreamResponse, event: dict[str, Any]) -> None:
        # In two pieces: a chunk of a stream need not be a whole event.
        text = f"data: {json.dumps(event)}\n\n".encode()
        await response.write(text[:9])
        await response.write(text[9:])


@asynccontextmanager
async def serving(server: FakeServer) -> AsyncIterator[FakeServer]:
    """Serve on a free port."""
    application = web.Application(client_max_size=2**24)
    application.router.add_post("/v1/completions", server.complete)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()
