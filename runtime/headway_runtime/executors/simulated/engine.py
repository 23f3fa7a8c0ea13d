"""The engine: admission, chunked prefill, KV blocks and preemption as in vLLM."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from headway_runtime.executors.simulated.batch import Batch
from headway_runtime.executors.simulated.kv_blocks import KvBlocks
from headway_runtime.executors.simulated.measurements import Measurements
from headway_runtime.executors.simulated.report import Report
from headway_runtime.executors.simulated.request import Arrival, Request
from headway_runtime.executors.simulated.step_time import StepTime
from headway_runtime.executors.simulated.waiting_queue import WaitingQueue
from headway_runtime.policy import Mode, Policy, TrafficClass
from headway_runtime.scheduling.plan import StepPlan
from headway_runtime.scheduling.planner import plan_step
from headway_runtime.scheduling.view import Lane, Limits, StepView


class SimulatedEngine:
    """Runs requests in simulated time.

    Implements :class:`headway_runtime.executors.interface.Executor`.

    A step serves running requests in the order of their admission, then admits waiting ones, all
    within the token budget; a prompt that does not fit is computed in chunks. When KV blocks run
    out, the request admitted last loses its own and waits at the front to be computed again. Tokens
    come at the end of a step.

    Args:
        ceilings: limits it is started with.
        blocks: KV blocks it has.
        step_time: how long steps take.
    """

    def __init__(self, ceilings: Limits, blocks: KvBlocks, step_time: StepTime) -> None:
        self.now_s = 0.0
        self._ceilings = ceilings
        self._limits = ceilings
        self._limits_of_last_step = ceilings
        self._blocks = blocks
        self._step_time = step_time
        self._policy: Policy | None = None
        self._classes: dict[str, TrafficClass] = {}
        self._arrivals: deque[Arrival] = deque()
        self._received = 0
        self._waiting = WaitingQueue(self._class_of)
        self._batch = Batch(blocks)
        self._measurements = Measurements()

    # As an executor.

    @property
    def ceilings(self) -> Limits:
        """Limits the engine was started with."""
        return self._ceilings

    def adopt(self, policy: Policy | None) -> None:
        """Follow another policy from the next step on."""
        before = (self._classes, self._limited)
        self._policy = policy
        self._classes = {each.name: each for each in policy.classes} if policy else {}
        self._measurements.declare(self._classes)
        if (self._classes, self._limited) != before:
            self._waiting.unsettle(len(self._limited))

    def observe(self) -> StepView:
        """The engine before the step."""
        policy = self._policy
        if policy is None:
            raise RuntimeError("no policy was adopted")
        return StepView(
            ceilings=self._ceilings,
            wanted=Limits(
                policy.token_budget or self._ceilings.token_budget,
                policy.max_batch_size or self._ceilings.max_batch_size,
            ),
            running=len(self._batch.running),
            settled=self._waiting.settled,
            unsettled=self._waiting.unsettled,
            lanes=tuple(
                Lane(each.name, self._room(each), waiting)
                for each, waiting in zip(self._limited, self._waiting.lanes, strict=True)
            ),
            front=self._waiting.front,
        )

    def apply(self, plan: StepPlan) -> None:
        """Put the plan in force for one step."""
        self._waiting.settle(plan.placements)
        self._waiting.take_turns(plan.turns)
        self._limits = plan.limits

    def pass_over(self) -> None:
        """The step was planned but the engine decides it alone."""
        self._waiting.settle(())

    def restore(self) -> None:
        """Take back every limit."""
        self._limits = self._ceilings

    def added(self) -> None:
        """A request was put at the end of the waiting queue, which knows that by itself."""

    def left(self, request_ids: Iterable[str]) -> None:
        """Requests wait no more, which the waiting queue knows by itself."""

    # In simulated time.

    def send(self, arrival: Arrival) -> None:
        """Send a request. Requests must be sent in the order of their arrival.

        Raises:
            ValueError: it could never run, for want of KV blocks.
        """
        if not self._blocks.hold(arrival.prompt_tokens + arrival.output_tokens):
            raise ValueError("the request needs more KV blocks than there are")
        self._arrivals.append(arrival)

    def run(self, until_s: float) -> None:
        """Run steps until that time; the last one may end after it."""
        while self.now_s < until_s:
            self._receive()
            if self._batch.running or self._waiting:
                self._step()
            else:
                next_s = self._arrivals[0].at if self._arrivals else until_s
                self.now_s = min(until_s, next_s)

    def report(self) -> Report:
        """What its pod would tell now."""
        counts = self._measurements.counts
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
        )

    def _receive(self) -> None:
        while self._arrivals and self._arrivals[0].at <= self.now_s:
            self._received += 1
            self._waiting.append(Request(str(self._received), self._arrivals.popleft()))

    def _step(self) -> None:
        self._plan()
        try:
            self._compute()
        finally:
            self._limits_of_last_step = self._limits
            self.restore()

    def _plan(self) -> None:
        policy = self._policy
        if policy is None or policy.mode is Mode.OFF:
            return
        plan = plan_step(self.observe(), lambda: False)
        if policy.mode is Mode.ACT:
            self.apply(plan)
        else:
            self.pass_over()

    def _compute(self) -> None:
        step = self._batch.fill(self._limits, self._waiting)
        began_s = self.now_s
        self.now_s += self._step_time.seconds(step.tokens, len(step.chunks), step.context_tokens)
        self._measurements.stepped(began_s, self.now_s, step)
        for request in self._batch.finish(step):
            self._tell(request)

    def _tell(self, request: Request) -> None:
        if request.first_token_at is None:
            request.first_token_at = self.now_s
            self._measurements.first_token(request, self._class_of(request), self.now_s)
        if request.is_finished:
            self._measurements.ended(request, self._class_of(request), self.now_s)

    @property
    def _limited(self) -> list[TrafficClass]:
        """Classes with a limit, in the policy's order."""
        if self._policy is None or self._policy.mode is not Mode.ACT:
            return []
        return [each for each in self._policy.classes if each.max_running is not None]

    def _room(self, limited: TrafficClass) -> int:
        running = sum(each.arrival.class_name == limited.name for each in self._batch.running)
        return (limited.max_running or 0) - running

    def _class_of(self, request: Request) -> TrafficClass | None:
        name = request.arrival.class_name
        default = self._policy.default_class if self._policy is not None else None
        return self._classes.get(name) or self._classes.get(default or "")
