"""The pod's metrics, read from the statistics files whenever Prometheus asks.

Summed over the pod's engine processes and without labels that grow, so that a pod has at most 40
series, one more once a program has ended, 3 once an engine has died, 4 for each class, one more for
each class and reason for which requests were refused, and where tenants are told apart 4 for each
of at most 17.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from headway_runtime.exchange.statistics_file import EngineStatistics
from headway_runtime.exchange.statistics_record import EngineState
from headway_runtime.exchange.step_record import StepRecord
from headway_runtime.exchange.suspects_file import Told
from headway_runtime.policy import Policy
from headway_runtime.scheduling.tenants.totals import TenantTotals
from headway_runtime.sidecar.acceptance import Outcome
from headway_runtime.sidecar.class_metrics import class_metrics
from headway_runtime.sidecar.engines import breaker_is_open
from headway_runtime.sidecar.quarantine import quarantine_metrics
from headway_runtime.sidecar.refusal_metrics import refusal_metric
from headway_runtime.sidecar.tenant_metrics import tenant_metrics
from headway_runtime.sidecar.token_load import (
    program_stretch,
    step_overhead,
    token_load,
    with_refused,
)
from headway_runtime.sidecar.utilisation import memory_bandwidth, utilisation

WINDOW_SECONDS = 10
"""Quantiles are over the steps that ended in this time, as far back as the files' rings reach."""

_NS = 1e-9

_COUNTERS: tuple[tuple[str, str, str, float], ...] = (
    ("steps", "step", "Engine steps.", 1),
    ("scheduled_tokens", "scheduled_tokens_total", "Tokens processed by engine steps.", 1),
    ("generated_tokens", "generated_tokens_total", "Tokens generated.", 1),
    ("preemptions", "preemptions_total", "Running requests that lost their KV blocks.", 1),
    ("step_seconds", "step_ns_total", "Time that engine steps took.", _NS),
    ("plugin_seconds", "plugin_ns_total", "All time that the plug-in took in the engine.", _NS),
)
"""Metric, field of the step record, help, factor to the base unit."""

_DURATIONS = (
    (
        "recent_plan_seconds",
        "plan_ns",
        "Time until a step's plan was in force, last 10 s.",
        (0.5, 0.9, 0.99),
    ),
    ("recent_step_seconds", "step_ns", "Time of an engine step, last 10 s.", (0.5, 0.99)),
)
"""Metric, field of the step record, help, quantiles."""

_ACCEPTED = (Outcome.APPLIED, Outcome.ALREADY_APPLIED)

_FALLBACKS = (("Failed", "failed_total"), ("Late", "late_total"), ("Breaker", "breaker_total"))


@dataclass(frozen=True)
class PodView:
    """What the metrics are made from.

    Attributes:
        engines: the pod's engine processes, with their classes.
        policy: the policy in force.
        outcomes: how often policies that were sent had each outcome.
        draining: whether the pod is being emptied.
        now_ns: now, nanoseconds since the epoch.
        refusals: requests that were refused where they came in, by class and reason.
        tenants: what tenants asked for and got, by tenant.
        told: of engines that died, and of what.
        refused_work: engine-seconds a second that they would have been lately.
    """

    engines: Sequence[EngineStatistics]
    policy: Policy | None
    outcomes: dict[Outcome, int]
    draining: bool
    now_ns: int
    refusals: Mapping[tuple[str, str], int] = dataclasses.field(default_factory=dict)
    tenants: Mapping[str, TenantTotals] = dataclasses.field(default_factory=dict)
    told: Told = dataclasses.field(default_factory=Told)
    refused_work: float = 0.0


class PodCollector(Collector):
    """Makes metrics from a look at the pod.

    Args:
        look: takes the look.
    """

    def __init__(self, look: Callable[[], PodView]) -> None:
        self._look = look

    def collect(self) -> Iterator[Metric]:
        """All metrics of the pod."""
        view = self._look()
        latest = [engine.latest for engine in view.engines if engine.latest is not None]
        yield from _counters(latest)
        yield from _loads(view.engines)
        yield from _limits(view.engines)
        yield _set_aside(view.engines)
        paused = any(breaker_is_open(each, view.now_ns) for each in view.engines)
        yield _gauge("breaker_open", "1 while planning is paused.", paused)
        yield from _durations(view.engines, view.now_ns)
        yield from _utilisation(view)
        yield from _policy(view)
        yield from _asked_for(view.policy)
        classes = view.policy.classes if view.policy is not None else ()
        yield from class_metrics(classes, view.engines, view.now_ns)
        yield refusal_metric(view.refusals, classes)
        yield from tenant_metrics(view.tenants)
        yield from quarantine_metrics(view.told, view.refusals, view.now_ns / 1e9)


def _counters(latest: Sequence[StepRecord]) -> Iterator[Metric]:
    for name, field, text, factor in _COUNTERS:
        total = sum(getattr(each, field) for each in latest) * factor
        yield CounterMetricFamily(f"headway_{name}", text, value=total)
    fallbacks = CounterMetricFamily(
        "headway_fallbacks", "Steps the engine decided alone for want of a plan.", labels=["reason"]
    )
    for reason, field in _FALLBACKS:
        fallbacks.add_metric([reason], sum(getattr(each, field) for each in latest))
    yield fallbacks
    yield _gauge(
        "kv_cache_usage_ratio",
        "Share of KV blocks in use, the fullest engine process.",
        max((each.kv_usage_ppm for each in latest), default=0) / 1e6,
    )


def _loads(engines: Sequence[EngineStatistics]) -> Iterator[Metric]:
    running = sum(each.load.running for each in engines)
    waiting = sum(each.load.waiting for each in engines)
    active = sum(each.header.state == EngineState.ACTIVE for each in engines)
    stock = sum(each.header.state == EngineState.STOCK for each in engines)
    yield _gauge("running_requests", "Requests running.", running)
    yield _gauge("waiting_requests", "Requests waiting.", waiting)
    yield _gauge("active_engines", "Engine processes whose steps are planned.", active)
    yield _gauge("stock_engines", "Engine processes that cannot be planned for.", stock)


def _limits(engines: Sequence[EngineStatistics]) -> Iterator[Metric]:
    budgets = sum(_in_force(each, "token_budget", "token_budget_ceiling") for each in engines)
    batches = sum(_in_force(each, "max_batch", "max_batch_ceiling") for each in engines)
    most_tokens = sum(each.header.token_budget_ceiling for each in engines)
    most_requests = sum(each.header.max_batch_ceiling for each in engines)
    yield _gauge("token_budget_tokens", "Most tokens the last step might process.", budgets)
    yield _gauge("max_batch_requests", "Most requests running at once in the last step.", batches)
    yield _gauge("token_budget_ceiling_tokens", "Token budget set at start.", most_tokens)
    yield _gauge("max_batch_ceiling_requests", "Batch size set at start.", most_requests)


def _in_force(engine: EngineStatistics, field: str, ceiling: str) -> int:
    latest = engine.latest
    return int(getattr(engine.header, ceiling) if latest is None else getattr(latest, field))


def _durations(engines: Sequence[EngineStatistics], now_ns: int) -> Iterator[Metric]:
    oldest_ns = now_ns - WINDOW_SECONDS * 10**9
    recent = [r for each in engines for r in each.records if r.wall_time_ns >= oldest_ns]
    for name, field, text, quantiles in _DURATIONS:
        metric = GaugeMetricFamily(f"headway_{name}", text, labels=["quantile"])
        ordered = sorted(getattr(each, field) for each in recent)
        for quantile in quantiles if ordered else ():
            metric.add_metric([str(quantile)], ordered[int(quantile * (len(ordered) - 1))] * _NS)
        yield metric


def _utilisation(view: PodView) -> Iterator[Metric]:
    yield _gauge(
        "utilisation_ratio",
        "How busy the GPUs are; without NVML, the share of the last 10 s spent in steps.",
        utilisation(view.engines, view.now_ns),
    )
    yield _gauge(
        "memory_bandwidth_utilisation_ratio",
        "How busy the GPUs' memory is; only with NVML.",
        memory_bandwidth(view.engines, view.now_ns),
    )
    yield _gauge(
        "token_load_ratio",
        "Work offered lately, refused work included, in engine-seconds a second; the mean of the "
        "engine processes.",
        with_refused(token_load(view.engines, view.now_ns), view.refused_work),
    )
    yield _gauge(
        "step_overhead_ratio",
        "Share of steps that passes whatever is done; the mean of the engine processes.",
        step_overhead(view.engines, view.now_ns),
    )
    yield _gauge(
        "program_stretch_ratio",
        "Mean time of programs' calls over the time since each was first served.",
        program_stretch(view.engines),
    )


def _policy(view: PodView) -> Iterator[Metric]:
    stamp = view.policy.stamp if view.policy is not None else None
    yield _gauge("draining", "1 while the pod is being emptied.", view.draining)
    for part in ("generation", "epoch", "counter"):
        value = getattr(stamp, part) if stamp is not None else 0
        yield _gauge(f"policy_{part}", f"Stamp of the policy in force: {part}.", value)
    pushed = CounterMetricFamily(
        "headway_policies", "Policies that were sent, by outcome.", labels=["outcome"]
    )
    accepted = sum(view.outcomes.get(each, 0) for each in _ACCEPTED)
    pushed.add_metric(["Accepted"], accepted)
    pushed.add_metric(["Refused"], sum(view.outcomes.values()) - accepted)
    yield pushed
    unread = sum(each.header.refused_policies for each in view.engines)
    yield CounterMetricFamily(
        "headway_unreadable_policy_files", "Policy files that engines did not take.", value=unread
    )


def _set_aside(engines: Sequence[EngineStatistics]) -> Metric:
    return CounterMetricFamily(
        "headway_set_aside_requests",
        "Requests left to the engine's own order, since nothing could be told of them.",
        value=sum(each.header.set_aside_requests for each in engines),
    )


def _asked_for(policy: Policy | None) -> Iterator[Metric]:
    theta = None if policy is None or policy.theta_ppm is None else policy.theta_ppm / 1e6
    budget = None if policy is None else policy.token_budget
    batch = None if policy is None else policy.max_batch_size
    yield _gauge("theta_ratio", "Switching threshold of the policy.", theta)
    yield _gauge("policy_token_budget_tokens", "Token budget the policy asks for.", budget)
    yield _gauge("policy_max_batch_requests", "Batch size the policy asks for.", batch)


def _gauge(name: str, text: str, value: float | None) -> Metric:
    """A gauge; without a value a metric that has no series."""
    return GaugeMetricFamily(f"headway_{name}", text, value=value)
