"""Whose the requests of an engine are, and when they are due in the order of background work."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from headway_runtime.scheduling.origin import Origin

_REMEMBERED = 65_536
"""Most requests that are remembered: some end without a word."""


class Standing(NamedTuple):
    """What is known of a request from its arrival to its end.

    Attributes:
        tenant: whose it is; empty for all who cannot be told apart.
        due_s: when it is due although its class says nothing of it, seconds since the epoch; None
            where the class alone decides.
    """

    tenant: str = ""
    due_s: float | None = None


NOBODYS = Standing()


class Origins:
    """Standings by request id.

    Until it is told how, it tells nobody apart.
    """

    def __init__(self) -> None:
        self._origin_of: Callable[[Any], Origin] | None = None
        self._standings: dict[str, Standing] = {}

    def tells_by(self, origin_of: Callable[[Any], Origin]) -> None:
        """Tell by this function where vLLM's requests come from."""
        self._origin_of = origin_of

    def arrived(self, request: Any) -> None:
        """A request has come."""
        if self._origin_of is None:
            return
        origin = self._origin_of(request)
        if not origin.tenant:
            return
        if len(self._standings) >= _REMEMBERED:
            self._standings.clear()
        self._standings[request.request_id] = Standing(origin.tenant)

    def of(self, request_id: str) -> Standing:
        """What is known of a request."""
        return self._standings.get(request_id, NOBODYS)

    def ended(self, request_ids: Iterable[str]) -> None:
        """These requests are gone."""
        for each in request_ids:
            self._standings.pop(each, None)
