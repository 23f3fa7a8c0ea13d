"""How much work is offered to an engine, as a share of its time.

An engine with TPOT targets runs steps whenever it has a request, so that its busy share says
nothing of its load. What its work takes does: with steps of T seconds, as long as the tightest
promise leaves, n engines get through it where ``work / n + step_s / T`` is below 1.

Sums are weighted exponentially, which is exact whenever events come. They are divided by the weight
of the time that was seen, so that an engine that has just begun tells no less than it is offered.
"""

from __future__ import annotations

from math import exp, expm1
from typing import NamedTuple

from headway_runtime.policy import Policy
from headway_runtime.scheduling.timing.forgetting import MEMORY_S, kept
from headway_runtime.scheduling.timing.pace import tightest_tpot_s, tightest_ttft_s
from headway_runtime.scheduling.timing.slack import promised_step_s
from headway_runtime.scheduling.timing.step_shape import attention_pairs
from headway_runtime.scheduling.timing.step_time_model import StepTimeModel

LEAST_SEEN_S = 1.0
"""Before an engine was seen for so long, a request says nothing of how many there will be."""

ANSWERS_REMEMBERED = 64
"""The mean length of answers is that of about so many."""


class LoadRatios(NamedTuple):
    """What an engine tells of its load.

    Attributes:
        work: engine-seconds of work offered each second; above 1 it is more than the engine could
            do in steps of any length.
        overhead: share of each step that is no work, 0 to 1.
    """

    work: float
    overhead: float


class TokenLoad:
    """Keeps account of the work offered to one engine. Costs O(1) for each event and each step.

    Prompts count when their requests arrive, all tokens of an answer but the first as they are
    decoded: the first one comes with the prompt. What is computed again, for want of KV blocks, was
    not offered. Times are seconds of any one clock; an event may be told after later ones.

    Args:
        begun_s: when the engine began.
    """

    __slots__ = (
        "_answer_tokens", "_answers", "_arrivals", "_at_s", "_begun_s", "_context_tokens",
        "_decodes", "_has_policy", "_pairs", "_prompt_tokens", "_prompts", "_tpot_s", "_ttft_s",
    )  # fmt: skip

    def __init__(self, begun_s: float) -> None:
        self._begun_s = self._at_s = begun_s
        self._prompts = 0.0
        self._prompt_tokens = 0.0
        self._pairs = 0.0
        self._decodes = 0.0
        self._context_tokens = 0.0
        self._arrivals: dict[str, tuple[float, int]] = {}
        self._answer_tokens = 0.0
        self._answers = 0
        self._has_policy = False
        self._tpot_s: float | None = None
        self._ttft_s: float | None = None

    def adopt(self, policy: Policy | None) -> None:
        """Follow the promises of another policy."""
        classes = policy.classes if policy is not None else ()
        self._has_policy = policy is not None
        self._tpot_s, self._ttft_s = tightest_tpot_s(classes), tightest_ttft_s(classes)

    def arrived(self, request_id: str, prompt_tokens: int, at_s: float) -> None:
        """A request has arrived."""
        weight = self._weight(at_s)
        self._prompts += weight
        self._prompt_tokens += weight * prompt_tokens
        self._pairs += weight * attention_pairs(0, prompt_tokens)
        self._arrivals[request_id] = at_s, prompt_tokens

    def admitted(self, request_id: str, cached_tokens: int) -> None:
        """A request runs, and so many tokens of its prompt were cached.

        They are taken back from when it arrived. Has no effect on one that has run before.
        """
        arrival = self._arrivals.pop(request_id, None)
        if arrival is None or cached_tokens <= 0:
            return
        arrived_s, prompt_tokens = arrival
        cached = min(cached_tokens, prompt_tokens)
        weight = kept(self._at_s - arrived_s)
        self._prompt_tokens = max(0.0, self._prompt_tokens - weight * cached)
        self._pairs = max(0.0, self._pairs - weight * attention_pairs(0, cached))

    def stepped(self, decodes: int, context_tokens: int, at_s: float) -> None:
        """A step was made.

        Args:
            decodes: requests that decode in it.
            context_tokens: tokens before those that decode, summed over the requests.
            at_s: when.
        """
        weight = self._weight(at_s)
        self._decodes += weight * decodes
        self._context_tokens += weight * context_tokens

    def ended(self, request_id: str, generated_tokens: int) -> None:
        """A request is gone; one that has not generated anything says nothing of answers."""
        self._arrivals.pop(request_id, None)
        if generated_tokens > 0:
            self._answers = min(self._answers + 1, ANSWERS_REMEMBERED)
            self._answer_tokens += (generated_tokens - self._answer_tokens) / self._answers

    def work_ratio(self, now_s: float, step_time: StepTimeModel, waiting: int) -> float:
        """Engine-seconds of work that are offered each second.

        Args:
            now_s: now, not before the last event.
            step_time: tells what the work takes.
            waiting: requests that wait, whose answers are expected to be as long as recent ones.
        """
        cost = step_time.mixed
        decode_s = cost.decode_s * self._decodes + cost.context_token_s * self._context_tokens
        prompt_s = cost.prefill_token_s * self._prompt_tokens + cost.attention_pair_s * self._pairs
        work_s = kept(now_s - self._at_s) * (prompt_s + decode_s)
        work_s += waiting * self.answer_seconds(step_time)
        return work_s / self._seen_s(now_s)

    def answer_seconds(self, step_time: StepTimeModel) -> float:
        """Engine-seconds of an answer as long as recent ones; 0 before there was one."""
        if not self._answers:
            return 0.0
        cost = step_time.mixed
        each_s = cost.decode_s
        if self._decodes > 0:
            each_s += cost.context_token_s * self._context_tokens / self._decodes
        return max(0.0, self._answer_tokens - 1) * each_s

    def arrivals_per_s(self, now_s: float) -> float:
        """Requests that have come each second lately; now is not before the last event."""
        return kept(now_s - self._at_s) * self._prompts / self._seen_s(now_s)

    def overhead_ratio(self, step_time: StepTimeModel) -> float:
        """Share of a step, as long as the tightest promise leaves, that passes whatever is done."""
        step_s = step_time.mixed.step_s
        return min(1.0, step_s / promised_step_s(step_s, self._tpot_s, self._ttft_s))

    def ratios(self, now_s: float, step_time: StepTimeModel, waiting: int) -> LoadRatios | None:
        """Both ratios; None before there is a policy, which makes the promises."""
        if not self._has_policy:
            return None
        work = self.work_ratio(now_s, step_time, waiting)
        return LoadRatios(work, self.overhead_ratio(step_time))

    def _seen_s(self, now_s: float) -> float:
        """Weight of the time that was seen."""
        seen_s = -MEMORY_S * expm1(-max(0.0, now_s - self._begun_s) / MEMORY_S)
        return max(LEAST_SEEN_S, seen_s)

    def _weight(self, at_s: float) -> float:
        """What an event of this time counts for; what came before it is aged until then."""
        passed_s = at_s - self._at_s
        if passed_s <= 0:
            return kept(-passed_s)
        share = exp(-passed_s / MEMORY_S)
        self._prompts *= share
        self._prompt_tokens *= share
        self._pairs *= share
        self._decodes *= share
        self._context_tokens *= share
        self._at_s = at_s
        return 1.0
