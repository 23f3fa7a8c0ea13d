"""Shortest prompt first, which needs to know nothing but what has come; long ones may starve."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable

from headway_runtime.bench.rivals.admission_rule import LOOKAHEAD, Newcomer

_Key = tuple[int, float, str]


class ShortestPromptFirst:
    """Admits by length of the prompt, equal ones as they came.

    Implements :class:`headway_runtime.bench.rivals.admission_rule.AdmissionRule`.
    """

    def __init__(self) -> None:
        self._queue: list[_Key] = []
        self._keys: dict[str, _Key] = {}

    def arrived(self, newcomer: Newcomer) -> None:
        """A request waits from now on."""
        key = (newcomer.prompt_tokens, newcomer.arrival_s, newcomer.request_id)
        self._keys[newcomer.request_id] = key
        insort(self._queue, key)

    def stepped(self, tokens: Iterable[tuple[str, int]], now_s: float) -> None:  # noqa: ARG002 - lengths alone count
        """A step was decided."""
        for request_id, _ in tokens:
            self.ended(request_id)

    def ended(self, request_id: str) -> None:
        """A request waits no more."""
        key = self._keys.pop(request_id, None)
        if key is not None:
            del self._queue[bisect_left(self._queue, key)]

    def waits(self, request_id: str) -> bool:
        """Whether this request waits for its first admission."""
        return request_id in self._keys

    def first(self, now_s: float) -> list[str]:  # noqa: ARG002 - lengths alone count
        """Ids of the requests to admit next."""
        return [request_id for _, _, request_id in self._queue[:LOOKAHEAD]]
