"""Who decides on the number of pods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Protocol

from headway_operator.decide.scaling import decide_scaling
from headway_operator.memory.scaling import Scaling
from headway_operator.observe.engine_metrics.sample import (
    HISTORY_SECONDS,
    ClassSample,
    EngineSample,
    History,
    ServiceMetrics,
    Source,
)
from headway_operator.observe.records import PodRecord
from headway_runtime.executors.simulated.report import ClassReport
from tests.autoscale import hpa
from tests.autoscale.cases import CLASS_NAME, Case
from tests.autoscale.fleet import Fleet
from tests.autoscale.pod import Told
from tests.unit.operator.samples import NOW, later, ready_pod, service, snapshot, spec

LEAST_PODS = 1

_OTHERS = {"at", "classes", "token_load", "step_overhead", "planning"}
_SAME = [each.name for each in fields(EngineSample) if each.name not in _OTHERS]
"""What a report and a sample of it call the same."""

TICK_SECONDS = 5.0


class Scaler(Protocol):
    """Is asked every tick for the number of pods."""

    def replicas(self, fleet: Fleet) -> int:
        """Pods that there are to be from now on."""
        ...


@dataclass(frozen=True)
class Planned:
    """A number for each tick, known before; the last one holds on."""

    pods: Sequence[int]

    def replicas(self, fleet: Fleet) -> int:
        """Pods that there are to be from now on."""
        return self.pods[min(int(fleet.now_s / TICK_SECONDS), len(self.pods) - 1)]


Metric = Callable[[Told], float]


class Hpa:
    """A HorizontalPodAutoscaler on one metric of pods, which it sees without delay."""

    def __init__(self, metric: Metric, target: float, most_pods: int) -> None:
        self._metric, self._target = metric, target
        self._bounds = LEAST_PODS, most_pods
        self._memory = hpa.Memory()

    def replicas(self, fleet: Fleet) -> int:
        """Pods that there are to be from now on."""
        replicas = len(fleet.pods)
        if fleet.now_s % hpa.SYNC_SECONDS:
            return replicas
        ready = fleet.ready
        values = [self._metric(each.tell(fleet.now_s)) for each in ready]
        found = hpa.recommended(replicas, values, replicas - len(ready), self._target)
        wanted, self._memory = hpa.stabilized(
            self._memory, fleet.now_s, replicas, found, self._bounds
        )
        return wanted


class Headway:
    """The operator's decision with its defaults."""

    def __init__(self, case: Case, replicas: int) -> None:
        bounds = {"minReplicas": LEAST_PODS, "maxReplicas": case.most_pods}
        promised = {
            "name": CLASS_NAME,
            "ttftMilliseconds": case.ttft_ms,
            "tpotMilliseconds": case.tpot_ms,
        }
        declared = spec(scaling={"mode": "Operator", **bounds}, classes=[promised])
        self._before = snapshot(service(declared))
        self._histories: dict[str, History] = {}
        self._collections = 0
        self._record = ready_pod()
        epoch = self._before.operator.epoch
        self._scaling: Scaling | None = Scaling(replicas, since=NOW.unix, epoch=epoch)

    def replicas(self, fleet: Fleet) -> int:
        """Pods that there are to be from now on."""
        self._collections += 1
        now = later(fleet.now_s)
        self._histories = {
            each.name: self._history(each.name, _sample(each.tell(fleet.now_s), now.unix))
            for each in fleet.ready
        }
        metrics = ServiceMetrics(self._collections, dict(self._histories), Source.PROMETHEUS)
        seen = replace(self._before, pods=self._pods(fleet), metrics=metrics, scaling=self._scaling)
        assert seen.spec is not None
        scaled = decide_scaling(seen, seen.spec, now)
        self._scaling = scaled.memory
        return scaled.replicas

    def _history(self, name: str, sample: EngineSample) -> History:
        before = self._histories.get(name, ())
        return (*(each for each in before if each.at > sample.at - HISTORY_SECONDS), sample)

    def _pods(self, fleet: Fleet) -> tuple[PodRecord, ...]:
        ready = {each.name for each in fleet.ready}
        # One that drains is ready until its container ends.
        return tuple(
            replace(
                self._record,
                uid=each.name,
                name=each.name,
                ready=each.draining or each.name in ready,
                deleting=each.draining,
            )
            for each in (*fleet.pods, *fleet.draining)
        )


def _sample(told: Told, at: float) -> EngineSample:
    report = told.report
    return EngineSample(
        at=at,
        # Those of the report are the engine's, which began with the simulation and not when the
        # pod was ready.
        token_load=told.token_load,
        step_overhead=told.step_overhead,
        planning=1.0,
        classes={name: ClassSample(*_values(each)) for name, each in report.classes.items()},
        **{name: getattr(report, name) for name in _SAME},
    )


def _values(told: ClassReport) -> tuple[float, float, float | None, float | None]:
    return told.requests_total, told.attained_total, told.ttft_ratio, told.tpot_ratio
