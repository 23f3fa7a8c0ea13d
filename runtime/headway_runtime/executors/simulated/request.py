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
        produced: output tokens so far.
        computed: tokens whose keys and values are in KV blocks.
        blocks: KV blocks it holds.
        first_token_at: when its first token came, in seconds.
    """

    __slots__ = ("arrival", "blocks", "computed", "first_token_at", "produced", "request_id")

    def __init__(self, request_id: str, arrival: Arrival) -> None:
        self.request_id = request_id
        self.arrival = arrival
        self.produced = 0
        self.computed = 0
        self.blocks = 0
        self.first_token_at: float | None = None

    @property
    def pending(self) -> int:
        """Tokens known and not computed: of the prompt, then always the one generated last."""
        return self.arrival.prompt_tokens + self.produced - self.computed

    @property
    def is_finished(self) -> bool:
        """Whether its last token was generated."""
        return self.produced >= self.arrival.output_tokens
