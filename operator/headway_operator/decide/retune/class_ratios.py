"""How far classes of traffic are from their targets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from headway_operator.decide.retune.pace import (
    TICK_SECONDS,
    WINDOW_SECONDS,
    attained,
    ended,
    mean,
    pace,
    step_lengths,
    total,
    within,
)
from headway_operator.decide.retune.targets import ClassTargets
from headway_operator.observe.engine_metrics.sample import HISTORY_SECONDS, ClassSample, History

LEAST_REQUESTS = 3
"""Fewer requests than these in the window say nothing of a class's TPOT."""

ENOUGH = 0.95
"""Share of requests that must meet their objectives, as ratios are 95th percentiles."""

CLEARLY = 1.05
"""Factor by which a token budget was larger; less is no decision of ours."""

_Told = tuple[float, float]
"""A pod's ratio and its weight."""


@dataclass(frozen=True)
class Worst:
    """The class that is furthest from its target, or least far inside it.

    Attributes:
        class_name: its name.
        ratio: 95th percentile of what was measured over the target.
    """

    class_name: str
    ratio: float


def worst_ttft(pods: Sequence[History], classes: Sequence[ClassTargets]) -> Worst | None:
    """The class with the worst TTFT, None where none is known."""
    found = ((each.name, _mean(_ttfts(pods, each.name))) for each in classes)
    return _worst(Worst(name, ratio) for name, ratio in found if ratio is not None)


def worst_tpot(pods: Sequence[History], classes: Sequence[ClassTargets]) -> Worst | None:
    """The class with the worst TPOT as it is now, None where none is known.

    What pods tell is of requests that ended in the last half minute, whose tokens were made in part
    under limits that are no longer in force. A loop that takes that for the present acts on its own
    past, and swings. A token takes one step, so the present length of steps corrects it: downwards
    where the token budget came down since, and it is never less than steps take on average now.
    """
    now_s = total(pace(pod, TICK_SECONDS) for pod in pods).seconds_per_step
    lengths = [length for pod in pods for length in step_lengths(pod, WINDOW_SECONDS)]
    came_down = now_s and any(_was_lowered(pod) for pod in pods)
    scale = min(1.0, now_s / mean(lengths)) if came_down else 1.0
    return _worst(
        Worst(each.name, max(ratio * scale, now_s * 1000 / each.tpot_ms))
        for each in classes
        if each.tpot_ms is not None and (ratio := _tpot(pods, each.name)) is not None
    )


def _tpot(pods: Sequence[History], name: str) -> float | None:
    """A class's TPOT as pods tell it.

    The mean over pods can hide that a burst here and a burst there make more than one request in
    twenty miss its objectives. Then those pods speak that are over the target.
    """
    requests = sum(ended(pod, WINDOW_SECONDS, name) for pod in pods)
    if requests < LEAST_REQUESTS:
        return None
    told = _told(pods, name, lambda sample: sample.tpot_ratio)
    kept = sum(attained(pod, WINDOW_SECONDS, name) for pod in pods)
    in_time = (_mean(_ttfts(pods, name)) or 0.0) <= 1.0
    if kept < ENOUGH * requests and in_time:
        told = [each for each in told if each[0] > 1.0] or told
    return _mean(told)


def _was_lowered(pod: History) -> bool:
    """Whether the token budget came down in the window."""
    before = max(each.token_budget for each in within(pod, WINDOW_SECONDS))
    return before > CLEARLY * pod[-1].token_budget


def has_traffic(pods: Sequence[History], classes: Sequence[ClassTargets]) -> bool:
    """Whether any of the classes had requests in the last minute."""
    return any(
        ended(pod, HISTORY_SECONDS, each.name) > 0 or _is_measured(pod[-1].classes.get(each.name))
        for each in classes
        for pod in pods
    )


def _worst(found: Iterable[Worst]) -> Worst | None:
    return max(found, key=lambda worst: worst.ratio, default=None)


def _ttfts(pods: Sequence[History], name: str) -> list[_Told]:
    return _told(pods, name, lambda sample: sample.ttft_ratio)


def _told(
    pods: Sequence[History], name: str, ratio_of: Callable[[ClassSample], float | None]
) -> list[_Told]:
    return [
        # A request whose first token came may not have ended yet: no pod weighs nothing.
        (ratio, max(1.0, ended(pod, WINDOW_SECONDS, name)))
        for pod in pods
        if (sample := pod[-1].classes.get(name)) is not None
        and (ratio := ratio_of(sample)) is not None
    ]


def _mean(told: Sequence[_Told]) -> float | None:
    weights = sum(weight for _, weight in told)
    return sum(ratio * weight for ratio, weight in told) / weights if told else None


def _is_measured(sample: ClassSample | None) -> bool:
    return sample is not None and (sample.ttft_ratio is not None or sample.tpot_ratio is not None)
