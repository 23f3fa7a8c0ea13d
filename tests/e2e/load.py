"""A load of streamed completions that counts what became of every request it offered."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import aiohttp

_RETRY_S = 0.2

PROMPTS = (
    "Write a long story about a lighthouse keeper.",
    "Explain how rivers shape valleys, in detail.",
    "Describe a market in the early morning.",
    "List what a sailor packs for a year at sea, and why.",
)


@dataclass
class Outcome:
    """One offered request.

    Attributes:
        begun_s: monotonic time at which it was sent.
        first_token_s: seconds from sending to the first token; None if none came.
        tokens: of the whole answer, as the server tells at its end; a chunk may hold several.
        error: empty when the stream ended properly, else what the client saw.
        ended_s: monotonic time at which it was over.
        retry_after: what the answer said of when to try again; empty if nothing.
        streaming: set when its first token has come.
    """

    begun_s: float
    first_token_s: float | None = None
    tokens: int = 0
    error: str = ""
    ended_s: float = 0.0
    retry_after: str = ""
    streaming: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass
class Load:
    """Keeps ``streams`` requests open against a service until stopped; no retries, new connections.

    Attributes:
        base_url: of an OpenAI-compatible server.
        model: served model name.
        streams: requests open at once.
        max_tokens: length of each answer; the end-of-text token is ignored.
        traffic_class: sent as ``vllm_xargs.headway_class`` when not empty.
        prompts: taken in turn.
        api_key: sent as the bearer token when not empty.
        patience_s: for how long a refused connection is tried again, as clients do. A pod that
            misses two probes on a busy machine is out of service for a moment.
    """

    base_url: str
    model: str
    streams: int
    max_tokens: int = 64
    traffic_class: str = ""
    prompts: Sequence[str] = PROMPTS
    api_key: str = ""
    patience_s: float = 0.0
    outcomes: list[Outcome] = field(default_factory=list)
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def __aenter__(self) -> Self:
        """Open the streams."""
        # A fresh connection for every request: a kept one would hide a Service without endpoints.
        connector = aiohttp.TCPConnector(limit=0, force_close=True)
        self._session = aiohttp.ClientSession(
            connector=connector, timeout=aiohttp.ClientTimeout(total=300, sock_connect=5)
        )
        prompts = itertools.cycle(self.prompts)
        self._tasks = [
            asyncio.create_task(self._stream_until_stopped(next(prompts)))
            for _ in range(self.streams)
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        """Let the open streams end, offer no more."""
        self._stopping.set()
        await asyncio.gather(*self._tasks)
        await self._session.close()

    def failed(self) -> list[str]:
        """What clients saw of the requests that failed."""
        return [each.error for each in self.outcomes if each.error]

    async def _stream_until_stopped(self, prompt: str) -> None:
        while not self._stopping.is_set():
            self.outcomes.append(await self.one(prompt))
            if self.outcomes[-1].error:
                await asyncio.sleep(0.1)

    async def one(self, prompt: str, outcome: Outcome | None = None) -> Outcome:
        """Stream one completion; an ``outcome`` given can be watched meanwhile."""
        outcome = outcome or Outcome(time.monotonic())
        deadline = outcome.begun_s + self.patience_s
        while await self._is_refused(prompt, outcome) and time.monotonic() < deadline:
            outcome.error = ""
            await asyncio.sleep(_RETRY_S)
        outcome.ended_s = time.monotonic()
        return outcome

    async def _is_refused(self, prompt: str, outcome: Outcome) -> bool:
        """Send a request. Returns whether no connection came about, so that nothing was asked."""
        try:
            async with self._session.post(
                f"{self.base_url}/v1/chat/completions",
                json=self._body(prompt),
                headers={"Authorization": f"Bearer {self.api_key}"} if self.api_key else None,
            ) as answer:
                if answer.status != 200:
                    outcome.error = f"HTTP {answer.status}"
                    outcome.retry_after = answer.headers.get("Retry-After", "")
                else:
                    await self._read_stream(answer, outcome)
        except aiohttp.ClientConnectorError as error:
            outcome.error = type(error).__name__ + ": " + str(error)
            return True
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            outcome.error = type(error).__name__ + ": " + str(error)
        return False

    async def _read_stream(self, answer: aiohttp.ClientResponse, outcome: Outcome) -> None:
        finished = False
        async for line in answer.content:
            if line.startswith(b"data: [DONE]"):
                finished = True
            elif line.startswith(b"data: "):
                chunk = json.loads(line[6:])
                if "error" in chunk:
                    outcome.error = "error in stream"
                    continue
                if chunk.get("usage"):
                    outcome.tokens = chunk["usage"]["completion_tokens"]
                has_text = chunk["choices"] and chunk["choices"][0]["delta"].get("content")
                if has_text and outcome.first_token_s is None:
                    outcome.first_token_s = time.monotonic() - outcome.begun_s
                    outcome.streaming.set()
        if not finished and not outcome.error:
            outcome.error = "stream cut"

    def _body(self, prompt: str) -> Mapping[str, Any]:
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "user", "content": prompt}],
            "max_tokens": self.max_tokens,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": 0,
        }
        if self.traffic_class:
            body["vllm_xargs"] = {"headway_class": self.traffic_class}
        return body
