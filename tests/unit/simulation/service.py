"""A service of simulated engines, retuned every 5 s of their time as the operator does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from itertools import pairwise
from random import Random

from headway_operator.decide.retune import (
    Bounds,
    Change,
    ClassTargets,
    What,
    limit_background,
    retune,
)
from headway_operator.memory.tuning import OperatingPoint, Tuning
from headway_operator.observe.engine_metrics.sample import (
    HISTORY_SECONDS,
    ClassSample,
    EngineSample,
    History,
    ServiceMetrics,
    Source,
)
from headway_runtime.executors.simulated.engine import SimulatedEngine
from headway_runtime.executors.simulated.kv_blocks import KvBlocks
from headway_runtime.executors.simulated.report import Report
from headway_runtime.executors.simulated.step_time import StepTime
from headway_runtime.executors.simulated.traffic import Traffic, mixed
from headway_runtime.policy import Policy, Scope, Stamp, TrafficClass
from headway_runtime.scheduling.view import Limits

TICK_SECONDS = 5


@dataclass(frozen=True)
class Tick:
    """What the pods told in one tick, and what came of it."""

    reports: tuple[Report, ...]
    point: OperatingPoint
    changes: tuple[Change, ...]

    def total(self, class_name: str, counter: str) -> int:
        """A counter of a class, summed over the pods."""
        return sum(getattr(each.classes[class_name], counter) for each in self.reports)

    @property
    def preemptions(self) -> int:
        """Preemptions so far."""
        return sum(each.preemptions_total for each in self.reports)


@dataclass
class Service:
    """Engines of one service and the loop around them; without ``loop`` its point stays."""

    classes: tuple[TrafficClass, ...]
    seed: int = 1
    loop: bool = True
    engines: int = 1
    ceilings: Limits = field(default_factory=lambda: Limits(8192, 256))
    kv_blocks: int = 40_000
    step_time: StepTime = field(default_factory=StepTime)
    point: OperatingPoint = field(default_factory=OperatingPoint)

    def __post_init__(self) -> None:
        self._random = Random(self.seed)  # noqa: S311 - no secret
        self._pods = [
            SimulatedEngine(self.ceilings, KvBlocks(self.kv_blocks), self.step_time)
            for _ in range(self.engines)
        ]
        self._bounds = Bounds(self.ceilings.token_budget, self.ceilings.max_batch_size)
        self._histories: dict[str, History] = {}
        self._tuning = Tuning(self.point)
        self._ticks = 0
        self._publish()

    def run(self, seconds: int, *traffic: Traffic) -> Sequence[Tick]:
        """Let this traffic come for so long. Returns the ticks of that time."""
        begin = self._ticks * TICK_SECONDS
        for number, arrival in enumerate(mixed(traffic, self._random, begin, begin + seconds)):
            self._pods[number % self.engines].send(arrival)
        return [self._tick() for _ in range(seconds // TICK_SECONDS)]

    def _tick(self) -> Tick:
        self._ticks += 1
        for pod in self._pods:
            pod.run(self._ticks * TICK_SECONDS)
        reports = tuple(pod.report() for pod in self._pods)
        self._remember(reports)
        changes: tuple[Change, ...] = ()
        if self.loop:
            seen = ServiceMetrics(
                collection=self._ticks, pods=dict(self._histories), source=Source.PROMETHEUS
            )
            retuned = retune(self._tuning, seen, self._targets(), self._bounds)
            self._tuning, changes = retuned.tuning, retuned.changes
            self._publish()
        return Tick(reports, self._tuning.point, changes)

    def _remember(self, reports: Sequence[Report]) -> None:
        for number, report in enumerate(reports):
            before = self._histories.get(f"pod-{number}", ())
            kept = tuple(each for each in before if each.at > report.at - HISTORY_SECONDS)
            self._histories[f"pod-{number}"] = (*kept, _sample(report))

    def _targets(self) -> list[ClassTargets]:
        return [
            ClassTargets(each.name, each.ttft_ms, each.tpot_ms, each.deadline_s)
            for each in self.classes
        ]

    def _publish(self) -> None:
        point = self._tuning.point
        policy = Policy(
            scope=Scope("service"),
            stamp=Stamp(1, 1, self._ticks),
            token_budget=point.token_budget,
            max_batch_size=point.max_batch_size,
            theta_ppm=point.theta_ppm,
            classes=limit_background(self.classes, point.background_limit),
        )
        for pod in self._pods:
            pod.adopt(policy)


def _sample(report: Report) -> EngineSample:
    values = asdict(report)
    classes = {name: ClassSample(**told) for name, told in values.pop("classes").items()}
    # Engines tell more than these decisions are made from.
    known = {each.name for each in fields(EngineSample)}
    return EngineSample(**{k: v for k, v in values.items() if k in known}, classes=classes)


def attainment(ticks: Sequence[Tick], class_name: str) -> float:
    """Share of a class's requests inside their objectives, of those that ended in these ticks."""
    first, last = ticks[0], ticks[-1]
    ended = last.total(class_name, "requests_total") - first.total(class_name, "requests_total")
    kept = last.total(class_name, "attained_total") - first.total(class_name, "attained_total")
    return kept / ended


def throughput(ticks: Sequence[Tick], class_name: str) -> float:
    """Requests of a class that ended, a second."""
    first, last = ticks[0], ticks[-1]
    ended = last.total(class_name, "requests_total") - first.total(class_name, "requests_total")
    return ended / (TICK_SECONDS * (len(ticks) - 1))


def values(ticks: Sequence[Tick], what: What, cap: int) -> list[int]:
    """A limit in each tick, the cap as a number."""
    names = {
        What.TOKEN_BUDGET: "token_budget",
        What.MAX_BATCH: "max_batch_size",
        What.CLASS_LIMIT: "background_limit",
        What.THETA: "theta_ppm",
    }
    return [getattr(tick.point, names[what]) or cap for tick in ticks]


def reversals(series: Sequence[int]) -> int:
    """How often a series changes its direction."""
    moves = [after - before for before, after in pairwise(series) if after != before]
    return sum((one > 0) != (following > 0) for one, following in pairwise(moves))


def ticks_to_settle(series: Sequence[int], within: float) -> int:
    """Ticks after which a series stays near its last value."""
    last = series[-1]
    return max(
        (number + 1 for number, each in enumerate(series) if abs(each - last) > within * last),
        default=0,
    )
