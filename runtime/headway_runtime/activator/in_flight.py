"""Requests in flight: what the operator goes by to see whether anybody asks for the service."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Iterator
from typing import Any


class InFlightRequests:
    """Counts requests under way, and tells whoever waits for news.

    Args:
        clock: in seconds, monotonic.

    Attributes:
        held: requests that wait for an engine.
        passing: requests that are with an engine, without those that only look.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.held = 0
        self.passing = 0
        self._clock = clock
        self._asked_at: float | None = None
        # Versions of another process must not be taken for this one's.
        self._process = secrets.token_hex(4)
        self._changes = 0
        self._news = asyncio.Event()

    @property
    def version(self) -> str:
        """Another one whenever there are news."""
        return f"{self._process}-{self._changes}"

    def asked(self) -> None:
        """A request came that no engine could take."""
        self._asked_at = self._clock()
        self._changed()

    @contextlib.contextmanager
    def holding(self) -> Iterator[None]:
        """While a request waits for an engine."""
        self.held += 1
        try:
            yield
        finally:
            self.held -= 1
            if self.held == 0:
                self._changed()

    @contextlib.contextmanager
    def passing_on(self, *, looks: bool = False) -> Iterator[None]:
        """While a request is with an engine; one that only looks does not count."""
        if looks:
            yield
            return
        self.passing += 1
        if self.passing == 1:
            self._changed()
        try:
            yield
        finally:
            self.passing -= 1
            if self.passing == 0:
                self._changed()

    def document(self) -> dict[str, Any]:
        """How things are; ``secondsSinceAsked`` is None where nobody has asked yet."""
        since = None if self._asked_at is None else self._clock() - self._asked_at
        return {
            "version": self.version,
            "held": self.held,
            "passing": self.passing,
            "secondsSinceAsked": since,
        }

    async def changed_from(self, version: str, patience_s: float) -> None:
        """Wait until the version is another one, but not longer than this."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                while self.version == version:
                    await self._news.wait()

    def _changed(self) -> None:
        self._changes += 1
        self._news.set()
        self._news = asyncio.Event()
