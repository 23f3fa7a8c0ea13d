"""A request and how far it has come."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Arrival:
    """A request as its client sends it.

    Attributes:
        at: when, in seconds.
        class_name: class of traffic; empty when it names none.
        prompt_tokens: length of the prompt.
        output_tokens: tokens that it generates, at least 1.
    """

    at: float
    class_name: str
    prompt_tokens: int
    output_tokens: int


class Request:
    """A request in an engine.

    Attributes:
        request_id: unique in the engine.
        arrival: what was sent.
        known: tokens there are: the prompt and what was generated so far.
        total: tokens there will be.
        computed: those of them whose keys and values are in KV blocks.
        room: tokens that its KV blocks can hold.
        first_token_at: when its first token came, in seconds.
    """

    __slots__ = ("arrival", "computed", "first_token_at", "known", "request_id", "room", "total")

    def __init__(self, request_id: str, arrival: Arrival) -> None:
        self.request_id = request_id
        self.arrival = arrival
        self.known = arrival.prompt_tokens
        self.total = arrival.prompt_tokens + arrival.output_tokens
        self.computed = 0
        self.room = 0
        self.first_token_at: float | None = None

    @property
    def produced(self) -> int:
        """Output tokens so far."""
        return self.known - self.arrival.prompt_tokens

    @property
    def is_finished(self) -> bool:
        """Whether its last token was generated."""
        return self.known >= self.total
