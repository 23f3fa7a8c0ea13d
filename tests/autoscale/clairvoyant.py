"""The fewest pods for work that is known before it comes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from headway_runtime.executors.simulated.request import Arrival
from headway_runtime.scheduling.timing.forgetting import MEMORY_S
from headway_runtime.scheduling.timing.step_time_model import Coefficients
from tests.autoscale.request_work import answer_seconds, prompt_seconds


def work_per_second(
    arrivals: Iterable[Arrival], cost: Coefficients, tpot_s: float, tick_s: float, ticks: int
) -> list[float]:
    """Engine-seconds of work a second in each tick.

    A prompt is work when it comes, its answer while its tokens come at the promised pace.
    """
    work = [0.0] * ticks
    for each in arrivals:
        first = int(each.at / tick_s)
        work[min(first, ticks - 1)] += prompt_seconds(cost, each.prompt_tokens) / tick_s
        answer_s = answer_seconds(cost, each.prompt_tokens, each.output_tokens)
        last = int((each.at + each.output_tokens * tpot_s) / tick_s)
        for tick in range(first, min(last + 1, ticks)):
            work[tick] += answer_s / (last + 1 - first) / tick_s
    return work


def averaged(work: Sequence[float], tick_s: float) -> list[float]:
    """The mean over as long as the gauge remembers, around each tick."""
    reach = int(MEMORY_S / tick_s / 2)
    return [
        sum(near) / len(near)
        for tick in range(len(work))
        if (near := work[max(0, tick - reach) : tick + reach + 1])
    ]


def pods_needed(work: Sequence[float], room: float) -> list[int]:
    """Fewest pods in each tick so that none is asked for more than it has room for."""
    return [max(1, math.ceil(each / room)) for each in work]


def schedule(needed: Sequence[int], start_ticks: int) -> list[int]:
    """Pods to have in each tick: ready when they are needed, and kept where a start costs more."""
    kept = [_kept([each > level for each in needed], start_ticks) for level in range(max(needed))]
    return [
        sum(any(level[tick : tick + start_ticks + 1]) for level in kept)
        for tick in range(len(needed))
    ]


def _kept(used: Sequence[bool], start_ticks: int) -> list[bool]:
    """Whether a pod is there, which is not removed for less time than starting another takes."""
    kept = list(used)
    last: int | None = None
    for tick, each in enumerate(used):
        if not each:
            continue
        if last is not None and tick - last - 1 <= start_ticks:
            kept[last:tick] = [True] * (tick - last)
        last = tick
    return kept
