"""Work of single requests as engines count it, for who knows all requests beforehand."""

from __future__ import annotations

from headway_runtime.policy import TrafficClass
from headway_runtime.scheduling.timing.pace import aimed_tpot_s
from headway_runtime.scheduling.timing.slack import promised_step_s
from headway_runtime.scheduling.timing.step_shape import attention_pairs
from headway_runtime.scheduling.timing.step_time_model import Coefficients


def overhead_ratio(cost: Coefficients, promised: TrafficClass) -> float:
    """Share of a step that passes whatever it holds, of one as long as promises leave."""
    ttft_s = promised.ttft_ms / 1000 if promised.ttft_ms is not None else None
    tpot_s = aimed_tpot_s(promised, is_late=False)
    return min(1.0, cost.step_s / promised_step_s(cost.step_s, tpot_s, ttft_s))


def prompt_seconds(cost: Coefficients, tokens: int) -> float:
    """Work of a prompt, in engine-seconds."""
    return cost.prefill_token_s * tokens + cost.attention_pair_s * attention_pairs(0, tokens)


def answer_seconds(cost: Coefficients, prompt_tokens: int, output_tokens: int) -> float:
    """Work of an answer, in engine-seconds; its first token comes with the prompt."""
    decodes = output_tokens - 1
    context = decodes * prompt_tokens + decodes * (decodes + 1) / 2
    return cost.decode_s * decodes + cost.context_token_s * context
