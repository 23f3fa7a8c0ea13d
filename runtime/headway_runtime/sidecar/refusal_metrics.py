"""Metrics of the requests that were refused where they came in."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from prometheus_client.core import CounterMetricFamily, Metric

from headway_runtime.scheduling.admission import RefusalReason

_REASONS = frozenset(reason.value for reason in RefusalReason)


def refusal_metric(counts: Mapping[tuple[str, str], int], classes: Collection[str]) -> Metric:
    """Requests refused so far.

    There is a series for a class and a reason once a request was refused for it, and none for what
    is no class of the policy in force.

    Args:
        counts: requests refused, by class and reason.
        classes: names of the policy's classes.
    """
    metric = CounterMetricFamily(
        "headway_refused_requests", "Requests refused with 503.", labels=["class", "reason"]
    )
    for (name, reason), count in sorted(counts.items()):
        if name in classes and reason in _REASONS:
            metric.add_metric([name, reason], count)
    return metric
