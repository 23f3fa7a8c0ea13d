"""The dashboard: generated, complete, on metrics that exist, about one service only."""

from __future__ import annotations

import itertools
import re

import pytest

from dashboards import service_overview
from tests.unit.observability.documents import (
    DASHBOARD,
    alerts,
    dashboard,
    documented_samples,
    named_metrics,
    panels,
)

PANELS = panels()
SHOWN = (
    "headway_class_attained_requests_total",
    "headway_class_recent_tpot_ratio",
    "headway_class_recent_ttft_ratio",
    "headway_class_requests_total",
    "headway_fallbacks_total",
    "headway_generated_tokens_total",
    "headway_kv_cache_usage_ratio",
    "headway_max_batch_ceiling_requests",
    "headway_max_batch_requests",
    "headway_memory_bandwidth_utilisation_ratio",
    "headway_policy_generation",
    "headway_preemptions_total",
    "headway_recent_plan_seconds",
    "headway_recent_step_seconds",
    "headway_refused_requests_total",
    "headway_running_requests",
    "headway_scheduled_tokens_total",
    "headway_theta_ratio",
    "headway_step_overhead_ratio",
    "headway_token_budget_ceiling_tokens",
    "headway_token_budget_tokens",
    "headway_token_load_ratio",
    "headway_utilisation_ratio",
    "headway_waiting_requests",
)


def expressions(*titles: str) -> list[str]:
    return [target["expr"] for title in titles for target in PANELS[title]["targets"]]


def test_the_chart_ships_the_generated_dashboard() -> None:
    generated = service_overview.to_json(service_overview.dashboard())
    assert DASHBOARD.read_text() == generated


@pytest.mark.parametrize("metric", SHOWN)
def test_what_people_look_at_is_shown(metric: str) -> None:
    assert any(metric in named_metrics(expr) for expr in expressions(*PANELS))


@pytest.mark.parametrize("title", PANELS)
def test_a_panel_asks_only_for_metrics_that_exist(title: str) -> None:
    for expr in expressions(title):
        assert named_metrics(expr)
        assert named_metrics(expr) <= documented_samples()


@pytest.mark.parametrize("title", PANELS)
def test_a_panel_is_about_the_chosen_service_only(title: str) -> None:
    chosen = '{namespace="$namespace", headway_service="$service"}'
    for expr in expressions(title):
        series = re.findall(r"\bheadway_(?!service=)\w+", expr)
        assert series
        assert all(f"{each}{chosen}" in expr for each in series)
        assert expr.count(chosen) == len(series)


@pytest.mark.parametrize("title", PANELS)
def test_a_panel_explains_itself(title: str) -> None:
    panel = PANELS[title]
    assert panel["description"].endswith(".")
    assert panel["fieldConfig"]["defaults"]["unit"]
    assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    assert all(target["legendFormat"] for target in panel["targets"])
    names = [target["refId"] for target in panel["targets"]]
    assert len(set(names)) == len(names)


def test_theta_is_said_to_be_unused() -> None:
    assert "Not used yet" in PANELS["Switching threshold theta"]["description"]


def test_panels_do_not_overlap_and_fit_the_grid() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard()["panels"]:
        place = panel["gridPos"]
        columns = range(place["x"], place["x"] + place["w"])
        rows = range(place["y"], place["y"] + place["h"])
        assert columns.stop <= 24
        cells = set(itertools.product(columns, rows))
        assert cells.isdisjoint(taken)
        taken |= cells


def test_one_can_choose_data_source_namespace_and_service() -> None:
    variables = {each["name"]: each for each in dashboard()["templating"]["list"]}
    assert list(variables) == ["datasource", "namespace", "service"]
    assert variables["datasource"]["type"] == "datasource"
    for name, label in (("namespace", "namespace"), ("service", "headway_service")):
        query = re.fullmatch(r"label_values\((.+), (\w+)\)", variables[name]["query"])
        assert query
        assert query[2] == label
        assert named_metrics(query[1]) <= documented_samples()


def test_identifiers_are_stable_and_distinct() -> None:
    made = dashboard()
    assert made["uid"] == "headway-service"
    numbers = [panel["id"] for panel in made["panels"]]
    assert numbers == list(range(1, len(numbers) + 1))


def test_the_attainment_line_is_where_the_alert_begins() -> None:
    limit = re.search(r"< ([\d.]+)", alerts()["HeadwayAttainmentLow"]["expr"])
    assert limit
    steps = PANELS["Attainment"]["fieldConfig"]["defaults"]["thresholds"]["steps"]
    assert steps[1]["value"] == float(limit[1])
