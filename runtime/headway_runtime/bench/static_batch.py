"""Request-level static batching, the way engines batched before continuous batching."""

from __future__ import annotations

from collections.abc import Container, Iterable
from itertools import islice
from typing import Any


class StaticBatch:
    """Admits a batch, and nothing more until its last request is done.

    Args:
        size: most requests in a batch; what waits when the one before is done makes the next.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._members: list[str] = []

    def limit(self, unfinished: Container[str], waiting: Iterable[Any]) -> int:
        """Most requests that may run in the next step.

        The members stand in front of all others in a first-come-first-served queue, preempted ones
        too, so a limit of as many as are left admits nobody else.

        Args:
            unfinished: ids of requests that have not ended.
            waiting: waiting requests, first one first.

        Returns:
            The limit; 0 when there is nothing to run.
        """
        self._members = [each for each in self._members if each in unfinished]
        if not self._members:
            self._members = [each.request_id for each in islice(waiting, self._size)]
        return len(self._members)
