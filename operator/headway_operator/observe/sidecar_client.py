"""Speaks to sidecars over HTTP; every answer is untrusted and bounded."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp

from headway_operator.api.labels import METRICS_PORT, POLICY_PORT
from headway_operator.observe.records import PodRecord

TIMEOUT_SECONDS = 1.0
_MAX_ANSWER_BYTES = 64 * 1024
_SUCCESS = 200
_CONCURRENT_REQUESTS = 256
_KEEP_ALIVE_SECONDS = 15
"""Longer than from one tick to the next: opening a connection costs as much as a request. Sidecars
keep theirs longer, so that it is always this end that closes."""

Answer = dict[str, Any]


class SidecarClient:
    """Requests to sidecars, a bounded number at a time."""

    def __init__(self, port: int = POLICY_PORT, metrics_port: int = METRICS_PORT) -> None:
        self._port = port
        self._metrics_port = metrics_port
        self._slots = asyncio.Semaphore(_CONCURRENT_REQUESTS)
        self._session: aiohttp.ClientSession | None = None

    async def status(self, pod: PodRecord) -> Answer | None:
        """Answer to ``GET /v1/status``; None if there is no usable one in time."""
        return _parse(await self._request("GET", pod, self._port, "/v1/status"))

    async def put_policy(self, pod: PodRecord, envelope: bytes) -> Answer | None:
        """Answer to ``PUT /v1/policy``; None if there is no usable one in time."""
        return _parse(await self._request("PUT", pod, self._port, "/v1/policy", envelope))

    async def metrics(self, pod: PodRecord) -> str | None:
        """The pod's exposition in Prometheus's text format; None if there is no usable one."""
        text = await self._request("GET", pod, self._metrics_port, "/metrics", expected=_SUCCESS)
        return None if text is None else text.decode(errors="replace")

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    async def _request(  # noqa: PLR0913 - one request has as many parts
        self,
        method: str,
        pod: PodRecord,
        port: int,
        path: str,
        body: bytes | None = None,
        *,
        expected: int | None = None,
    ) -> bytes | None:
        host = f"[{pod.ip}]" if ":" in (pod.ip or "") else pod.ip
        url = f"http://{host}:{port}{path}"
        async with self._slots:
            try:
                async with self._open_session().request(
                    method, url, data=body, allow_redirects=False
                ) as response:
                    if expected not in (None, response.status):
                        return None
                    return await _read(response.content)
            except (aiohttp.ClientError, OSError, TimeoutError):
                return None

    def _open_session(self) -> aiohttp.ClientSession:
        """Made on first use: it belongs to the running event loop."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=_CONCURRENT_REQUESTS, keepalive_timeout=_KEEP_ALIVE_SECONDS
                ),
                timeout=aiohttp.ClientTimeout(total=TIMEOUT_SECONDS),
                headers={"Content-Type": "application/json"},
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
            )
        return self._session


async def _read(content: aiohttp.StreamReader) -> bytes:
    """The whole body, or as much of it as an answer may have; it may come in pieces."""
    text = b""
    while len(text) < _MAX_ANSWER_BYTES and not content.at_eof():
        text += await content.read(_MAX_ANSWER_BYTES - len(text))
    return text


def _parse(text: bytes | None) -> Answer | None:
    if text is None:
        return None
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None
