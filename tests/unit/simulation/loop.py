"""Simulated engines, retuned every 5 s of their time as the operator does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from random import Random

from headway_operator.decide.retune import (
    Bounds,
    Change,
    ClassTargets,
    limit_background,
    retune,
)
from headway_operator.observe.engine_metrics.sample import (
    HISTORY_SECONDS,
    ClassSample,
    EngineSample,
    History,
    ServiceMetrics,
    Source,
)
from headway_operator.observe.tuning import OperatingPoint, Tuning
from headway_runtime.executors.simulated.engine import Report, SimulatedEngine
from headway_runtime.executors.simulated.kv_blocks import KvBlocks
from headway_runtime.executors.simulated.step_time import StepTime
from headway_runtime.executors.simulated.traffic import Traffic, mixed
from headway_runtime.policy import Policy, Scope, Stamp, TrafficClass
from headway_runtime.scheduling.view import Limits

TICK_SECONDS = 5.0


@dataclass(frozen=True)
class Tick:
    """One tick of the loop: what the pods told, and what came of it."""

    reports: tuple[Report, ...]
    point: OperatingPoint
    changes: tuple[Change, ...]


@dataclass
class Service:
    """Engines of one service and the loop around them.

    Without ``retuned`` the point it starts with stays: a hand-tuned service.
    """

    classes: tuple[TrafficClass, ...]
    random: Random
    engines: int = 1
    ceilings: Limits = Limits(8192, 256)
    kv_blocks: int = 40_000
    step_time: StepTime = field(default_factory=StepTime)
    retuned: bool = True
    tuning: Tuning = field(default_factory=Tuning)
    ticks: list[Tick] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._pods = [
            SimulatedEngine(self.ceilings, KvBlocks(self.kv_blocks), self.step_time)
            for _ in range(self.engines)
        ]
        self._histories: dict[str, History] = {}
        self._bounds = Bounds(self.ceilings.token_budget, self.ceilings.max_batch_size)
        self._adopt()

    def run(self, seconds: float, *traffic: Traffic) -> Sequence[Tick]:
        """Let this traffic come for so long. Returns the ticks of that time."""
        first, begin = len(self.ticks), len(self.ticks) * TICK_SECONDS
        for number, arrival in enumerate(mixed(traffic, self.random, begin, begin + seconds)):
            self._pods[number % len(self._pods)].send(arrival)
        for _ in range(round(seconds / TICK_SECONDS)):
            self._tick()
        return self.ticks[first:]

    def _tick(self) -> None:
        now = (len(self.ticks) + 1) * TICK_SECONDS
        for pod in self._pods:
            pod.run(now)
        reports = tuple(pod.report() for pod in self._pods)
        for number, report in enumerate(reports):
            uid = f"pod-{number}"
            kept = self._histories.get(uid, ())
            self._histories[uid] = (
                *(each for each in kept if each.at > report.at - HISTORY_SECONDS),
                _sample(report),
            )
        changes: tuple[Change, ...] = ()
        if self.retuned:
            metrics = ServiceMetrics(len(self.ticks) + 1, dict(self._histories), Source.PROMETHEUS)
            targets = [
                ClassTargets(each.name, each.ttft_ms, each.tpot_ms, each.deadline_s)
                for each in self.classes
            ]
            self.tuning, changes = (lambda done: (done.tuning, done.changes))(
                retune(self.tuning, metrics, targets, self._bounds)
            )
            if changes:
                self._adopt()
        self.ticks.append(Tick(reports, self.tuning.point, changes))

    def _adopt(self) -> None:
        point = self.tuning.point
        policy = Policy(
            scope=Scope("service"),
            stamp=Stamp(1, 1, len(self.ticks)),
            token_budget=point.token_budget,
            max_batch_size=point.max_batch_size,
            classes=limit_background(self.classes, point.background_limit),
        )
        for pod in self._pods:
            pod.adopt(policy)


def _sample(report: Report) -> EngineSample:
    values = asdict(report)
    classes = {name: ClassSample(**told) for name, told in values.pop("classes").items()}
    return EngineSample(**values, classes=classes)


def attainment(before: Tick, after: Tick, class_name: str) -> float:
    """Share of a class's requests that ended between two ticks and met their objectives."""
    requests = attained = 0
    for earlier, later in zip(before.reports, after.reports, strict=True):
        requests += later.classes[class_name].requests_total
        requests -= earlier.classes[class_name].requests_total
        attained += later.classes[class_name].attained_total
        attained -= earlier.classes[class_name].attained_total
    return attained / requests if requests else float("nan")


def reversals(values: Sequence[int]) -> int:
    """How often a series of values changes its direction."""
    moves = [after - before for before, after in zip(values, values[1:]) if after != before]
    return sum(1 for one, next_one in zip(moves, moves[1:]) if (one > 0) != (next_one > 0))
