"""A pod: a simulated engine that loads, takes requests, and drains."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from headway_runtime.bench.simulated import BATCH_SIZE, KV_BLOCKS, TOKEN_BUDGET
from headway_runtime.executors.simulated.engine import SimulatedEngine
from headway_runtime.executors.simulated.kv_blocks import KvBlocks
from headway_runtime.executors.simulated.measurements import attained
from headway_runtime.executors.simulated.pipeline import Launched
from headway_runtime.executors.simulated.report import Report
from headway_runtime.executors.simulated.request import Arrival, Request
from headway_runtime.policy import Mode, Policy, Scope, Stamp
from headway_runtime.scheduling.admission.refusal import Refusal
from headway_runtime.scheduling.timing.step_time_model import StepTimeModel
from headway_runtime.scheduling.timing.token_load import TokenLoad
from headway_runtime.scheduling.view import Limits
from tests.autoscale.cases import Case


@dataclass(frozen=True)
class Answered:
    """A request that has its last token.

    Attributes:
        ttft_s: time to its first token, in seconds.
        attained: it met its objectives.
    """

    ttft_s: float
    attained: bool


@dataclass(frozen=True)
class Told:
    """What a pod tells of itself.

    Attributes:
        report: what its engine does.
        token_load: engine-seconds of work a second.
        step_overhead: share of a step that is no work.
    """

    report: Report
    token_load: float
    step_overhead: float


class Pod:
    """One pod of the service; its engine's steps are planned by Headway.

    Attributes:
        name: unique.
        begun_s: when it was made.
        ready_s: when it can take requests.
        draining: it gets no more of them and goes when the last one has ended.
        answered: requests that ended in it.
        open: requests in it.
        ended_s: when the last one ended.
    """

    def __init__(self, name: str, case: Case, begun_s: float, ready_s: float, seed: int) -> None:
        self.name, self.begun_s, self.ready_s = name, begun_s, ready_s
        self.draining = False
        self.answered: list[Answered] = []
        self.open = 0
        self.ended_s = ready_s
        self._promised = case.traffic_class
        self._model = StepTimeModel()
        self._engine = SimulatedEngine(
            Limits(TOKEN_BUDGET, BATCH_SIZE),
            KvBlocks(KV_BLOCKS),
            case.timing(Random(seed)),  # noqa: S311 - no secret
            model=self._model,
        )
        self._engine.run(ready_s)
        self._engine.recorder = self
        policy = Policy(
            Scope("autoscale"), Stamp(1, 0, 0), mode=Mode.ACT, classes=(case.traffic_class,)
        )
        self._engine.adopt(policy)
        # The engine's own began with the simulation, not when the pod was ready.
        self._load = TokenLoad(ready_s)
        self._load.adopt(policy)

    def send(self, arrival: Arrival) -> None:
        """A request comes."""
        self.open += 1
        self._engine.send(arrival)

    def run(self, until_s: float) -> None:
        """Run until that time; a pod that drains until its last request has ended."""
        if until_s > self.ready_s:
            self._engine.run(until_s)

    def tell(self, now_s: float) -> Told:
        """What its metrics say."""
        report = self._engine.report()
        work = self._load.work_ratio(now_s, self._model, report.waiting)
        return Told(report, work, self._load.overhead_ratio(self._model))

    def received(self, request: Request) -> None:
        """A request was let in."""
        arrival = request.arrival
        self._load.arrived(request.request_id, arrival.prompt_tokens, arrival.at)

    def refused(self, arrival: Arrival, number: int, refusal: Refusal) -> None:
        """Nobody is refused: there is no door."""

    def launched(self, launched: Launched, waiting: int) -> None:  # noqa: ARG002 - asked for when it is told
        """A step was launched."""
        step = launched.step
        self._load.stepped(step.decodes, step.decode_context, launched.scheduled_s)

    def token(self, request: Request, now_s: float) -> None:
        """A request got a token."""
        if not request.is_finished:
            return
        self.open -= 1
        self.ended_s = now_s
        self._load.ended(request.request_id, request.produced)
        first_s = now_s if request.first_token_at is None else request.first_token_at
        ttft_s = first_s - request.arrival.at
        self.answered.append(Answered(ttft_s, attained(request, self._promised, now_s)))
