"""A pod whose engine is a queue of prompts and a crowd of answers: no step is simulated.

A hundred times cheaper than the engine that goes step by step, for a thousand pods. Prompts are
computed one after the other in the time that a step of the promised length leaves beside those that
decode, and everybody who decodes gets a token each step. What that is off by is measured, see
:func:`tests.autoscale.figures.fluid_error`.
"""

from __future__ import annotations

import math
from collections import deque
from heapq import heappop, heappush
from typing import NamedTuple

from headway_runtime.bench.simulated import BATCH_SIZE, KV_BLOCKS, TOKEN_BUDGET
from headway_runtime.executors.simulated.measurements import Windows
from headway_runtime.executors.simulated.report import ClassReport, Report
from headway_runtime.executors.simulated.request import Arrival
from headway_runtime.policy import Policy, Scope, Stamp
from headway_runtime.scheduling.timing.pace import aimed_tpot_s
from headway_runtime.scheduling.timing.slack import promised_step_s
from headway_runtime.scheduling.timing.step_time_model import StepTimeModel
from headway_runtime.scheduling.timing.token_load import TokenLoad
from tests.autoscale.cases import CLASS_NAME, Case
from tests.autoscale.pod import Answered, Told
from tests.autoscale.prompt_queue import Prompt, PromptQueue
from tests.autoscale.request_work import prompt_seconds

KV_TOKENS = 16 * KV_BLOCKS
BUSY_TICKS = 2
"""The busy share of steps is that of so many last runs, 10 s in all."""

LEAST_PREFILL = 0.1
"""Share of a step that prompts get, however long those that decode make it."""


class _Answer(NamedTuple):
    """One that decodes; ``ends_at`` is the pod's count of steps at its last token."""

    ends_at: float
    name: str
    first_s: float
    arrival: Arrival


class FluidPod:
    """As :class:`tests.autoscale.pod.Pod`, between events instead of from step to step."""

    def __init__(self, name: str, case: Case, begun_s: float, ready_s: float, seed: int) -> None:  # noqa: ARG002 - there is no chance in it
        self.name, self.begun_s, self.ready_s = name, begun_s, ready_s
        self.draining = False
        self.answered: list[Answered] = []
        self.open = 0
        self.ended_s = ready_s
        promised, timing = case.traffic_class, case.timing()
        self._ttft_s, self._tpot_s = case.ttft_ms / 1000, case.tpot_ms / 1000
        self._model = StepTimeModel(timing.decode_ms, timing.mixed_ms)
        cost = self._model.mixed
        self._longest_s = promised_step_s(
            cost.step_s, aimed_tpot_s(promised, is_late=False), self._ttft_s
        )
        self._alone_s = promised_step_s(cost.step_s, None, self._ttft_s)
        self._load = TokenLoad(ready_s)
        self._load.adopt(Policy(Scope("autoscale"), Stamp(1, 0, 0), classes=(promised,)))
        self._ttft, self._tpot = Windows(), Windows()
        self._at_s = ready_s
        self._coming: deque[Prompt] = deque()
        self._prompts = PromptQueue(self._ttft_s)
        self._current: Prompt | None = None
        self._left_s = 0.0
        self._answers: list[_Answer] = []
        self._context = 0.0
        self._steps = self._step_seconds = self._tokens = 0.0
        self._busy: deque[tuple[float, float]] = deque(maxlen=BUSY_TICKS)
        self._attained = 0
        self._made = 0

    def send(self, arrival: Arrival) -> None:
        """A request comes."""
        self.open += 1
        self._made += 1
        work_s = prompt_seconds(self._model.mixed, arrival.prompt_tokens)
        self._coming.append(Prompt(arrival, str(self._made), work_s))

    def run(self, until_s: float) -> None:
        """Run until that time."""
        if until_s <= self._at_s:
            return
        began_s, busy_s = self._at_s, 0.0
        while self._at_s < until_s:
            self._receive()
            next_s = min(until_s, self._coming[0].arrival.at if self._coming else until_s)
            if self._current is None and not self._answers:
                self._at_s = next_s
                continue
            busy_s += self._go_on(next_s)
        self._busy.append((busy_s, self._at_s - began_s))

    def _receive(self) -> None:
        while self._coming and self._coming[0].arrival.at <= self._at_s:
            coming = self._coming.popleft()
            self._prompts.add(coming)
            self._load.arrived(coming.name, coming.arrival.prompt_tokens, coming.arrival.at)
        if self._current is None and len(self._prompts):
            prompt = self._prompts.next(self._at_s, 1 / self._rate(len(self._answers))[1])
            if prompt is not None:
                self._current, self._left_s = prompt, prompt.seconds

    def _go_on(self, next_s: float) -> float:
        """Until somebody comes, or has a first or last token. Returns how long it was."""
        decodes = len(self._answers)
        step_s, prefill_rate = self._speeds(decodes)
        passed_s = next_s - self._at_s
        if prefill_rate:
            passed_s = min(passed_s, self._left_s / prefill_rate)
        if decodes:
            passed_s = min(passed_s, max(0.0, self._answers[0].ends_at - self._steps) * step_s)
        steps = passed_s / step_s
        self._at_s = next_s if passed_s == next_s - self._at_s else self._at_s + passed_s
        self._steps += steps
        self._step_seconds += passed_s
        self._tokens += steps * decodes
        self._load.stepped(steps * decodes, steps * self._context, self._at_s)  # type: ignore[arg-type] # parts of steps
        self._context += steps * decodes
        self._left_s -= passed_s * prefill_rate
        if prefill_rate and self._left_s <= 1e-12:
            self._first_token(step_s)
        while self._answers and self._answers[0].ends_at <= self._steps + 1e-9:
            self._end(heappop(self._answers))
        return passed_s

    def _speeds(self, decodes: int) -> tuple[float, float]:
        """Length of a step, and seconds of prompts that are computed in a second."""
        if not self._has_room(decodes):
            cost = self._model.decode
            return cost.step_s + cost.decode_s * decodes + cost.context_token_s * self._context, 0.0
        longest_s, rate = self._rate(decodes)
        # What is left of the queue may be less than such a step holds.
        held_s = (
            longest_s if self._prompts.has_some_in_time else self._left_s + (1 - rate) * longest_s
        )
        return min(longest_s, held_s), rate

    def _rate(self, decodes: int) -> tuple[float, float]:
        """Length of a step that is full of prompts, and what they are of it."""
        cost = self._model.mixed
        base_s = cost.step_s + cost.decode_s * decodes + cost.context_token_s * self._context
        promised_s = self._longest_s if decodes else self._alone_s
        longest_s = max(promised_s, base_s / (1 - LEAST_PREFILL))
        return longest_s, (longest_s - base_s) / longest_s

    def _has_room(self, decodes: int) -> bool:
        if self._current is None or decodes >= BATCH_SIZE:
            return False
        return self._context + self._current.arrival.prompt_tokens <= KV_TOKENS or not decodes

    def _first_token(self, step_s: float) -> None:
        prompt = self._current
        assert prompt is not None
        self._current = None
        arrival = prompt.arrival
        self._load.admitted(prompt.name, 0)
        self._tokens += arrival.prompt_tokens
        # It waits for the step under way, and is known when its own has ended.
        first_s = self._at_s + step_s
        self._ttft.add(self._at_s, (first_s - arrival.at) / self._ttft_s)
        answer = _Answer(self._steps + arrival.output_tokens - 1, prompt.name, first_s, arrival)
        if arrival.output_tokens > 1:
            self._context += arrival.prompt_tokens
            heappush(self._answers, answer)
        else:
            self._told(answer, 0.0)

    def _end(self, answer: _Answer) -> None:
        tokens = answer.arrival.output_tokens
        self._context = max(0.0, self._context - answer.arrival.prompt_tokens - tokens + 1)
        tpot_s = max(0.0, self._at_s - answer.first_s) / (tokens - 1)
        self._tpot.add(self._at_s, tpot_s / self._tpot_s)
        self._told(answer, tpot_s)

    def _told(self, answer: _Answer, tpot_s: float) -> None:
        self.open -= 1
        self.ended_s = self._at_s
        self._load.ended(answer.name, answer.arrival.output_tokens)
        ttft_s = answer.first_s - answer.arrival.at
        kept = ttft_s <= self._ttft_s and tpot_s <= self._tpot_s
        self._attained += kept
        self.answered.append(Answered(ttft_s, kept))

    def tell(self, now_s: float) -> Told:
        """What its metrics say."""
        work = self._load.work_ratio(now_s, self._model, len(self._prompts))
        return Told(self._report(now_s), work, self._load.overhead_ratio(self._model))

    def _report(self, now_s: float) -> Report:
        seconds = sum(length for _, length in self._busy)
        busy = sum(each for each, _ in self._busy) / seconds if seconds else 0.0
        measured = ClassReport(
            len(self.answered),
            self._attained,
            self._ttft.quantile(now_s),
            self._tpot.quantile(now_s),
        )
        return Report(
            at=now_s,
            utilisation=busy,
            kv_usage=min(1.0, self._context / KV_TOKENS),
            running=len(self._answers) + (self._current is not None),
            waiting=len(self._prompts),
            steps_total=math.floor(self._steps),
            scheduled_tokens_total=math.floor(self._tokens),
            step_seconds_total=self._step_seconds,
            preemptions_total=0,
            token_budget=TOKEN_BUDGET,
            max_batch=BATCH_SIZE,
            token_budget_ceiling=TOKEN_BUDGET,
            max_batch_ceiling=BATCH_SIZE,
            classes={CLASS_NAME: measured},
        )
