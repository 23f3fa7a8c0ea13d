"""What a pod's sidecar would tell of an engine."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from headway_runtime.executors.simulated.report import ClassReport
from headway_runtime.executors.simulated.request import Request
from headway_runtime.executors.simulated.step import Step
from headway_runtime.policy import TrafficClass

WINDOW_SECONDS = 15.0
"""Length of one window of latencies; the current one and the one before are told together."""

BUSY_SECONDS = 10.0
"""The busy share of steps is that of so many last seconds."""

IDLE_SECONDS = 2.0
"""Without a step in this time an engine is idle."""

QUANTILE = 0.95


@dataclass(frozen=True)
class StepCounts:
    """Counters of steps since the start.

    Attributes:
        steps: engine steps.
        scheduled_tokens: tokens they processed.
        step_seconds: time they took.
        preemptions: running requests that lost their KV blocks.
    """

    steps: int = 0
    scheduled_tokens: int = 0
    step_seconds: float = 0.0
    preemptions: int = 0


class Windows:
    """Ratios of measured to promised, as of the current window and the one before."""

    def __init__(self) -> None:
        self._current: list[float] = []
        self._previous: list[float] = []
        self._number = 0

    def add(self, at: float, ratio: float) -> None:
        """Count one measurement."""
        self._turn(at)
        self._current.append(ratio)

    def quantile(self, at: float) -> float | None:
        """The 95th percentile, None without measurements."""
        self._turn(at)
        found = sorted(self._previous + self._current)
        return found[min(len(found) - 1, int(QUANTILE * len(found)))] if found else None

    def _turn(self, at: float) -> None:
        number = int(at / WINDOW_SECONDS)
        if number > self._number:
            self._previous = self._current if number == self._number + 1 else []
            self._current = []
            self._number = number


@dataclass
class _ClassMeasurements:
    requests_total: int = 0
    attained_total: int = 0
    ttft: Windows = field(default_factory=Windows)
    tpot: Windows = field(default_factory=Windows)

    def report(self, at: float) -> ClassReport:
        return ClassReport(
            self.requests_total,
            self.attained_total,
            self.ttft.quantile(at),
            self.tpot.quantile(at),
        )


class Measurements:
    """Keeps account of steps and of requests by class."""

    def __init__(self) -> None:
        self.counts = StepCounts()
        self._spans: deque[tuple[float, float]] = deque()
        self._classes: dict[str, _ClassMeasurements] = {}

    def declare(self, classes: Iterable[str]) -> None:
        """Tell of these classes from now on; those that are gone are forgotten."""
        kept = self._classes
        self._classes = {name: kept.get(name, _ClassMeasurements()) for name in classes}

    def preempted(self, requests: int) -> None:
        """So many running requests lost their KV blocks."""
        self.counts = replace(self.counts, preemptions=self.counts.preemptions + requests)

    def stepped(self, began: float, ended: float, step: Step) -> None:
        """A step ended."""
        counts = self.counts
        self.counts = StepCounts(
            counts.steps + 1,
            counts.scheduled_tokens + step.tokens,
            counts.step_seconds + ended - began,
            counts.preemptions,
        )
        self._spans.append((began, ended))
        while self._spans[0][1] < ended - BUSY_SECONDS:
            self._spans.popleft()

    def first_token(self, request: Request, traffic_class: TrafficClass | None, at: float) -> None:
        """A request got its first token."""
        if traffic_class is not None and traffic_class.ttft_ms is not None:
            ratio = _ttft_ms(request, at) / traffic_class.ttft_ms
            self._classes[traffic_class.name].ttft.add(at, ratio)

    def ended(self, request: Request, traffic_class: TrafficClass | None, at: float) -> None:
        """A request got its last token."""
        if traffic_class is None:
            return
        measured = self._classes[traffic_class.name]
        tpot_ms = _tpot_ms(request, at)
        if tpot_ms is not None and traffic_class.tpot_ms is not None:
            measured.tpot.add(at, tpot_ms / traffic_class.tpot_ms)
        measured.requests_total += 1
        measured.attained_total += attained(request, traffic_class, at)

    def utilisation(self, at: float) -> float:
        """Busy share of the last seconds, 0 to 1."""
        if not self._spans or self._spans[-1][1] < at - IDLE_SECONDS:
            return 0.0
        since = at - BUSY_SECONDS
        busy = sum(min(end, at) - max(begin, since) for begin, end in self._spans if end > since)
        return min(1.0, busy / min(BUSY_SECONDS, max(at, 1e-9)))

    def classes(self, at: float) -> Mapping[str, ClassReport]:
        """Every declared class."""
        return {name: measured.report(at) for name, measured in self._classes.items()}


def attained(request: Request, traffic_class: TrafficClass, at: float) -> bool:
    """Whether a request that ended now met every objective of its class."""
    tpot_ms = _tpot_ms(request, at)
    first = request.first_token_at
    objectives = (
        (traffic_class.ttft_ms, None if first is None else _ttft_ms(request, first)),
        (traffic_class.tpot_ms, tpot_ms),
        (traffic_class.deadline_s, at - request.arrival.at),
    )
    return all(
        promised is None or measured is None or measured <= promised
        for promised, measured in objectives
    )


def _ttft_ms(request: Request, first_token_at: float) -> float:
    return (first_token_at - request.arrival.at) * 1000


def _tpot_ms(request: Request, last_token_at: float) -> float | None:
    if request.produced <= 1 or request.first_token_at is None:
        return None
    return (last_token_at - request.first_token_at) * 1000 / (request.produced - 1)
