"""The alert rules and the dashboard against a real Prometheus that scrapes real pods."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dashboards import preview
from dashboards.drawing import page
from dashboards.prometheus_range import Prometheus as RangeQueries
from dashboards.prometheus_range import TimeRange
from tests.e2e import stack
from tests.e2e.kube import Cluster
from tests.e2e.load import Load
from tests.e2e.prometheus import Prometheus
from tests.e2e.service import Service
from tests.e2e.waiting import polling

pytestmark = pytest.mark.cluster

MODEL = "smollm2"


@pytest.fixture(scope="module")
def prometheus(operator: Cluster) -> Prometheus:
    """The cluster's, with the chart's alert rules."""
    assert operator.kubeconfig.exists()
    found = Prometheus()
    found.load_rules(stack.CHART / "files" / "alerts.yaml")
    return found


@pytest.fixture(scope="module")
def used(chat: Service) -> Iterator[Service]:
    """The warm service after some traffic of both classes, which may refuse and do not."""

    async def offer() -> None:
        url = f"http://{chat.cluster_ip()}"
        for traffic_class in ("interactive", "batch"):
            async with Load(
                url, MODEL, streams=3, max_tokens=12, traffic_class=traffic_class, patience_s=30
            ) as load:
                await asyncio.sleep(12)
            assert load.failed() == []

    # Of classes that refuse nothing whatever comes there is no series of refusals.
    classes = [{**each, "maxQueued": 1000} for each in chat.read()["spec"]["classes"]]
    with chat.changed({"classes": classes}):
        asyncio.run(offer())
        yield chat


def test_every_rule_is_evaluated_without_an_error(used: Service, prometheus: Prometheus) -> None:
    used.wait_for("Ready", "True", timeout_s=60)
    for rules in polling(prometheus.rules, 60, period_s=1):
        if rules and all(rule["health"] == "ok" for rule in rules):
            break
    assert rules
    assert [rule for rule in rules if rule["health"] != "ok"] == []


def test_a_healthy_service_alerts_nobody(used: Service, prometheus: Prometheus) -> None:
    own = f'namespace=~"{used.namespace}|{stack.OPERATOR_NAMESPACE}"'
    firing = prometheus.query(f'ALERTS{{alertstate="firing",{own}}}')
    assert [each.labels["alertname"] for each in firing] == []


def test_every_panel_has_data(used: Service, prometheus: Prometheus, tmp_path: Path) -> None:
    dashboard = json.loads(preview.DASHBOARD.read_text(encoding="utf-8"))
    end = time.time()
    span = TimeRange(end - 300, end, 2)
    variables = preview.grafana_variables(used.namespace, used.name, span, scrape_seconds=1)
    panels = preview.draw(dashboard, RangeQueries(prometheus.url), span, variables)
    errors, empty = preview.report(panels)
    assert errors == []
    assert empty == []
    file = tmp_path / "service-overview.html"
    file.write_text(page("overview", span, panels), encoding="utf-8")
    assert "Token budget" in file.read_text(encoding="utf-8")
