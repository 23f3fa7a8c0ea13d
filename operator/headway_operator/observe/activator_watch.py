"""Asks activators whether they are asked: a question that is answered when there are news."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable

import aiohttp

from headway_operator.api.labels import POLICY_PORT
from headway_operator.observe.activators import Activators, parse_report
from headway_operator.observe.records import PodRecord, ServiceKey

PATIENCE_SECONDS = 60.0
"""How long an activator that has no news lets the question wait."""

PAUSE_SECONDS = 1.0
"""From an answer to the next question, so that news that never end cost little."""

MARGIN_SECONDS = 5.0
_MAX_ANSWER_BYTES = 4096


class ActivatorWatch:
    """Keeps a question open with each activator.

    Args:
        reports: where answers are kept.
        on_news: hears of a service about which there are news.
        clock: Unix time in seconds.
        port: of the activators' control server.
    """

    def __init__(
        self,
        reports: Activators,
        on_news: Callable[[ServiceKey], None],
        clock: Callable[[], float],
        port: int = POLICY_PORT,
    ) -> None:
        self._reports = reports
        self._on_news = on_news
        self._clock = clock
        self._port = port
        self._asking: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._session: aiohttp.ClientSession | None = None

    def watch(self, activators: Iterable[tuple[ServiceKey, PodRecord]]) -> None:
        """Ask these, and nobody else any more.

        A pod whose sandbox was made anew, as after a restart of its node, has another address.
        """
        there = {
            (pod.uid, pod.ip): (key, pod) for key, pod in activators if pod.ip and not pod.deleting
        }
        for asked in self._asking.keys() - there.keys():
            self._asking.pop(asked).cancel()
            self._reports.forget(asked[0])
        for asked in there.keys() - self._asking.keys():
            self._asking[asked] = asyncio.create_task(self._keep_asking(*there[asked]))

    async def close(self) -> None:
        """Stop."""
        self.watch(())
        if self._session is not None:
            await self._session.close()

    async def _keep_asking(self, key: ServiceKey, pod: PodRecord) -> None:
        version = ""
        while True:
            answer = await self._ask(pod, version)
            version = str(answer.get("version", "")) if answer else ""
            report = parse_report(answer, self._clock()) if answer else None
            if report is None:
                is_news = self._reports.silence(pod.uid)
            else:
                is_news = self._reports.told(pod.uid, report)
            if is_news:
                self._on_news(key)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _ask(self, pod: PodRecord, version: str) -> dict[str, object] | None:
        host = f"[{pod.ip}]" if ":" in (pod.ip or "") else pod.ip
        question = {"known": version, "wait": str(PATIENCE_SECONDS if version else 0)}
        url = f"http://{host}:{self._port}/v1/demand"
        try:
            async with self._open_session().get(url, params=question) as response:
                text = await response.content.read(_MAX_ANSWER_BYTES)
            answer = json.loads(text)
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError, RecursionError):
            return None
        return answer if isinstance(answer, dict) else None

    def _open_session(self) -> aiohttp.ClientSession:
        """Made on first use: it belongs to the running event loop."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(
                    total=PATIENCE_SECONDS + MARGIN_SECONDS, sock_connect=MARGIN_SECONDS
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
            )
        return self._session
