"""One step: what it computes, and for whom."""

from __future__ import annotations

from dataclasses import dataclass, field

from headway_runtime.executors.simulated.request import Request
from headway_runtime.scheduling.timing.step_shape import StepShape, attention_pairs

Chunk = tuple[Request, int]
"""A request and how many of its tokens a step computes."""


@dataclass
class Step:
    """What one step computes.

    Attributes:
        chunks: tokens of each request in it.
        tokens: all of them.
        context_tokens: tokens that its requests had before.
        decodes: requests in it that decode.
        decode_context: tokens that those had before.
        pairs: attention pairs of its prompt chunks.
        preempted: requests that lost their KV blocks for it.
        sampled: requests that get a token by it.
    """

    chunks: list[Chunk] = field(default_factory=list)
    tokens: int = 0
    context_tokens: int = 0
    decodes: int = 0
    decode_context: int = 0
    pairs: float = 0.0
    preempted: list[Request] = field(default_factory=list)
    sampled: list[Request] = field(default_factory=list)

    @property
    def shape(self) -> StepShape:
        """Its work."""
        return StepShape(self.tokens - self.decodes, self.decodes, self.decode_context, self.pairs)

    def add(self, request: Request, tokens: int) -> None:
        """Compute these tokens, too."""
        self.chunks.append((request, tokens))
        self.tokens += tokens

    def drop(self, request: Request) -> bool:
        """Compute nothing of this request. Returns whether anything of it was to be computed."""
        for index, (each, tokens) in enumerate(self.chunks):
            if each is request:
                del self.chunks[index]
                self.tokens -= tokens
                return True
        return False

    def begin(self) -> None:
        """Count what it computes as computed from now on, as engines do that schedule ahead."""
        for request, tokens in self.chunks:
            computed = request.computed
            remaining = request.known + request.under_way - computed
            self.context_tokens += computed
            if remaining == 1 and computed >= request.arrival.prompt_tokens:
                self.decodes += 1
                self.decode_context += computed
            else:
                self.pairs += attention_pairs(computed, tokens)
            request.computed = computed + tokens
            request.steps_under_way += 1
            if tokens == remaining:
                request.under_way += 1
                self.sampled.append(request)
