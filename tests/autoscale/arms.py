"""The ways to decide on the number of pods that are compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from headway_runtime.executors.simulated.request import Arrival
from headway_runtime.scheduling.timing.pace import aimed_tpot_s
from headway_runtime.scheduling.timing.step_time_model import StepTimeModel
from tests.autoscale import clairvoyant
from tests.autoscale.cases import Case
from tests.autoscale.fleet import START_SECONDS
from tests.autoscale.pod import Told
from tests.autoscale.request_work import overhead_ratio
from tests.autoscale.scalers import TICK_SECONDS, Headway, Hpa, Planned, Scaler

TARGET_LOAD = 0.8
"""The operator's default, for the clairvoyant as well."""

HEADWAY, CLAIRVOYANT = "headway", "clairvoyant"
FIXED = "fixed-"
HPA_QUEUE, HPA_BUSY = "hpa-queue", "hpa-busy"
QUEUE_TARGETS = (1, 3, 10, 30)
BUSY_TARGETS = (0.6, 0.7, 0.8, 0.9)
"""More than 0.9 would never be exceeded by more than the controller tolerates."""


MAIN = (HEADWAY, CLAIRVOYANT, f"{HPA_QUEUE}-3", f"{HPA_BUSY}-0.8", f"{HPA_BUSY}-0.9")
"""The arms that are run step by step and with very many pods, beside the fixed number."""


@dataclass(frozen=True)
class Foreseen:
    """What the clairvoyant knows.

    Attributes:
        work: engine-seconds a second in each tick.
        needed: fewest pods in each tick.
        pods: those that it has, with those that start.
    """

    work: tuple[float, ...]
    needed: tuple[int, ...]
    pods: tuple[int, ...]


def foresee(case: Case, arrivals: Sequence[Arrival]) -> Foreseen:
    """Look at all that will come."""
    decode_ms, mixed_ms = case.timing().decode_ms, case.timing().mixed_ms
    cost = StepTimeModel(decode_ms, mixed_ms).mixed
    tpot_s = aimed_tpot_s(case.traffic_class, is_late=False)
    assert tpot_s is not None
    ticks = int(case.duration_s / TICK_SECONDS)
    work = clairvoyant.work_per_second(arrivals, cost, tpot_s, TICK_SECONDS, ticks)
    smooth = clairvoyant.averaged(work, TICK_SECONDS)
    room = TARGET_LOAD - overhead_ratio(cost, case.traffic_class)
    needed = clairvoyant.pods_needed(smooth, room)
    pods = clairvoyant.schedule(needed, int(START_SECONDS / TICK_SECONDS))
    return Foreseen(tuple(smooth), tuple(needed), tuple(pods))


def arms(case: Case, foreseen: Foreseen) -> dict[str, Callable[[], Scaler]]:
    """What makes each arm's scaler, by its name."""
    first = foreseen.pods[0]
    fixed = math.ceil(fmean(foreseen.pods))
    return {
        HEADWAY: lambda: Headway(case, first),
        CLAIRVOYANT: lambda: Planned(foreseen.pods),
        f"{FIXED}{fixed}": lambda: Planned((fixed,)),
        **{f"{HPA_QUEUE}-{target}": _hpa(case, _waiting, target) for target in QUEUE_TARGETS},
        **{f"{HPA_BUSY}-{target}": _hpa(case, _busy, target) for target in BUSY_TARGETS},
    }


def _hpa(case: Case, metric: Callable[[Told], float], target: float) -> Callable[[], Scaler]:
    return lambda: Hpa(metric, target, case.most_pods)


def _waiting(told: Told) -> float:
    return told.report.waiting


def _busy(told: Told) -> float:
    return told.report.utilisation
