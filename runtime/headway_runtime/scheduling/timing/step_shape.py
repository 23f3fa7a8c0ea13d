"""What a step computes, as far as its length depends on it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StepShape:
    """Work in one step of an engine.

    Attributes:
        prefill_tokens: prompt tokens computed in it; 0 makes it a decode-only step.
        decodes: requests that decode in it.
        decode_context: tokens before those that decode, whose keys and values attention reads.
        attention_pairs: for each prefill chunk of q tokens after c computed ones q * (c + q / 2),
            which attention over prompts grows with.
    """

    prefill_tokens: int = 0
    decodes: int = 0
    decode_context: int = 0
    attention_pairs: float = 0.0

    @property
    def tokens(self) -> int:
        """All tokens of the step, one for each request that decodes."""
        return self.prefill_tokens + self.decodes


def attention_pairs(computed_tokens: int, chunk_tokens: float) -> float:
    """Pairs of tokens that attention looks at for a chunk of a prompt."""
    return chunk_tokens * (computed_tokens + chunk_tokens / 2)
