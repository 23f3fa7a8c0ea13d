"""How long a step takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StepTime:
    """A step's length, linear in what it holds.

    The default is of the order of a model of 8 billion parameters on one H200: 5 ms to read the
    weights, some 60,000 tokens a second at most.

    Attributes:
        base_us: of every step.
        token_us: for each token.
        request_us: for each request that has tokens in the step.
        context_token_ns: for each token that those requests had before, whose keys and values
            attention reads.
    """

    base_us: float = 5000.0
    token_us: float = 16.0
    request_us: float = 10.0
    context_token_ns: float = 35.0

    def seconds(self, tokens: int, requests: int, context_tokens: int) -> float:
        """Length of a step, in seconds."""
        work_us = self.base_us + self.token_us * tokens + self.request_us * requests
        return (work_us + self.context_token_ns * context_tokens / 1000) / 1e6
