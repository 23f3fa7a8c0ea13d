"""A coalescing work queue: any number of reasons to look at a service make one look."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterable
from typing import Generic, TypeVar

from headway_operator.errors import told
from headway_operator.metrics import QUEUE_DEPTH

KeyT = TypeVar("KeyT")

_FIRST_DELAY_SECONDS = 0.5
_MAX_DELAY_SECONDS = 60.0
_MAX_DOUBLINGS = 10

logger = logging.getLogger(__name__)


def backoff_seconds(failures: int, jitter: float) -> float:
    """Delay before the next try: doubled with each failure, bounded, spread by the jitter (0..1).

    Between half and all of the full delay, so that services that failed together part.
    """
    doublings = min(failures - 1, _MAX_DOUBLINGS)
    full: float = min(_MAX_DELAY_SECONDS, _FIRST_DELAY_SECONDS * 2**doublings)
    return full * (0.5 + 0.5 * jitter)


class WorkQueue(Generic[KeyT]):
    """Keys to be worked on. A key is worked on by one worker at a time, and never lost.

    Keys to which something has happened go before those that are only looked at again.
    """

    def __init__(self) -> None:
        self._urgent: dict[KeyT, None] = {}
        self._idle: dict[KeyT, None] = {}
        self._arrived = asyncio.Event()
        self._running: set[KeyT] = set()
        self._again: set[KeyT] = set()
        self._failures: dict[KeyT, int] = {}
        self._delayed: dict[KeyT, asyncio.TimerHandle] = {}

    def add(self, key: KeyT) -> None:
        """Something has happened: look at the key as soon as possible."""
        delayed = self._delayed.pop(key, None)
        if delayed is not None:
            delayed.cancel()
        if key in self._running:
            self._again.add(key)
        else:
            self._idle.pop(key, None)
            self._urgent[key] = None
            self._signal()

    def add_idle(self, keys: Iterable[KeyT]) -> None:
        """Look at keys although nothing has happened; those that wait after a failure go on."""
        for key in keys:
            if not (key in self._delayed or key in self._running or key in self._urgent):
                self._idle[key] = None
        self._signal()

    async def run(self, work: Callable[[KeyT], Awaitable[None]], workers: int) -> None:
        """Work on keys until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(self._worker(work))

    async def _worker(self, work: Callable[[KeyT], Awaitable[None]]) -> None:
        while True:
            key = await self._next()
            self._running.add(key)
            try:
                await work(key)
            except Exception as error:  # noqa: BLE001 - one service's trouble must not stop others
                self._failed(key, error)
            else:
                self._failures.pop(key, None)
            finally:
                self._finish(key)
            # Work that had to wait for nothing has kept everybody else waiting.
            await asyncio.sleep(0)

    async def _next(self) -> KeyT:
        while not (self._urgent or self._idle):
            self._arrived.clear()
            await self._arrived.wait()
        keys = self._urgent or self._idle
        key = next(iter(keys))
        del keys[key]
        QUEUE_DEPTH.set(len(self._urgent) + len(self._idle))
        return key

    def _signal(self) -> None:
        QUEUE_DEPTH.set(len(self._urgent) + len(self._idle))
        self._arrived.set()

    def _finish(self, key: KeyT) -> None:
        self._running.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def _failed(self, key: KeyT, error: Exception) -> None:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay = backoff_seconds(failures, random.random())  # noqa: S311 - jitter is no secret
        logger.warning("%s: %s; next try in %.1f s", key, told(error), delay)
        logger.debug("%s", key, exc_info=error)
        self._delayed[key] = asyncio.get_running_loop().call_later(delay, self._retry, key)

    def _retry(self, key: KeyT) -> None:
        self._delayed.pop(key, None)
        self.add(key)
