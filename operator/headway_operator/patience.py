"""Waits for an API server that is away or in trouble for as long as that lasts.

kopf by itself gives up: after 54 s of errors 5xx or of 403, and at once when what it logs in with
is refused a second time, which an API server that has lost its store does to any token. It then
ends the operator, whose restarts Kubernetes delays more and more, by up to five minutes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain, repeat
from typing import Any

import kopf

FIRST_PAUSES_SECONDS = (1.0, 1.0, 2.0, 3.0, 5.0)
LAST_PAUSE_SECONDS = 10.0
"""An API server that is back is seen so much later at most."""

LOGIN_PAUSE_SECONDS = 5.0
_KEPT_FOR = timedelta(days=1)


class Pauses(Iterable[float]):
    """Seconds before each further try of a request: there is always one more."""

    def __iter__(self) -> Iterator[float]:
        """From the first pause on, for another request."""
        return chain(FIRST_PAUSES_SECONDS, repeat(LAST_PAUSE_SECONDS))


class Logins:
    """Logs in again with what was refused, after a pause: the same may be taken then.

    Args:
        read: reads the credentials as they are now, by what kopf gives; None where there are none.
    """

    def __init__(self, read: Callable[..., kopf.ConnectionInfo | None]) -> None:
        self._read = read
        self._last = float("-inf")

    async def next(self, **given: Any) -> kopf.ConnectionInfo | None:
        """The credentials, which kopf takes for others than those of the last time.

        Args:
            given: by kopf, to read them with.
        """
        loop = asyncio.get_running_loop()
        await asyncio.sleep(self._last + LOGIN_PAUSE_SECONDS - loop.time())
        self._last = loop.time()
        found = self._read(**given)
        # kopf refuses what equals what was refused; a time of expiry makes it another one.
        return None if found is None else replace(found, expiration=datetime.now(UTC) + _KEPT_FOR)
