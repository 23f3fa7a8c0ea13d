"""docs/metrics.md lists what sidecar, activator and operator expose, neither more nor less."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.metrics_core import Metric

from headway_operator import metrics as operator_metrics
from headway_runtime.activator.answers import Refusal
from headway_runtime.activator.metrics import Metrics, Now
from headway_runtime.sidecar.metrics import PodCollector, PodView
from tests.unit.observability.documents import Documented, documented_metrics

OPERATOR = "headway_operator_"
ACTIVATOR = "headway_activator_"
SIDECAR = "headway_"


def documented(prefix: str) -> dict[str, Documented]:
    """Of those whose names begin so; the sidecar's begin like no other's."""
    others = tuple(each for each in (OPERATOR, ACTIVATOR) if each != prefix)
    return {
        name: each
        for name, each in documented_metrics().items()
        if name.startswith(prefix) and not name.startswith(others)
    }


def exposed_name(metric: Metric) -> str:
    return f"{metric.name}_total" if metric.type == "counter" else str(metric.name)


def types(metrics: Iterable[Metric]) -> dict[str, str]:
    return {exposed_name(each): each.type for each in metrics}


def sidecar_metrics() -> list[Metric]:
    view = PodView(engines=(), policy=None, outcomes={}, draining=False, now_ns=10**18)
    return list(PodCollector(lambda: view).collect())


def operators_own() -> list[MetricWrapperBase]:
    return [each for each in vars(operator_metrics).values() if isinstance(each, MetricWrapperBase)]


def activator_metrics() -> Metrics:
    return Metrics(lambda: Now(held=1, held_bytes=2, passing=3, start_seconds=4.0))


def test_the_document_lists_what_the_activator_exposes() -> None:
    listed = documented(ACTIVATOR)
    found = list(activator_metrics().registry.collect())
    assert types(found) == {name: each.type for name, each in listed.items()}
    refused = {Refusal.FULL, Refusal.TOO_LATE, Refusal.NOT_HELD}
    ((label, values),) = listed["headway_activator_requests_total"].values
    assert label == "outcome"
    assert set(values) == {"Passed", "Answered", "Lost", "GaveUp", *map(str, refused)}


def test_the_document_lists_what_the_sidecar_exposes() -> None:
    listed = documented(SIDECAR)
    assert types(sidecar_metrics()) == {name: each.type for name, each in listed.items()}


def test_the_document_lists_the_labels_of_the_sidecars_metrics() -> None:
    listed = documented(SIDECAR)
    for metric in sidecar_metrics():
        for sample in metric.samples:
            assert tuple(sample.labels) == listed[exposed_name(metric)].labels, metric.name


def test_the_document_lists_the_values_of_labels_that_are_always_there() -> None:
    listed = documented(SIDECAR)
    for name in ("headway_fallbacks_total", "headway_policies_total"):
        (metric,) = (each for each in sidecar_metrics() if exposed_name(each) == name)
        ((label, values),) = listed[name].values
        assert {sample.labels[label] for sample in metric.samples} == set(values)


def test_the_document_lists_what_the_operator_exposes() -> None:
    described = [metric for each in operators_own() for metric in each.describe()]
    listed = documented(OPERATOR)
    assert types(described) == {name: each.type for name, each in listed.items()}


def test_the_document_lists_the_labels_of_the_operators_metrics() -> None:
    listed = documented(OPERATOR)
    for each in operators_own():
        (metric,) = each.describe()
        assert each._labelnames == listed[exposed_name(metric)].labels, metric.name
