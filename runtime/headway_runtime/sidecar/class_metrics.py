"""Metrics of the classes of traffic, summed over the pod's engine processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from headway_runtime.exchange.class_record import ClassRecord, Windows
from headway_runtime.exchange.histogram import quantile
from headway_runtime.exchange.statistics_file import EngineStatistics
from headway_runtime.policy import TrafficClass

_SHARE = 0.95

_TOTALS: tuple[tuple[str, str, Callable[[ClassRecord], int]], ...] = (
    (
        "headway_class_requests",
        "Requests that ended; those their clients gave up are left out.",
        lambda record: record.requests_total,
    ),
    (
        "headway_class_attained_requests",
        "Requests that met every objective of their class.",
        lambda record: record.attained_total,
    ),
)

_RATIOS: tuple[
    tuple[str, str, Callable[[TrafficClass], int | None], Callable[[ClassRecord], Windows]], ...
] = (
    (
        "headway_class_recent_ttft_ratio",
        "95th percentile of time to first token over its objective, last 15 to 30 s.",
        lambda traffic_class: traffic_class.ttft_ms,
        lambda record: record.ttft,
    ),
    (
        "headway_class_recent_tpot_ratio",
        "95th percentile of mean time per output token over its objective, last 15 to 30 s.",
        lambda traffic_class: traffic_class.tpot_ms,
        lambda record: record.tpot,
    ),
)


def class_metrics(
    classes: Sequence[TrafficClass], engines: Sequence[EngineStatistics], now_ns: int
) -> Iterator[Metric]:
    """Metrics of these classes.

    Args:
        classes: classes of the policy in force.
        engines: the pod's engine processes, with their classes.
        now_ns: now, nanoseconds since the epoch.
    """
    records: dict[str, list[ClassRecord]] = {each.name: [] for each in classes}
    for engine in engines:
        for record in engine.classes:
            if record.name in records:
                records[record.name].append(record.at(now_ns))
    for name, text, total in _TOTALS:
        counter = CounterMetricFamily(name, text, labels=["class"])
        for each in classes:
            counter.add_metric([each.name], sum(total(record) for record in records[each.name]))
        yield counter
    for name, text, target, windows in _RATIOS:
        gauge = GaugeMetricFamily(name, text, labels=["class"])
        for each in classes:
            ratio = _recent(windows(record) for record in records[each.name])
            if ratio is not None and target(each) is not None:
                gauge.add_metric([each.name], ratio)
        yield gauge


def _recent(windows: Iterator[Windows]) -> float | None:
    counts = [sum(each) for each in zip(*(each.both for each in windows), strict=True)]
    return quantile(counts, _SHARE)
