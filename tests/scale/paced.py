"""Real vLLM schedulers at the pace of a GPU: requests come, steps are launched and take their time.

Steps overlap as they do with asynchronous scheduling, and between them the processor sleeps: caches
are then as cold as beside a real GPU, and the planner learns how long steps take.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from headway_runtime.bench.workload import Request
from headway_runtime.executors.simulated.step_time import GpuStepTime
from headway_runtime.scheduling.timing.step_shape import StepShape, attention_pairs
from tests.contract.engines import MAX_MODEL_TOKENS, Engine

UNDER_WAY = 2


@dataclass(frozen=True)
class _Launched:
    output: Any
    ended_s: float


class PacedEngine:
    """An engine whose model runner takes as long as a GPU would.

    Args:
        engine: its scheduler.
        timing: how long steps take, and their launches.
    """

    def __init__(self, engine: Engine, timing: GpuStepTime) -> None:
        self._engine = engine
        self._timing = timing
        self._under_way: deque[_Launched] = deque()

    def run(self, requests: Iterable[Request], stepped: Callable[[], None]) -> None:
        """Send the requests at their times until all have come.

        Args:
            requests: in order of arrival.
            stepped: called after each step.
        """
        began_s = time.monotonic()
        arrivals = deque(enumerate(requests))
        while arrivals:
            now_s = time.monotonic() - began_s
            while arrivals and arrivals[0][1].arrival_s <= now_s:
                self._send(*arrivals.popleft())
            if len(self._under_way) < UNDER_WAY and self._launch():
                continue
            if self._under_way:
                self._finish(self._under_way.popleft())
                stepped()
            elif arrivals:
                time.sleep(max(0.0, arrivals[0][1].arrival_s - now_s))

    def _send(self, number: int, request: Request) -> None:
        output_tokens = min(request.output_tokens, MAX_MODEL_TOKENS // 2)
        self._engine.add(
            f"r{number}",
            request.class_name,
            prompt_tokens=min(request.prompt_tokens, MAX_MODEL_TOKENS - output_tokens),
            output_tokens=output_tokens,
        )

    def _launch(self) -> bool:
        """Schedule a step and launch it. Returns whether there was anything to put into it."""
        if not self._engine.scheduler.has_requests():
            return False
        output = self._engine.schedule()
        if not output.total_num_scheduled_tokens:
            self._engine.finish(output)
            return False
        shape = self._shape(output)
        time.sleep(self._timing.launch_s(shape))
        self._engine.scheduler.get_grammar_bitmask(output)
        free_s = self._under_way[-1].ended_s if self._under_way else 0.0
        began_s = max(free_s, time.monotonic())
        self._under_way.append(_Launched(output, began_s + self._timing.gpu_s(shape)))
        return True

    def _finish(self, step: _Launched) -> None:
        time.sleep(max(0.0, step.ended_s - time.monotonic()))
        self._engine.finish(step.output)

    def _shape(self, output: Any) -> StepShape:
        prompt_tokens, decodes, context, pairs = 0, 0, 0, 0.0
        for name, tokens in output.num_scheduled_tokens.items():
            before = self._engine.scheduler.requests[name].num_computed_tokens - tokens
            if tokens > 1:
                prompt_tokens += tokens
                pairs += attention_pairs(before, tokens)
            else:
                decodes += 1
                context += before
        return StepShape(prompt_tokens, decodes, context, pairs)
