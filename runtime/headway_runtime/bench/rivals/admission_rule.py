"""Orders of admission that other people's schedulers have, beside vLLM's own steps.

Such a scheduler changes nothing but who is admitted next: running requests go on first, prompts
are computed in chunks within a static token budget, as in vLLM. What is admitted is not preempted
for somebody else, by none of the arms.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from headway_runtime.scheduling.origin import Origin

LOOKAHEAD = 16
"""Requests that a step is told to admit first: more than it admits."""


@dataclass(frozen=True)
class Newcomer:
    """A request that has arrived.

    Attributes:
        request_id: the engine's id of it.
        origin: where it says that it comes from.
        prompt_tokens: length of its prompt.
        arrival_s: when it arrived.
    """

    request_id: str
    origin: Origin
    prompt_tokens: int
    arrival_s: float


class AdmissionRule(Protocol):
    """Decides who is admitted next.

    It hears of each request in this order: arrived, stepped once or often, ended.
    """

    def arrived(self, newcomer: Newcomer) -> None:
        """A request waits from now on."""
        ...

    def stepped(self, tokens: Iterable[tuple[str, int]], now_s: float) -> None:
        """A step was decided at this time, with so many tokens of these requests.

        Those that waited are admitted by it. A request that lost its KV blocks waits again, but is
        no concern of the rule any more: vLLM puts it in front of all others.
        """
        ...

    def ended(self, request_id: str) -> None:
        """A request has ended, however; it may have waited still."""
        ...

    def waits(self, request_id: str) -> bool:
        """Whether this request waits for its first admission."""
        ...

    def first(self, now_s: float) -> list[str]:
        """Ids of the requests to admit next, in order, as many as :data:`LOOKAHEAD` at most."""
        ...
