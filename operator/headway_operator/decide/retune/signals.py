"""What the metrics of a service's pods say about its operating point."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headway_operator.decide.retune.bounds import Bounds
from headway_operator.decide.retune.class_ratios import Worst, has_traffic, worst_tpot, worst_ttft
from headway_operator.decide.retune.pace import (
    TICK_SECONDS,
    WINDOW_SECONDS,
    mean,
    pace,
    total,
    within,
)
from headway_operator.decide.retune.targets import ClassTargets
from headway_operator.memory.tuning import OperatingPoint
from headway_operator.observe.engine_metrics.sample import (
    EngineSample,
    ServiceMetrics,
)

THRASHING = 5
"""Preemptions of each running request within a window, on average."""

SETTLED = 1.1
"""Factor by which running requests may have grown in a window and still count as settled."""

PREEMPTING_SHARE = 0.25
"""Share of pods that must preempt before all pods are made to take on less."""


@dataclass(frozen=True)
class Signals:
    """What a service's pods say, taken together.

    Attributes:
        utilisation: of GPUs over the window, 0 to 1, mean of the pods.
        kv_usage: share of KV blocks in use, 0 to 1, mean of the pods.
        kv_peak: likewise, at its highest in the window.
        preempting: many pods took KV blocks from running requests since the last tick.
        preempted: some pod did in the window.
        thrashing: they do that so often that computing it again eats up what a full batch brings.
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
        planned: engines of all pods at work plan their steps, and keep TPOT targets by themselves
            as long as they can be kept.
    """

    utilisation: float
    kv_usage: float
    kv_peak: float
    preempting: bool
    preempted: bool
    thrashing: bool
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
    planned: bool


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
    window = total(pace(history, WINDOW_SECONDS) for history in pods)
    with_tpot = tuple(each for each in classes if each.tpot_ms is not None)
    with_ttft = tuple(each for each in classes if each.ttft_ms is not None)
    return Signals(
        utilisation=mean(
            mean(sample.utilisation for sample in within(history, WINDOW_SECONDS))
            for history in pods
        ),
        kv_usage=mean(sample.kv_usage for sample in newest),
        kv_peak=mean(
            max(sample.kv_usage for sample in within(history, WINDOW_SECONDS)) for history in pods
        ),
        preempting=_share(just_now.preemptions > 0 for just_now in recent) >= PREEMPTING_SHARE,
        preempted=window.preemptions > 0,
        thrashing=window.preemptions > THRASHING * running,
        waiting=sum(sample.waiting for sample in newest),
        running=running / sum(engines),
        batch_use=running / (slots * sum(engines)),
        batch_peak=mean(
            max(sample.running for sample in history) / (slots * count)
            for history, count in zip(pods, engines, strict=True)
        ),
        running_settled=running
        <= SETTLED * sum(within(history, WINDOW_SECONDS)[0].running for history in pods),
        tokens_per_step=total(recent).tokens_per_step,
        tokens_per_second=total(recent).tokens_per_second,
        tightest_tpot_ms=min((each.tpot_ms for each in classes if each.tpot_ms), default=None),
        tpot=worst_tpot(pods, with_tpot),
        ttft=worst_ttft(pods, with_ttft),
        tpot_traffic=has_traffic(pods, with_tpot),
        ttft_traffic=has_traffic(pods, with_ttft),
        budget_lowered=any(each.token_budget < each.token_budget_ceiling for each in at_work),
        batch_lowered=any(each.max_batch < each.max_batch_ceiling for each in at_work),
        planned=bool(at_work) and all(each.planning for each in at_work),
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


def _share(truths: Iterable[bool]) -> float:
    return mean(float(each) for each in truths)
