"""The simulated engine as plans drive it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headway_runtime.executors.simulated.batch import Batch
from headway_runtime.executors.simulated.foresight import Foresight
from headway_runtime.executors.simulated.kv_blocks import KvBlocks
from headway_runtime.executors.simulated.measurements import Measurements
from headway_runtime.executors.simulated.options import EngineOptions
from headway_runtime.executors.simulated.request import Request
from headway_runtime.executors.simulated.step import Step
from headway_runtime.executors.simulated.step_time import Timing
from headway_runtime.executors.simulated.waiting_queue import WaitingQueue
from headway_runtime.policy import Mode, Policy, TrafficClass
from headway_runtime.scheduling.admission.refusal import Board
from headway_runtime.scheduling.admission.waits import Queued, board
from headway_runtime.scheduling.order import is_background, urgency_of
from headway_runtime.scheduling.plan import StepPlan
from headway_runtime.scheduling.programs.priority import weighted_tokens
from headway_runtime.scheduling.tenants.tenancy import Served
from headway_runtime.scheduling.timing.pace import has_pace, tightest_ttft_s
from headway_runtime.scheduling.timing.step_time_model import StepTimeModel
from headway_runtime.scheduling.timing.token_load import LoadRatios
from headway_runtime.scheduling.view import Lane, Limits, StepView, Work


class SimulatedExecutor:
    """What waits and what runs, under limits that hold for one step.

    Implements :class:`headway_runtime.executors.interface.Executor`.

    Args:
        ceilings: limits it is started with.
        blocks: KV blocks it has.
        options: how it schedules by itself.
        timing: how long its steps take, of which the planner is told only what an engine knows.
        model: what it knows of the length of its steps.
    """

    def __init__(
        self,
        ceilings: Limits,
        blocks: KvBlocks,
        options: EngineOptions,
        timing: Timing,
        model: StepTimeModel | None,
    ) -> None:
        self.now_s = 0.0
        self._ceilings = ceilings
        self._limits = ceilings
        self._caps: Mapping[str, int] = {}
        self._is_to_admit = False
        self._ran: set[str] = set()
        self._options = options
        self._policy: Policy | None = None
        self._classes: dict[str, TrafficClass] = {}
        self._waiting = WaitingQueue(self._class_of, options.priorities, blocks.block_tokens)
        self._blocks = blocks
        self._batch = Batch(blocks, options)
        self._measurements = Measurements()
        self._foresight: Foresight | None = None
        if timing.graph_tokens is not None:
            self._foresight = Foresight(
                self._class_of,
                model or StepTimeModel(),
                timing.graph_tokens,
                schedules_ahead=timing.steps_under_way > 1,
            )

    @property
    def ceilings(self) -> Limits:
        """Limits the engine was started with."""
        return self._ceilings

    def adopt(self, policy: Policy | None) -> None:
        """Follow another policy from the next step on.

        Raises:
            ValueError: plans cannot be carried out where priorities decide.
        """
        if policy and policy.mode is Mode.ACT and self._options.priorities is not None:
            raise ValueError("plans need an engine that keeps the order of arrival")
        before = (self._classes, self._limited)
        self._policy = policy
        self._classes = {each.name: each for each in policy.classes} if policy else {}
        self._measurements.declare(self._classes)
        self._waiting.adopt(policy)
        if self._foresight is not None:
            self._foresight.load.adopt(policy)
        if (self._classes, self._limited) != before:
            self._waiting.unsettle(len(self._limited))
            if self._foresight is not None:
                self._foresight.rejoin(self._batch.running, self.now_s)

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
                Lane(each.name, self._room(each), waiting, has_ttft=each.ttft_ms is not None)
                for each, waiting in zip(self._limited, self._waiting.lanes, strict=True)
            ),
            front=self._waiting.front,
            work=self._work(),
            tenants=self._waiting.tenancy.view(self.now_s, self._waiting.seen),
        )

    def _work(self) -> Work | None:
        if self._foresight is None:
            return None
        return self._foresight.work(
            self._batch.running,
            self.now_s,
            tightest_ttft_s(self._classes.values()),
            self._blocks.usage,
        )

    def apply(self, plan: StepPlan) -> None:
        """Put the plan in force for one step."""
        self._waiting.settle(plan.placements)
        self._waiting.take_turns(plan.turns)
        self._waiting.give_way(plan.late)
        self._batch.give_up(plan.late_prefills)
        self._waiting.in_turn(plan.in_turn)
        self._waiting.first = plan.first
        self._limits = plan.limits
        self._caps = plan.chunks
        if plan.background_last:
            self._batch.put_last(lambda each: not has_pace(self._class_of(each)))
        if self._foresight is not None:
            if plan.carried is not None:
                self._foresight.carried = plan.carried
            self._is_to_admit = plan.admits
            self._ran = {each.request_id for each in self._batch.running}

    def pass_over(self) -> None:
        """The step was planned but the engine decides it alone."""
        self._waiting.settle(())

    def limit_prompts(self, prompt_tokens: int) -> Limits:
        """Leave one step to the engine, with so many tokens beside those of decodes."""
        decode_tokens = len(self._batch.running)
        budget = min(self._ceilings.token_budget, decode_tokens + prompt_tokens)
        self._limits = Limits(budget, self._ceilings.max_batch_size)
        return self._limits

    def restore(self) -> None:
        """Take back every limit."""
        self._limits = self._ceilings
        self._caps = {}
        self._waiting.first = None

    def added(self, request: Request) -> None:
        """A request was put at the end of the waiting queue, which knows that by itself."""
        if self._foresight is not None:
            prompt_tokens = request.arrival.prompt_tokens
            self._foresight.load.arrived(request.request_id, prompt_tokens, self.now_s)

    def scheduled(self, output: Step, decided_s: float) -> None:
        """A step was decided at this time."""
        self._charge(output, decided_s)
        if self._policy is not None and self._policy.mode is Mode.ACT:
            self._waiting.put_in_order(output.preempted)
        if self._foresight is not None:
            self._foresight.scheduled(output, decided_s)
            admitted = any(each.request_id not in self._ran for each, _ in output.chunks)
            if self._is_to_admit and not admitted:
                self._foresight.carried = self._foresight.carried.after_a_refusal
            self._is_to_admit = False

    def _charge(self, step: Step, decided_s: float) -> None:
        """Who is in a step was served."""
        for request, tokens in step.chunks:
            before = request.computed - tokens
            prompt = max(0, min(tokens, request.arrival.prompt_tokens - before))
            promised = self._class_of(request)
            background = is_background(promised, is_late=request.late)
            served = Served(prompt, tokens - prompt, is_background=background)
            self._waiting.tenancy.served(request.standing.tenant, promised, served)
            weighted = weighted_tokens(prompt, tokens - prompt)
            self._waiting.programs.served(request.request_id, weighted, decided_s)

    def launched(self, at_s: float) -> None:
        """The launch of the step decided last is over."""
        if self._foresight is not None:
            self._foresight.launched(at_s)

    def looked_at(self, output: Step, at_s: float) -> None:
        """The output of this step is there."""
        done = [each.request_id for each in output.sampled if each.is_finished]
        self._waiting.programs.ended(done, at_s)
        self._waiting.tenancy.turnover.count(len(done))
        if self._foresight is not None:
            self._foresight.looked_at(output.sampled, at_s)

    def ended(self, request_ids: Iterable[str]) -> None:
        """Requests are gone, which the batch knows by itself."""

    def left(self, request_ids: Iterable[str]) -> None:
        """Requests wait no more, which the waiting queue knows by itself."""

    def load_ratios(self) -> LoadRatios | None:
        """What is offered to it; None where steps have no length."""
        if self._foresight is None:
            return None
        return self._foresight.ratios(self.now_s, len(self._waiting))

    def board(self) -> Board | None:
        """What those who let requests in are to know; None where steps have no length."""
        work, policy = self._work(), self._policy
        if work is None or policy is None:
            return None
        queue = self._waiting
        waiting = sorted((*queue.front, *queue.unsettled), key=urgency_of)
        tenancy = queue.tenancy
        queued = Queued(
            waiting,
            tenancy.waiting_by_class,
            tenancy.drain.per_s,
            self._ceilings.max_batch_size - len(self._batch.running),
            tenancy.turnover.per_s,
        )
        tenants = tenancy.view(self.now_s, queue.seen)
        return board(work, queued, policy.classes, tenants)

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
