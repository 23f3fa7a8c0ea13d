"""Sends a workload to an OpenAI-compatible server, each request at its time whatever happens.

The loop is open: no request waits for an answer to another one, but for those of a program, which
are sent when those they are after have been answered. What fails is a result like any other.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import aiohttp

from headway_runtime.bench.closed_loop import sent_s
from headway_runtime.bench.declared import declaration, headers
from headway_runtime.bench.outcome import Ending, Outcome
from headway_runtime.bench.prompts import prompt_token_ids
from headway_runtime.bench.workload import Request

_REFUSALS = (429, 503)
_MAX_DETAIL = 200
_LEAD_S = 0.0005


@dataclass(frozen=True)
class Target:
    """Where requests go.

    Attributes:
        url: of the server, without path.
        model: served model name.
        give_up_s: seconds after the start at which open requests are given up.
    """

    url: str
    model: str
    give_up_s: float


def body(request: Request, model: str) -> bytes:
    """The HTTP body of a request: prompt as token ids, output of exactly the length asked for."""
    return json.dumps(
        {
            "model": model,
            "prompt": prompt_token_ids(request),
            "max_tokens": request.output_tokens,
            "ignore_eos": True,
            "temperature": 0,
            "stream": True,
            # A server that falls behind sends several tokens at once: its usage counts them.
            "stream_options": {"include_usage": True, "continuous_usage_stats": True},
            "vllm_xargs": declaration(request),
        },
        separators=(",", ":"),
    ).encode("ascii")


async def offer(
    requests: Sequence[Request], bodies: Sequence[bytes], target: Target, start_s: float
) -> list[Outcome]:
    """Offer requests.

    Args:
        requests: in order of arrival; those that a request is after stand before it.
        bodies: what is sent for each.
        target: where they go.
        start_s: start of the run on the monotonic clock, which all processes share.

    Returns:
        One outcome a request, in the same order.
    """
    # A connection each: a kept one may be closed by the server just as it is used again.
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=30)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        tasks: list[asyncio.Task[Outcome]] = []
        for request, content in zip(requests, bodies, strict=True):
            exchange = _Exchange(request, target, start_s)
            if request.after:
                before = [tasks[index] for index in request.after]
                sending = _when_answered(before, exchange, session, content)
            else:
                await _until(start_s + request.arrival_s)
                sending = exchange.run(session, content, request.arrival_s)
            tasks.append(asyncio.create_task(sending))
        return list(await asyncio.gather(*tasks))


async def _when_answered(
    before: Sequence[asyncio.Task[Outcome]],
    exchange: _Exchange,
    session: aiohttp.ClientSession,
    content: bytes,
) -> Outcome:
    """Send a request when those it is after are complete; never when one of them is not."""
    answers = await asyncio.gather(*before)
    if any(each.ending is not Ending.COMPLETE for each in answers):
        return exchange.unsent()
    planned_s = sent_s(exchange.request, max(each.ended_s for each in answers))
    if planned_s >= exchange.target.give_up_s:
        return exchange.unsent()
    await _until(exchange.start_s + planned_s)
    return await exchange.run(session, content, planned_s)


async def _until(time_s: float) -> None:
    # Timers may be late by a fraction of a millisecond, never early.
    left_s = time_s - time.monotonic() - _LEAD_S
    if left_s > 0:
        await asyncio.sleep(left_s)


class _Exchange:
    """One request and its answer."""

    def __init__(self, request: Request, target: Target, start_s: float) -> None:
        self.request = request
        self.target = target
        self.start_s = start_s
        self._token_s: list[float] = []

    def _now_s(self) -> float:
        return time.monotonic() - self.start_s

    async def run(
        self, session: aiohttp.ClientSession, content: bytes, planned_s: float
    ) -> Outcome:
        sent_s = self._now_s()
        try:
            async with asyncio.timeout(max(0.0, self.target.give_up_s - sent_s)):
                ending, detail = await self._exchange(session, content)
        except TimeoutError:
            ending, detail = Ending.TIMED_OUT, ""
        except (aiohttp.ClientError, OSError, ValueError) as error:
            ending, detail = Ending.FAILED, f"{type(error).__name__}: {error}"
        return self._outcome(planned_s, sent_s, ending, detail)

    def unsent(self) -> Outcome:
        now_s = self._now_s()
        return self._outcome(now_s, now_s, Ending.UNSENT, "")

    def _outcome(self, planned_s: float, sent_s: float, ending: Ending, detail: str) -> Outcome:
        return Outcome(
            class_name=self.request.class_name,
            prompt_tokens=self.request.prompt_tokens,
            output_tokens=self.request.output_tokens,
            planned_s=planned_s,
            sent_s=sent_s,
            ending=ending,
            ended_s=sent_s if ending is Ending.UNSENT else self._now_s(),
            token_s=tuple(self._token_s),
            detail=detail[:_MAX_DETAIL],
            tenant=self.request.tenant,
            program=self.request.program,
        )

    async def _exchange(self, session: aiohttp.ClientSession, content: bytes) -> tuple[Ending, str]:
        url = f"{self.target.url}/v1/completions"
        sent = {"Content-Type": "application/json", **headers(self.request)}
        async with session.post(url, data=content, headers=sent) as response:
            if response.status in _REFUSALS:
                return Ending.REFUSED, f"HTTP {response.status}"
            if response.status != 200:  # noqa: PLR2004 - HTTP's OK
                return Ending.FAILED, f"HTTP {response.status}: {await response.text()}"
            return await self._read(response)

    async def _read(self, response: aiohttp.ClientResponse) -> tuple[Ending, str]:
        rest = b""
        async for chunk in response.content.iter_any():
            now_s = self._now_s()
            *events, rest = (rest + chunk).split(b"\n\n")
            for event in _json_events(events):
                if "error" in event:
                    return self._broken_off(event["error"])
                self._came(event, now_s)
        missing = self.request.output_tokens - len(self._token_s)
        if missing:
            return Ending.FAILED, f"{missing} tokens are missing"
        return Ending.COMPLETE, ""

    def _broken_off(self, error: object) -> tuple[Ending, str]:
        """Some requests are refused by the limits of vLLM only after it has answered 200."""
        code = error.get("code") if isinstance(error, dict) else None
        if code in _REFUSALS and not self._token_s:
            return Ending.REFUSED, f"{code} in a stream"
        return Ending.FAILED, json.dumps(error)

    def _came(self, event: dict[str, object], now_s: float) -> None:
        usage = event.get("usage")
        if isinstance(usage, dict):
            new = int(usage["completion_tokens"]) - len(self._token_s)
            self._token_s.extend([now_s] * new)


def _json_events(events: Sequence[bytes]) -> Iterator[dict[str, object]]:
    for event in events:
        data = event.strip().removeprefix(b"data:").strip()
        if data and data != b"[DONE]":
            yield json.loads(data)
