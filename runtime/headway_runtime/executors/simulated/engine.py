"""The engine: admission, chunked prefill, KV blocks and preemption as in vLLM."""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable, Sequence

from headway_runtime.executors.simulated.executor import SimulatedExecutor
from headway_runtime.executors.simulated.kv_blocks import KvBlocks
from headway_runtime.executors.simulated.options import EngineOptions
from headway_runtime.executors.simulated.pipeline import Pipeline
from headway_runtime.executors.simulated.recorder import Occupancy, Recorder
from headway_runtime.executors.simulated.report import Report
from headway_runtime.executors.simulated.request import Arrival, Request
from headway_runtime.executors.simulated.step_time import Timing
from headway_runtime.policy import Mode
from headway_runtime.scheduling.admission.refusal import Refusal
from headway_runtime.scheduling.planner import Planner, plan_step
from headway_runtime.scheduling.timing.step_time_model import StepTimeModel
from headway_runtime.scheduling.view import Limits

STALL_S = 0.001
"""An engine that has work and puts none into a step looks again after this time."""

Door = Callable[[Arrival, float], Refusal | None]
"""Whether a request that comes at this time, in seconds, is let in."""

Order = Callable[[], Sequence[Request]]
"""Names waiting requests that go in front of all others, first one first."""


class SimulatedEngine(SimulatedExecutor):
    """Runs requests in simulated time.

    A step serves running requests in the order of their admission, then admits waiting ones, all
    within the token budget; a prompt that does not fit is computed in chunks. When KV blocks run
    out, the request admitted last loses its own and waits at the front to be computed again. Tokens
    come at the end of a step, or when the next one is launched, if that is later.

    Attributes:
        recorder: is told of what comes, of steps and tokens, if there is one.
        door: refuses requests as they come; None lets everybody in.
        order: another order of admission than the engine's own, asked before each step; None leaves
            it. Not for an engine that plans.
        planner: what plans steps; another one is put in its place only to compare it.

    Args:
        ceilings: limits it is started with.
        blocks: KV blocks it has.
        step_time: how long steps take; also whether the next step is launched while one runs.
        options: how it schedules by itself.
        model: what it knows of the length of its steps, where the planner is to know it.
    """

    def __init__(
        self,
        ceilings: Limits,
        blocks: KvBlocks,
        step_time: Timing,
        options: EngineOptions | None = None,
        model: StepTimeModel | None = None,
    ) -> None:
        super().__init__(ceilings, blocks, options or EngineOptions(), step_time, model)
        self.recorder: Recorder | None = None
        self.door: Door | None = None
        self.order: Order | None = None
        self.planner: Planner = plan_step
        self._limits_of_last_step = ceilings
        self._blocks = blocks
        self._arrivals: deque[Arrival] = deque()
        self._received = 0
        self._pipeline = Pipeline(step_time)

    def send(self, arrival: Arrival) -> None:
        """Send a request, in any order and also while the engine runs.

        Of requests that arrive at one time the first one sent comes first. One that should have
        arrived before now comes now.

        Raises:
            ValueError: it could never run, for want of KV blocks.
        """
        if not self._blocks.hold(arrival.prompt_tokens + arrival.output_tokens):
            raise ValueError("the request needs more KV blocks than there are")
        insort(self._arrivals, arrival, key=lambda each: each.at)

    def run(self, until_s: float) -> None:
        """Run steps until that time; the last one may end after it."""
        while self.now_s < until_s:
            self._go_on(until_s)

    def run_to_the_end(self, latest_s: float) -> None:
        """Run until every request that was sent has ended, or until that time."""
        while self.now_s < latest_s and (
            self._arrivals or self._batch.running or self._waiting or self._pipeline
        ):
            self._go_on(latest_s)

    @property
    def occupancy(self) -> Occupancy:
        """How full it is now; costs less than a report."""
        return Occupancy(
            len(self._batch.running),
            len(self._waiting),
            self._blocks.usage,
            self._limits_of_last_step.token_budget,
        )

    def report(self) -> Report:
        """What its pod would tell now."""
        counts, ratios = self._measurements.counts, self.load_ratios()
        return Report(
            at=self.now_s,
            utilisation=self._measurements.utilisation(self.now_s),
            kv_usage=self._blocks.usage,
            running=len(self._batch.running),
            waiting=len(self._waiting),
            steps_total=counts.steps,
            scheduled_tokens_total=counts.scheduled_tokens,
            step_seconds_total=counts.step_seconds,
            preemptions_total=counts.preemptions,
            token_budget=self._limits_of_last_step.token_budget,
            max_batch=self._limits_of_last_step.max_batch_size,
            token_budget_ceiling=self._ceilings.token_budget,
            max_batch_ceiling=self._ceilings.max_batch_size,
            classes=self._measurements.classes(self.now_s),
            token_load_ratio=ratios.work if ratios is not None else None,
            step_overhead_ratio=ratios.overhead if ratios is not None else None,
        )

    def _receive(self) -> None:
        while self._arrivals and self._arrivals[0].at <= self.now_s:
            self._received += 1
            self._let_in(self._arrivals.popleft())

    def _let_in(self, arrival: Arrival) -> None:
        refusal = self.door(arrival, self.now_s) if self.door is not None else None
        if refusal is not None:
            if self.recorder is not None:
                self.recorder.refused(arrival, self._received, refusal)
            return
        request = Request(str(self._received), arrival)
        self._waiting.append(request)
        self.added(request)
        if self.recorder is not None:
            self.recorder.received(request)

    def _go_on(self, until_s: float) -> None:
        self._receive()
        has_work = bool(self._batch.running or self._waiting)
        if has_work and self._pipeline.has_room and self._launch():
            return
        if self._pipeline:
            self._look_at_output()
        elif has_work:
            self.now_s += STALL_S
        else:
            next_s = self._arrivals[0].at if self._arrivals else until_s
            self.now_s = min(until_s, next_s)

    def _launch(self) -> bool:
        """Decide and launch a step. Returns whether there was anything to put into it."""
        self._plan()
        self._bring_forward()
        try:
            step = self._batch.fill(self._limits, self._waiting, self._caps)
        finally:
            self._limits_of_last_step = self._limits
            self.restore()
        self.scheduled(step, self.now_s)
        if step.preempted:
            self._measurements.preempted(len(step.preempted))
        if not step.tokens:
            return False
        launched = self._pipeline.launch(step, self.now_s)
        if self.recorder is not None:
            self.recorder.launched(launched, len(self._waiting))
        self._measurements.stepped(launched.began_s, launched.ended_s, step)
        self.now_s = launched.launched_s
        self.launched(self.now_s)
        return True

    def _look_at_output(self) -> None:
        launched = self._pipeline.oldest()
        self.now_s = max(self.now_s, launched.ended_s)
        sampled = self._batch.finish(launched.step, self._waiting)
        self.looked_at(launched.step, self.now_s)
        self.now_s += launched.update_s
        for request in sampled:
            if self.recorder is not None:
                self.recorder.token(request, self.now_s)
            if request.first_token_at is None or request.is_finished:
                self._tell(request)

    def _bring_forward(self) -> None:
        for request in reversed(self.order() if self.order is not None else ()):
            self._waiting.remove(request)
            self._waiting.put_back(request)

    def _plan(self) -> None:
        policy = self._policy
        if policy is None or policy.mode is Mode.OFF:
            return
        plan = self.planner(self.observe(), lambda: False)
        if policy.mode is Mode.ACT:
            self.apply(plan)
        else:
            self.pass_over()

    def _tell(self, request: Request) -> None:
        if request.first_token_at is None:
            request.first_token_at = self.now_s
            self._measurements.first_token(request, self._class_of(request), self.now_s)
        if request.is_finished:
            self._measurements.ended(request, self._class_of(request), self.now_s)
