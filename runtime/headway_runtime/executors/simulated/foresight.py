"""What the planner is told of the work in hand: when the GPU is free, which tokens are due."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from headway_runtime.executors.simulated.request import Request
from headway_runtime.executors.simulated.step import Step
from headway_runtime.policy import TrafficClass
from headway_runtime.scheduling.timing.decode_clock import DecodeClocks
from headway_runtime.scheduling.timing.engine_clock import EngineClock
from headway_runtime.scheduling.timing.pace import aimed_tpot_s
from headway_runtime.scheduling.timing.step_time_model import StepTimeModel
from headway_runtime.scheduling.timing.token_load import LoadRatios, TokenLoad
from headway_runtime.scheduling.view import Carried, Prefill, Work

ClassOf = Callable[[Request], TrafficClass | None]


class Foresight:
    """Times steps as an engine's scheduler could, and knows no more than it.

    Args:
        class_of: tells a request's class.
        step_time: learns from the steps.
        graph_tokens: largest step that runs as a CUDA graph.
        schedules_ahead: the next step is launched while one runs.

    Attributes:
        carried: what the plan of the step before left for the next one.
        clock: times the steps.
        load: keeps account of what is offered.
    """

    def __init__(
        self,
        class_of: ClassOf,
        step_time: StepTimeModel,
        graph_tokens: int,
        *,
        schedules_ahead: bool = True,
    ) -> None:
        self.carried = Carried()
        self.clock = EngineClock(step_time, graph_tokens, schedules_ahead=schedules_ahead)
        self.load = TokenLoad(0.0)
        self._class_of = class_of
        self._decoding = DecodeClocks()
        self._expected_s: dict[str, float] = {}
        self._of_programs: set[str] = set()

    def scheduled(self, step: Step, now_s: float) -> None:
        """A step was decided."""
        for request in step.preempted:
            self._decoding.leave(request.request_id)
            self._of_programs.discard(request.request_id)
        if not step.tokens:
            return
        shape = step.shape
        self.clock.decided(now_s, shape)
        for request, tokens in step.chunks:
            self.load.admitted(request.request_id, request.computed - tokens)
        self.load.stepped(shape.decodes, shape.decode_context, now_s)
        ids = {request.request_id for request, _ in step.chunks}
        decoding = sum(each in self._decoding for each in ids)
        self._decoding.stepped(None if decoding == len(self._decoding) else ids)
        self._follow(step.sampled, self.clock.free_s(now_s))

    def launched(self, now_s: float) -> None:
        """The launch of the step decided last is over."""
        self.clock.launched(now_s)

    def looked_at(self, sampled: Iterable[Request], now_s: float) -> None:
        """The output of the oldest step is there; these requests got a token by it."""
        self.clock.looked_at(now_s)
        for request in sampled:
            expected_s = self._expected_s.pop(request.request_id, None)
            if expected_s is not None:
                self._decoding.move(request.request_id, now_s - expected_s)
            if request.is_finished:
                self.load.ended(request.request_id, request.produced)

    def ratios(self, now_s: float, waiting: int) -> LoadRatios | None:
        """What is offered to the engine, of which so many requests wait."""
        return self.load.ratios(now_s, self.clock.step_time, waiting)

    def rejoin(self, running: Iterable[Request], now_s: float) -> None:
        """Classes have changed: follow these requests anew."""
        self._decoding = DecodeClocks()
        self._of_programs.clear()
        self._follow((each for each in running if each.decodes), self.clock.free_s(now_s))

    def work(
        self,
        running: Iterable[Request],
        now_s: float,
        tightest_ttft_s: float | None,
        kv_usage: float,
    ) -> Work:
        """What is in hand before a step."""
        free_s = self.clock.free_s(now_s)
        return Work(
            now_s=now_s,
            free_s=free_s,
            step_time=self.clock.step_time,
            decodes=len(self._decoding),
            decode_context=self._decoding.context_tokens,
            program_decodes=len(self._of_programs),
            due=self._decoding.due(free_s),
            prefills=tuple(self._prefill(each) for each in running if self._has_prefill(each)),
            tightest_ttft_s=tightest_ttft_s,
            kv_usage=kv_usage,
            graph_tokens=self.clock.graph_tokens,
            decode_launch_s=self.clock.decode_launch_s,
            graph_launch_s=self.clock.graph_launch_s,
            eager_launch_s=self.clock.eager_launch_s,
            arrivals_per_s=self.load.arrivals_per_s(now_s),
            answer_s=self.load.answer_seconds(self.clock.step_time),
            carried=self.carried,
        )

    def _follow(self, sampled: Iterable[Request], free_s: float) -> None:
        for request in sampled:
            name = request.request_id
            if not request.remaining:
                self._decoding.leave(name)
                self._of_programs.discard(name)
            elif name not in self._decoding:
                first_s = request.first_token_at
                if first_s is None:
                    first_s = self._expected_s[name] = free_s
                tpot_s = aimed_tpot_s(self._class_of(request), is_late=request.late)
                if tpot_s is None and request.standing.program_due_s is not None:
                    self._of_programs.add(name)
                self._decoding.join(
                    name,
                    tpot_s,
                    first_s,
                    tokens=request.produced + request.under_way,
                    context=request.computed,
                )

    def _has_prefill(self, request: Request) -> bool:
        return bool(request.remaining) and request.request_id not in self._decoding

    def _prefill(self, request: Request) -> Prefill:
        promised = self._class_of(request)
        return Prefill(
            request.request_id,
            request.computed,
            request.remaining,
            request.arrival.at,
            promised,
            is_late=request.late,
            tenant=request.standing.tenant,
            due_s=request.standing.due_s(promised),
            has_answered=request.produced > 0,
        )
