"""docs/metrics.md lists what the sidecar and the operator expose, neither more nor less."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.metrics_core import Metric

from headway_operator import metrics as operator_metrics
from headway_runtime.sidecar.metrics import PodCollector, PodView
from tests.unit.observability.documents import Documented, documented_metrics

OPERATOR = "headway_operator_"


def documented(*, operator: bool) -> dict[str, Documented]:
    return {
        name: each
        for name, each in documented_metrics().items()
        if name.startswith(OPERATOR) == operator
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


def test_the_document_lists_what_the_sidecar_exposes() -> None:
    listed = documented(operator=False)
    assert types(sidecar_metrics()) == {name: each.type for name, each in listed.items()}


def test_the_document_lists_the_labels_of_the_sidecars_metrics() -> None:
    listed = documented(operator=False)
    for metric in sidecar_metrics():
        for sample in metric.samples:
            assert tuple(sample.labels) == listed[exposed_name(metric)].labels, metric.name


def test_the_document_lists_the_values_of_labels_that_are_always_there() -> None:
    listed = documented(operator=False)
    for name in ("headway_fallbacks_total", "headway_policies_total"):
        (metric,) = (each for each in sidecar_metrics() if exposed_name(each) == name)
        ((label, values),) = listed[name].values
        assert {sample.labels[label] for sample in metric.samples} == set(values)


def test_the_document_lists_what_the_operator_exposes() -> None:
    described = [metric for each in operators_own() for metric in each.describe()]
    listed = documented(operator=True)
    assert types(described) == {name: each.type for name, each in listed.items()}


def test_the_document_lists_the_labels_of_the_operators_metrics() -> None:
    listed = documented(operator=True)
    for each in operators_own():
        (metric,) = each.describe()
        assert each._labelnames == listed[exposed_name(metric)].labels, metric.name
