"""One request that is followed from its arrival to its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headway_runtime.policy import TrafficClass
from headway_runtime.scheduling.history.request_history import RequestHistory


class Followed:
    """A request under way.

    Attributes:
        request: vLLM's object.
        promised: its class when it arrived, to be held against; None without one.
        tenant: whose it is; empty for all who cannot be told apart.
        first_token_ns: when its first token came; None before.
        history: what has become of it; None when that made no sense.
        group: the number that its prompt is counted under.
        slot: where its history is told meanwhile; None when it is not.
        is_queued: whether it is to be told of when its time comes.
    """

    __slots__ = (
        "first_token_ns", "group", "history", "is_queued", "promised", "request", "slot", "tenant",
    )  # fmt: skip

    def __init__(
        self,
        request: Any,
        promised: TrafficClass | None,
        history: RequestHistory,
        group: int,
        tenant: str = "",
    ) -> None:
        self.request = request
        self.tenant = tenant
        self.promised = promised
        self.first_token_ns: int | None = None
        self.history: RequestHistory | None = history
        self.group = group
        self.slot: int | None = None
        self.is_queued = False

    @property
    def is_between_turns(self) -> bool:
        """Whether it is a session that goes on although vLLM tells an end."""
        return bool(self.request.resumable) and not self.request.is_finished()

    @property
    def waits_for_client(self) -> bool:
        """Whether it is a session whose next part has not come."""
        return str(self.request.status.name) == "WAITING_FOR_STREAMING_REQ"


TenantOf = Callable[[Any], str]
"""Tells whose a vLLM request is; empty for all who cannot be told apart."""


def one_tenant(_: Any) -> str:
    """Nobody is told apart."""
    return ""
