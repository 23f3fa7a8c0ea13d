"""What an engine is asked for, in engine-seconds of work a second: the gauge ours decides by.

The same definition as the runtime's gauges headway_token_load_ratio and
headway_step_overhead_ratio: prompts count when they arrive, answers as they are generated, and
those of requests that wait as many tokens as recent answers had.
"""

from __future__ import annotations

from math import exp

from headway_runtime.executors.simulated.step import Step
from headway_runtime.policy import TrafficClass
from headway_runtime.scheduling.timing.pace import aimed_tpot_s
from headway_runtime.scheduling.timing.slack import STEPS_IN_A_TTFT
from headway_runtime.scheduling.timing.step_shape import attention_pairs
from headway_runtime.scheduling.timing.step_time_model import Coefficients

MEMORY_S = 15.0
ANSWERS_REMEMBERED = 64
UNHURRIED_STEP_S = 1.0


def overhead_ratio(cost: Coefficients, promised: TrafficClass) -> float:
    """Share of a step that passes whatever it holds, of one as long as promises leave."""
    limits = []
    tpot_s = aimed_tpot_s(promised, is_late=False)
    if tpot_s is not None:
        limits.append(tpot_s)
    if promised.ttft_ms is not None:
        limits.append(max(2 * cost.step_s, promised.ttft_ms / 1000 / STEPS_IN_A_TTFT))
    return min(1.0, cost.step_s / min(limits, default=UNHURRIED_STEP_S))


def prompt_seconds(cost: Coefficients, tokens: int) -> float:
    """Work of a prompt, in engine-seconds."""
    return cost.prefill_token_s * tokens + cost.attention_pair_s * attention_pairs(0, tokens)


def answer_seconds(cost: Coefficients, prompt_tokens: int, output_tokens: int) -> float:
    """Work of an answer, in engine-seconds; its first token comes with the prompt."""
    decodes = output_tokens - 1
    context = decodes * prompt_tokens + decodes * (decodes + 1) / 2
    return cost.decode_s * decodes + cost.context_token_s * context


class TokenLoad:
    """Keeps account of what one engine is asked for; weights fade exponentially.

    Args:
        begun_s: when it began to take requests.
    """

    def __init__(self, begun_s: float) -> None:
        self._begun_s = self._at_s = begun_s
        self._prompt_tokens = self._pairs = 0.0
        self._decodes = self._context = 0.0
        self._answer_tokens = 0.0
        self._answers = 0

    def arrived(self, prompt_tokens: int, at_s: float) -> None:
        """A request came."""
        self._age(at_s)
        self._prompt_tokens += prompt_tokens
        self._pairs += attention_pairs(0, prompt_tokens)

    def stepped(self, step: Step, at_s: float) -> None:
        """A step was launched."""
        self._age(at_s)
        self._decodes += step.decodes
        self._context += step.decode_context

    def ended(self, output_tokens: int) -> None:
        """A request has its last token."""
        self._answers = min(self._answers + 1, ANSWERS_REMEMBERED)
        self._answer_tokens += (output_tokens - self._answer_tokens) / self._answers

    def ratio(self, cost: Coefficients, waiting: int, now_s: float) -> float:
        """Engine-seconds of work a second."""
        self._age(now_s)
        decode_s = cost.decode_s * self._decodes + cost.context_token_s * self._context
        work_s = cost.prefill_token_s * self._prompt_tokens + cost.attention_pair_s * self._pairs
        work_s += decode_s
        if waiting and self._decodes:
            work_s += waiting * max(0.0, self._answer_tokens - 1) * decode_s / self._decodes
        return work_s / max(1.0, MEMORY_S * (1 - exp((self._begun_s - now_s) / MEMORY_S)))

    def _age(self, at_s: float) -> None:
        if at_s <= self._at_s:
            return
        kept = exp((self._at_s - at_s) / MEMORY_S)
        self._prompt_tokens *= kept
        self._pairs *= kept
        self._decodes *= kept
        self._context *= kept
        self._at_s = at_s
