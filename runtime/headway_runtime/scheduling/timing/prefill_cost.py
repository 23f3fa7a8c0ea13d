"""What prefill costs in a step, and how much of it a time allows."""

from __future__ import annotations

from math import inf, sqrt

from headway_runtime.scheduling.timing.step_time_model import Coefficients
from headway_runtime.scheduling.view import Work

_LEAST_TOKENS_A_STEP = 64


def chunk_seconds(cost: Coefficients, computed_tokens: int, tokens: float) -> float:
    """Time that a chunk of a prompt adds to a step.

    Args:
        cost: of steps with prefill.
        computed_tokens: tokens of the request before the chunk.
        tokens: in the chunk.
    """
    per_token_s = cost.prefill_token_s + cost.attention_pair_s * computed_tokens
    return per_token_s * tokens + cost.attention_pair_s * tokens * tokens / 2


def chunk_tokens(cost: Coefficients, computed_tokens: int, seconds: float) -> float:
    """Tokens of a chunk that adds so many seconds: the inverse of :func:`chunk_seconds`."""
    if seconds <= 0:
        return 0.0
    if seconds == inf:
        return inf
    per_token_s = cost.prefill_token_s + cost.attention_pair_s * computed_tokens
    quadratic = cost.attention_pair_s / 2
    if quadratic <= 0:
        return seconds / per_token_s
    # The positive root, in the form that does not cancel.
    return 2 * seconds / (per_token_s + sqrt(per_token_s**2 + 4 * quadratic * seconds))


def slowdown(work: Work) -> float:
    """How much slower prefill goes on than it could alone, beside tokens that keep their pace."""
    if not work.due:
        return 1.0
    cost = work.cost
    step_s: float = min([each.tpot_s for each in work.due])
    tokens = max(_LEAST_TOKENS_A_STEP, chunk_tokens(cost, 0, step_s - work.base_s))
    return max(1.0, step_s / tokens / cost.prefill_token_s)


def launched_in_s(work: Work, launch_s: float) -> float:
    """How long after the engine is free the launch of the step is over."""
    return work.now_s + launch_s - work.free_s
