"""Metrics of the requests that were refused where they came in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, Metric

from headway_runtime.policy import TrafficClass, WhenUnmet
from headway_runtime.scheduling.admission.refusal import RefusalReason


def refusal_metric(
    counts: Mapping[tuple[str, str], int], classes: Iterable[TrafficClass]
) -> Metric:
    """Requests refused so far.

    There is a series for each class of the policy in force and each reason for which its requests
    may be refused, from the beginning: an increase from nothing is none.

    Args:
        counts: requests refused, by class and reason.
        classes: those of the policy.
    """
    metric = CounterMetricFamily(
        "headway_refused_requests", "Requests refused with 503.", labels=["class", "reason"]
    )
    for each in classes:
        for reason in _reasons(each):
            key = (each.name, reason.value)
            metric.add_metric(key, counts.get(key, 0))
    return metric


def _reasons(promised: TrafficClass) -> Iterator[RefusalReason]:
    if promised.when_unmet is WhenUnmet.SHED:
        yield RefusalReason.OBJECTIVE_UNMET
    if promised.max_queued is not None:
        yield RefusalReason.QUEUE_FULL
