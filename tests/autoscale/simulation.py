"""One run: a trace, a fleet, and somebody who decides on its size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from headway_runtime.executors.simulated.request import Arrival
from tests.autoscale.cases import Case
from tests.autoscale.fleet import Fleet
from tests.autoscale.scalers import TICK_SECONDS, Scaler
from tests.scale.results import percentile

SERIES_SECONDS = 60.0
GIVE_UP_SECONDS = 900.0
"""Requests that have not ended so long after the last arrivals have missed their objectives."""


@dataclass(frozen=True)
class Outcome:
    """What a run came to.

    Attributes:
        attainment: share of all requests that met their objectives.
        gpu_hours: of pods that load, take requests or drain.
        ttft_p50_s: median time to first token; None where half of the requests had none.
        ttft_p99_s: the 99th percentile.
        decisions: how often the number of pods was changed.
        pods: every minute, those that load included.
    """

    attainment: float
    gpu_hours: float
    ttft_p50_s: float | None
    ttft_p99_s: float | None
    decisions: int
    pods: tuple[int, ...]


def simulate(
    case: Case, arrivals: Sequence[Arrival], scaler: Scaler, replicas: int, seed: int
) -> Outcome:
    """Offer a trace to a fleet of so many pods at first, which the scaler changes."""
    fleet = Fleet(case, replicas, seed)
    pods = []
    for coming in _by_tick(arrivals, case.duration_s):
        fleet.scale(scaler.replicas(fleet))
        pods.append(len(fleet.pods))
        fleet.run(fleet.now_s + TICK_SECONDS, coming)
    fleet.scale(0)
    while fleet.open and fleet.now_s < case.duration_s + GIVE_UP_SECONDS:
        fleet.run(fleet.now_s + TICK_SECONDS, ())
    return _outcome(fleet, arrivals, [replicas, *pods])


def _by_tick(arrivals: Sequence[Arrival], duration_s: float) -> list[list[Arrival]]:
    ticks: list[list[Arrival]] = [[] for _ in range(int(duration_s / TICK_SECONDS))]
    for each in arrivals:
        ticks[min(int(each.at / TICK_SECONDS), len(ticks) - 1)].append(each)
    return ticks


def _outcome(fleet: Fleet, arrivals: Sequence[Arrival], pods: Sequence[int]) -> Outcome:
    answered = fleet.answered
    never = [float("inf")] * (len(arrivals) - len(answered))
    ttfts = [*(each.ttft_s for each in answered), *never]
    return Outcome(
        attainment=sum(each.attained for each in answered) / len(arrivals),
        gpu_hours=fleet.gpu_seconds / 3600,
        ttft_p50_s=percentile(ttfts, 0.5),
        ttft_p99_s=percentile(ttfts, 0.99),
        decisions=sum(after != before for before, after in pairwise(pods)),
        pods=tuple(pods[1 :: int(SERIES_SECONDS / TICK_SECONDS)]),
    )
