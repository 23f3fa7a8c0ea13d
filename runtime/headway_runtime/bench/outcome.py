"""What became of one request, as its client saw it."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Ending(str, enum.Enum):
    """How a request ended."""

    COMPLETE = "complete"
    """All its tokens came."""
    REFUSED = "refused"
    """The server would not take it: 429 or 503."""
    FAILED = "failed"
    """Any other error, or an answer with too few tokens."""
    TIMED_OUT = "timed-out"
    """It was given up."""
    UNSENT = "unsent"
    """It was never sent: a request that it waits for has not become complete."""


@dataclass(frozen=True)
class Outcome:
    """One offered request. All times are seconds after the start of the run.

    Attributes:
        class_name: its traffic class.
        prompt_tokens: length of its prompt.
        output_tokens: tokens that it asked for.
        planned_s: when it was to be sent; of one that waits for others, from when they had ended.
        sent_s: when it was sent.
        ending: how it ended.
        ended_s: when it ended.
        token_s: when each token came, in order; tokens that came together have equal times.
        detail: what the client saw if it did not complete, empty otherwise.
        tenant: who sent it; empty where nobody is told apart.
        program: the program that it is a part of; empty for none.
    """

    class_name: str
    prompt_tokens: int
    output_tokens: int
    planned_s: float
    sent_s: float
    ending: Ending
    ended_s: float
    token_s: tuple[float, ...] = ()
    detail: str = ""
    tenant: str = ""
    program: str = ""

    @property
    def ttft_s(self) -> float | None:
        """Time from sending to the first token; None without any."""
        return self.token_s[0] - self.sent_s if self.token_s else None

    @property
    def tpot_s(self) -> float | None:
        """Mean time per token after the first; None with fewer than two."""
        if len(self.token_s) < 2:  # noqa: PLR2004 - a gap takes two
            return None
        return (self.token_s[-1] - self.token_s[0]) / (len(self.token_s) - 1)

    @property
    def latency_s(self) -> float:
        """Time from sending to the end."""
        return self.ended_s - self.sent_s
