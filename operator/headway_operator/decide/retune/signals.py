"""What the metrics of a service's pods say about its operating point."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from headway_operator.decide.retune.bounds import Bounds
from headway_operator.decide.retune.pace import Pace, ended, pace, step_lengths, total
from headway_operator.decide.retune.targets import ClassTargets
from headway_operator.observe.engine_metrics.sample import (
    HISTORY_SECONDS,
    ClassSample,
    EngineSample,
    History,
    ServiceMetrics,
)
from headway_operator.observe.tuning import OperatingPoint

TICK_SECONDS = 5.0
"""What happened just now: since the tick before."""

WINDOW_SECONDS = 30.0
"""Pods tell TTFT and TPOT as of the last 15 to 30 s."""

LEAST_REQUESTS = 3
"""Fewer requests than these say nothing of a class's TPOT."""

SETTLED = 1.1
"""Factor by which running requests may have grown in a window and still count as settled."""

PREEMPTING_SHARE = 0.25
"""Share of pods that must preempt before all pods are made to take on less."""


@dataclass(frozen=True)
class Worst:
    """The class that is furthest from its target, or least far inside it.

    Attributes:
        class_name: its name.
        ratio: 95th percentile of what was measured over the target.
    """

    class_name: str
    ratio: float


@dataclass(frozen=True)
class Signals:
    """What a service's pods say, taken together.

    Attributes:
        utilisation: of GPUs over the window, 0 to 1, mean of the pods.
        kv_usage: share of KV blocks in use, 0 to 1, mean of the pods.
        kv_peak: likewise, at its highest in the window.
        preempting: many pods took KV blocks from running requests since the last tick.
        preempted: some pod did in the window.
        waiting: requests waiting.
        running: requests running in an engine, mean of the engines.
        batch_use: share of the slots for running requests that is taken; above 1 while more run
            than the batch size in force lets in.
        batch_peak: likewise, at its highest in the last minute, mean of the pods.
        tokens_per_step: tokens of a step on average since the last tick; 0 without steps.
        tokens_per_second: tokens of the time that steps took, likewise.
        tightest_tpot_ms: least TPOT target of any class; None where there is none.
        tpot: class with the worst TPOT, at the present length of steps; None where not known.
        ttft: class with the worst TTFT; None where not known.
        tpot_traffic: a class with a TPOT target had requests in the last minute.
        ttft_traffic: likewise a class with a TTFT target.
        budget_lowered: some pod at work runs with a token budget below its ceiling.
        batch_lowered: likewise its batch size.
        running_settled: no more requests run than at the beginning of the window, or few more.
    """

    utilisation: float
    kv_usage: float
    kv_peak: float
    preempting: bool
    preempted: bool
    waiting: float
    running: float
    batch_use: float
    batch_peak: float
    tokens_per_step: float
    tokens_per_second: float
    tightest_tpot_ms: int | None
    tpot: Worst | None
    ttft: Worst | None
    tpot_traffic: bool
    ttft_traffic: bool
    budget_lowered: bool
    batch_lowered: bool
    running_settled: bool


def read_signals(
    metrics: ServiceMetrics,
    classes: Sequence[ClassTargets],
    point: OperatingPoint,
    bounds: Bounds,
) -> Signals:
    """Take the pods' samples together; there must be at least one pod."""
    pods = tuple(metrics.pods[uid] for uid in sorted(metrics.pods))
    newest = tuple(history[-1] for history in pods)
    recent = tuple(pace(history, TICK_SECONDS) for history in pods)
    at_work = tuple(
        sample for sample, just_now in zip(newest, recent, strict=True) if just_now.steps
    )
    engines = tuple(_engines(sample, point, bounds) for sample in newest)
    running = sum(sample.running for sample in newest)
    slots = bounds.slots(point)
    with_tpot = tuple(each for each in classes if each.tpot_ms is not None)
    with_ttft = tuple(each for each in classes if each.ttft_ms is not None)
    return Signals(
        utilisation=_mean(
            _mean(sample.utilisation for sample in _within(history, WINDOW_SECONDS))
            for history in pods
        ),
        kv_usage=_mean(sample.kv_usage for sample in newest),
        kv_peak=_mean(
            max(sample.kv_usage for sample in _within(history, WINDOW_SECONDS)) for history in pods
        ),
        preempting=_share(just_now.preemptions > 0 for just_now in recent) >= PREEMPTING_SHARE,
        preempted=any(pace(history, WINDOW_SECONDS).preemptions > 0 for history in pods),
        waiting=sum(sample.waiting for sample in newest),
        running=running / sum(engines),
        batch_use=running / (slots * sum(engines)),
        batch_peak=_mean(
            max(sample.running for sample in history) / (slots * count)
            for history, count in zip(pods, engines, strict=True)
        ),
        running_settled=running
        <= SETTLED * sum(_within(history, WINDOW_SECONDS)[0].running for history in pods),
        tokens_per_step=total(recent).tokens_per_step,
        tokens_per_second=total(recent).tokens_per_second,
        tightest_tpot_ms=min((each.tpot_ms for each in classes if each.tpot_ms), default=None),
        tpot=_present(_worst(pods, with_tpot, _tpot, LEAST_REQUESTS), pods, total(recent)),
        ttft=_worst(pods, with_ttft, _ttft, 0),
        tpot_traffic=_traffic(pods, with_tpot),
        ttft_traffic=_traffic(pods, with_ttft),
        budget_lowered=any(each.token_budget < each.token_budget_ceiling for each in at_work),
        batch_lowered=any(each.max_batch < each.max_batch_ceiling for each in at_work),
    )


def _engines(sample: EngineSample, point: OperatingPoint, bounds: Bounds) -> int:
    """Engines in a pod, of which its sample is the sum.

    Not from the batch size of the last step: an engine that holds back a class has one there that
    just lets in whom it means to.
    """
    shares = (
        sample.token_budget_ceiling / bounds.token_budget_cap,
        sample.max_batch_ceiling / bounds.max_batch_cap,
        sample.token_budget / bounds.token_budget(point),
    )
    return max(1, round(min(shares)))


def _worst(
    pods: Sequence[History],
    classes: Sequence[ClassTargets],
    ratio_of: Callable[[ClassSample], float | None],
    least_requests: float,
) -> Worst | None:
    """The worst class, each by the mean of its pods' ratios weighted by their requests."""
    found = []
    for each in classes:
        measured = [
            (ratio, ended(history, WINDOW_SECONDS, each.name))
            for history in pods
            if (sample := history[-1].classes.get(each.name)) is not None
            and (ratio := ratio_of(sample)) is not None
        ]
        if measured and sum(count for _, count in measured) >= least_requests:
            # A request whose first token came may not have ended yet: no pod weighs nothing.
            weights = [max(1.0, count) for _, count in measured]
            weighted = sum(r * w for (r, _), w in zip(measured, weights, strict=True))
            found.append(Worst(each.name, weighted / sum(weights)))
    return max(found, key=lambda worst: worst.ratio, default=None)


def _present(worst: Worst | None, pods: Sequence[History], recent: Pace) -> Worst | None:
    """The ratio brought up to date.

    It tells of tokens up to half a minute old, made in part under limits that are no longer in
    force. A token takes one step, so it is scaled by how the length of steps has changed since.
    Without that a loop acts on its own past and swings.
    """
    lengths = [length for history in pods for length in step_lengths(history, WINDOW_SECONDS)]
    if worst is None or not recent.steps or not lengths:
        return worst
    return Worst(worst.class_name, worst.ratio * recent.seconds_per_step / _mean(lengths))


def _traffic(pods: Sequence[History], classes: Sequence[ClassTargets]) -> bool:
    return any(
        ended(history, HISTORY_SECONDS, each.name) > 0
        or _measured(history[-1].classes.get(each.name))
        for each in classes
        for history in pods
    )


def _measured(sample: ClassSample | None) -> bool:
    return sample is not None and (sample.ttft_ratio is not None or sample.tpot_ratio is not None)


def _tpot(sample: ClassSample) -> float | None:
    return sample.tpot_ratio


def _ttft(sample: ClassSample) -> float | None:
    return sample.ttft_ratio


def _within(history: History, seconds: float) -> History:
    return tuple(sample for sample in history if sample.at > history[-1].at - seconds)


def _mean(values: Iterable[float]) -> float:
    found = tuple(values)
    return sum(found) / len(found)


def _share(truths: Iterable[bool]) -> float:
    return _mean(float(each) for each in truths)
