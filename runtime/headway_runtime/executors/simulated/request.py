"""A request and how far it has come."""

from __future__ import annotations

from dataclasses import dataclass

from headway_runtime.scheduling.origin import UNKNOWN, Origin
from headway_runtime.scheduling.standing import NOBODYS


@dataclass(frozen=True)
class Arrival:
    """A request as its client sends it.

    Attributes:
        at: when, in seconds.
        class_name: class of traffic; empty when it names none.
        prompt_tokens: length of the prompt.
        output_tokens: tokens that it generates, at least 1.
        cached_tokens: first tokens of the prompt that are in the prefix cache.
        origin: whose it is, and which program it is a part of.
    """

    at: float
    class_name: str
    prompt_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    origin: Origin = UNKNOWN


class Request:
    """A request in an engine.

    Attributes:
        request_id: unique in the engine.
        arrival: what was sent.
        known: tokens there are: the prompt and what was generated so far.
        under_way: tokens that steps under way generate for it.
        total: tokens there will be.
        computed: those tokens whose keys and values are in KV blocks, once the steps under way are
            done.
        steps_under_way: steps under way that it is in.
        room: tokens that its KV blocks can hold.
        late: whether the planner gave up its TTFT while it waited.
        standing: whose it is, and when its program has it due.
        first_token_at: when its first token came, in seconds.
    """

    __slots__ = (
        "arrival",
        "computed",
        "first_token_at",
        "known",
        "late",
        "request_id",
        "room",
        "standing",
        "steps_under_way",
        "total",
        "under_way",
    )

    def __init__(self, request_id: str, arrival: Arrival) -> None:
        self.request_id = request_id
        self.arrival = arrival
        self.known = arrival.prompt_tokens
        self.under_way = 0
        self.total = arrival.prompt_tokens + arrival.output_tokens
        self.computed = 0
        self.steps_under_way = 0
        self.room = 0
        self.late = False
        self.standing = NOBODYS
        self.first_token_at: float | None = None

    @property
    def produced(self) -> int:
        """Output tokens so far."""
        return self.known - self.arrival.prompt_tokens

    @property
    def remaining(self) -> int:
        """Tokens to compute before the next one comes; 0 when steps under way make the last."""
        if self.known + self.under_way >= self.total:
            return 0
        return self.known + self.under_way - self.computed

    @property
    def decodes(self) -> bool:
        """Whether only its last token is to be computed."""
        return self.computed >= self.arrival.prompt_tokens and self.remaining == 1

    @property
    def is_finished(self) -> bool:
        """Whether its last token was generated."""
        return self.known >= self.total

    def cached(self, block_tokens: int) -> int:
        """Tokens that the prefix cache saves: whole blocks, and one token at least is computed."""
        reusable = min(self.arrival.cached_tokens, self.known - 1)
        return reusable - reusable % block_tokens
