"""A light client that sends requests at fixed times whatever becomes of them, and counts."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time

from tests.e2e.load import PROMPTS, Load, Outcome
from tests.faults.recording import REFUSED, Request

_PATIENCE_S = 60
"""How long requests that are open at the end may take."""


class Traffic:
    """An open loop of short streamed requests in a thread of its own. Nothing is tried again.

    Args:
        base_url: of the service.
        model: served model name.
        period_s: time between two requests.
        max_tokens: length of each answer.
    """

    def __init__(self, base_url: str, model: str, period_s: float, max_tokens: int) -> None:
        self._load = Load(base_url, model, streams=0, max_tokens=max_tokens)
        self._begun_s, self._period_s = 0.0, period_s
        self._offered: list[Outcome] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._offer()), name="traffic", daemon=True
        )

    def start(self, begun_s: float) -> None:
        """Begin to send; times are told from that monotonic time on."""
        self._begun_s = begun_s
        self._thread.start()

    def stop(self) -> list[Request]:
        """Send no more, wait for the open ones; gives all that were offered."""
        self._stopping.set()
        self._thread.join()
        return [self._told(each) for each in self._offered]

    def _told(self, outcome: Outcome) -> Request:
        offered_s, token_s = outcome.begun_s - self._begun_s, outcome.first_token_s
        return Request(
            offered_s,
            outcome.ended_s - self._begun_s,
            kind_of(outcome.error),
            None if token_s is None else offered_s + token_s,
        )

    async def _offer(self) -> None:
        prompts, tasks = itertools.cycle(PROMPTS), list[asyncio.Task[Outcome]]()
        async with self._load:
            due_s = time.monotonic()
            while not self._stopping.is_set():
                outcome = Outcome(time.monotonic())
                self._offered.append(outcome)
                tasks.append(asyncio.create_task(self._load.one(next(prompts), outcome)))
                due_s += self._period_s
                await asyncio.sleep(max(0.0, due_s - time.monotonic()))
            if tasks:
                _, late = await asyncio.wait(tasks, timeout=_PATIENCE_S)
                for task in late:
                    task.cancel()
                await asyncio.gather(*late, return_exceptions=True)
        for outcome in self._offered:
            if not outcome.ended_s:
                outcome.error, outcome.ended_s = "NoAnswer", time.monotonic()


def kind_of(error: str) -> str:
    """What a client saw, in words that do not depend on the address."""
    kinds = {
        "ClientConnectorError": REFUSED,
        "ServerDisconnectedError": "connection lost",
        "ClientPayloadError": "stream cut",
        "ClientOSError": "connection lost",
        "ConnectionTimeoutError": "no connection in 5 s",
        "NoAnswer": f"no answer {_PATIENCE_S} s after the end",
    }
    return kinds.get(error.partition(":")[0], error)
