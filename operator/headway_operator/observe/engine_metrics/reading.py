"""From exposed series to samples. What pods expose is untrusted: numbers only, a bounded lot."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from headway_operator.observe.engine_metrics.names import CLASS_FIELDS, FIELDS, OPTIONAL_FIELDS
from headway_operator.observe.engine_metrics.sample import ClassSample, EngineSample

MAX_CLASSES = 32
_FIELD_OF = {metric: name for name, metric in (FIELDS | OPTIONAL_FIELDS).items()}
_CLASS_FIELD_OF = {metric: name for name, metric in CLASS_FIELDS.items()}
_MAX_CLASS_NAME = 63


@dataclass(frozen=True)
class Series:
    """One series of a pod.

    Attributes:
        metric: its name.
        traffic_class: its label `class`; empty without one.
        value: its value.
    """

    metric: str
    traffic_class: str
    value: float


class MetricMissingError(Exception):
    """A pod does not expose a metric that is read; the text is its name."""


@dataclass
class _Collected:
    values: dict[str, float] = field(default_factory=dict)
    classes: dict[str, dict[str, float]] = field(default_factory=dict)


def read_sample(series: Iterable[Series], at: float) -> EngineSample:
    """The sample that a pod's series make, as of ``at`` (Unix time in seconds).

    Raises:
        MetricMissingError: one of the metrics that are read is not among them.
    """
    collected = _Collected()
    for each in series:
        # A value nobody could have measured is as good as none.
        if math.isfinite(each.value) and each.value >= 0:
            _collect(collected, each)
    for name, metric in FIELDS.items():
        if name not in collected.values:
            raise MetricMissingError(metric)
    classes = {name: _class_sample(values) for name, values in collected.classes.items()}
    return EngineSample(at=at, classes=classes, **collected.values)


def _collect(collected: _Collected, series: Series) -> None:
    if series.metric in _FIELD_OF:
        collected.values[_FIELD_OF[series.metric]] = series.value
    elif series.metric in _CLASS_FIELD_OF and _may_be_counted(collected, series.traffic_class):
        values = collected.classes.setdefault(series.traffic_class, {})
        values[_CLASS_FIELD_OF[series.metric]] = series.value


def _may_be_counted(collected: _Collected, name: str) -> bool:
    known = name in collected.classes or len(collected.classes) < MAX_CLASSES
    return known and 0 < len(name) <= _MAX_CLASS_NAME


def _class_sample(values: dict[str, float]) -> ClassSample:
    return ClassSample(
        requests_total=values.get("requests_total", 0.0),
        attained_total=values.get("attained_total", 0.0),
        ttft_ratio=values.get("ttft_ratio"),
        tpot_ratio=values.get("tpot_ratio"),
    )
