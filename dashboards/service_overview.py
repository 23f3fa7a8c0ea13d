"""The dashboard "Headway / Service": is one service within its objectives, and why not?

``python3 -m dashboards.service_overview`` prints it as the JSON that Grafana takes in.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from grafana_foundation_sdk.builders.dashboard import (
    Dashboard,
    DatasourceVariable,
    QueryVariable,
    Row,
)
from grafana_foundation_sdk.builders.stat import Panel as Stat
from grafana_foundation_sdk.builders.timeseries import Panel as Timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    VariableRefresh,
    VariableSort,
)

from dashboards.house_style import DATA_SOURCE, Axis, Query, graph, number

ATTAINMENT_TARGET = 0.9
"""The least share that the alert HeadwayAttainmentLow lets pass."""

_ONE = '{namespace="$namespace", headway_service="$service"}'
_FAST = f"{_ONE}[$__rate_interval]"

Panel = Timeseries | Stat


def objectives() -> Iterable[Panel]:
    """Whether the promises are kept."""
    attained, ended = "headway_class_attained_requests_total", "headway_class_requests_total"
    on_target = Axis("percentunit", high=1, target=ATTAINMENT_TARGET, target_is_least=True)
    ratio = Axis("none", high=1.2, target=1)
    yield graph(
        "Attainment",
        "Share of the requests that ended which met every objective of their class. Requests that "
        "failed count as missed, those their clients gave up do not count.",
        on_target,
        Query(
            f"sum by (class) (rate({attained}{_FAST})) / sum by (class) (rate({ended}{_FAST}))",
            "{{class}}",
        ),
    )
    yield graph(
        "Time to first token over its objective",
        "95th percentile of the last 15 to 30 s in the worst pod; 1 is exactly on target. Absent "
        "without an objective or without requests.",
        ratio,
        Query(f"max by (class) (headway_class_recent_ttft_ratio{_ONE})", "{{class}}"),
    )
    yield graph(
        "Time per output token over its objective",
        "95th percentile of the last 15 to 30 s in the worst pod; 1 is exactly on target. Absent "
        "without an objective or without requests.",
        ratio,
        Query(f"max by (class) (headway_class_recent_tpot_ratio{_ONE})", "{{class}}"),
    )
    whole = f"{_ONE}[$__range]"
    yield number(
        "Attainment in the whole time range",
        "The same as above over all that is shown.",
        on_target,
        Query(
            f"sum by (class) (increase({attained}{whole}))"
            f" / sum by (class) (increase({ended}{whole}))",
            "{{class}}",
        ),
    )
    yield graph(
        "Requests that ended",
        "By class; requests without any class are not counted.",
        Axis("reqps"),
        Query(f"sum by (class) (rate({ended}{_FAST}))", "{{class}}"),
    )
    yield graph(
        "Refused requests",
        "Answered 503 where they come in: their class sheds and would have been late, or its queue "
        "is full. They are in none of the figures above.",
        Axis("reqps"),
        Query(
            f"sum by (class, reason) (rate(headway_refused_requests_total{_FAST}))",
            "{{class}} {{reason}}",
        ),
    )
    yield graph(
        "Queue",
        "Requests running and waiting in all pods.",
        Axis("short"),
        Query(f"sum(headway_running_requests{_ONE})", "running"),
        Query(f"sum(headway_waiting_requests{_ONE})", "waiting"),
    )


def in_force() -> Iterable[Panel]:
    """What the operator asked for and what engines do."""
    engines = f"(headway_active_engines{_ONE} + headway_stock_engines{_ONE})"
    yield graph(
        "Token budget",
        "Most tokens in one step, all engine processes together. Asked for: by the policy; absent "
        "where it leaves the ceiling. In mode Shadow it is asked for and not in force.",
        Axis("short", steps=True),
        Query(f"sum(headway_token_budget_tokens{_ONE})", "in force"),
        Query(f"sum(headway_policy_token_budget_tokens{_ONE} * {engines})", "asked for"),
        Query(f"sum(headway_token_budget_ceiling_tokens{_ONE})", "ceiling"),
    )
    yield graph(
        "Batch size",
        "Most requests running at once, all engine processes together. Asked for: by the policy; "
        "absent where it leaves the ceiling. In mode Shadow it is asked for and not in force.",
        Axis("short", steps=True),
        Query(f"sum(headway_max_batch_requests{_ONE})", "in force"),
        Query(f"sum(headway_policy_max_batch_requests{_ONE} * {engines})", "asked for"),
        Query(f"sum(headway_max_batch_ceiling_requests{_ONE})", "ceiling"),
    )
    yield graph(
        "Switching threshold theta",
        "Not used yet: the operator decides it and shows it; no request is switched by it.",
        Axis("percentunit", steps=True),
        Query(f"max(headway_theta_ratio{_ONE})", "theta"),
    )
    yield graph(
        "Policy generation",
        "Generation of the InferenceService whose policy the pods hold. The two lines are apart "
        "while some pods still hold an older one.",
        Axis("none", low=None, steps=True),
        Query(f"max(headway_policy_generation{_ONE})", "newest"),
        Query(f"min(headway_policy_generation{_ONE})", "oldest"),
    )
    yield graph(
        "Policies decided",
        "Counter in the newest stamp: every retuning adds one; a new operator or a new generation "
        "begins again at 1.",
        Axis("none", steps=True),
        Query(f"max(headway_policy_counter{_ONE})", "counter"),
    )
    yield graph(
        "Engine processes",
        "Active ones are planned for; stock ones cannot be driven. Paused: pods whose planning is "
        "paused after it failed too often.",
        Axis("short", steps=True),
        Query(f"sum(headway_active_engines{_ONE})", "active"),
        Query(f"sum(headway_stock_engines{_ONE})", "stock"),
        Query(f"sum(headway_breaker_open{_ONE})", "paused pods"),
        Query(f"sum(headway_draining{_ONE})", "draining pods"),
    )


def work() -> Iterable[Panel]:
    """What the hardware does."""
    yield graph(
        "Utilisation",
        "Mean of the pods' GPUs. Without NVML: the share of time spent in steps, and no line for "
        "memory bandwidth.",
        Axis("percentunit", high=1),
        Query(f"avg(headway_utilisation_ratio{_ONE})", "compute"),
        Query(f"avg(headway_memory_bandwidth_utilisation_ratio{_ONE})", "memory bandwidth"),
    )
    yield graph(
        "Work and pods",
        "Engine-seconds of work that requests bring a second, all pods together, and how much of "
        "it pods that tell could take on, with steps as long as the tightest objective allows.",
        Axis("short"),
        Query(f"sum(headway_token_load_ratio{_ONE})", "work"),
        Query(f"sum(1 - headway_step_overhead_ratio{_ONE})", "room"),
    )
    yield graph(
        "Tokens",
        "Processed: prompt and output tokens in steps. Generated: output tokens.",
        Axis("short"),
        Query(f"sum(rate(headway_scheduled_tokens_total{_FAST}))", "processed per second"),
        Query(f"sum(rate(headway_generated_tokens_total{_FAST}))", "generated per second"),
    )
    yield graph(
        "KV cache",
        "Share of the KV blocks in use.",
        Axis("percentunit", high=1),
        Query(f"max(headway_kv_cache_usage_ratio{_ONE})", "fullest pod"),
        Query(f"avg(headway_kv_cache_usage_ratio{_ONE})", "mean"),
    )
    yield graph(
        "Preemptions",
        "Running requests that lost their KV blocks and have to be computed again.",
        Axis("ops"),
        Query(f"sum by (pod) (rate(headway_preemptions_total{_FAST}))", "{{pod}}"),
    )
    yield graph(
        "Step time",
        "Quantiles of the last 10 s, the slowest pod.",
        Axis("s"),
        Query(f"max by (quantile) (headway_recent_step_seconds{_ONE})", "p {{quantile}}"),
    )
    yield graph(
        "Plan time",
        "Time until a step's plan was in force; quantiles of the last 10 s, the slowest pod.",
        Axis("s"),
        Query(f"max by (quantile) (headway_recent_plan_seconds{_ONE})", "p {{quantile}}"),
    )
    yield graph(
        "Steps decided by the engine alone",
        "Share of steps without a plan: planning failed, was late, or was paused (Breaker).",
        Axis("percentunit"),
        Query(
            f"sum by (reason) (rate(headway_fallbacks_total{_FAST}))"
            f" / on () group_left () sum(rate(headway_steps_total{_FAST}))",
            "{{reason}}",
        ),
    )
    yield graph(
        "Time the plug-in takes",
        "Share of step time.",
        Axis("percentunit"),
        Query(
            f"sum(rate(headway_plugin_seconds_total{_FAST}))"
            f" / sum(rate(headway_step_seconds_total{_FAST}))",
            "plug-in",
        ),
    )


def dashboard() -> Dashboard:
    """All of it."""
    made = (
        Dashboard("Headway / Service")
        .uid("headway-service")
        .description("One service: its objectives, what is in force in its engines, their work.")
        .tags(["headway"])
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .time("now-30m", "now")
        .refresh("10s")
        .timezone("browser")
        .editable()
        .with_variable(DatasourceVariable("datasource").label("Data source").type("prometheus"))
        .with_variable(_variable("namespace", "Namespace", "headway_steps_total"))
        .with_variable(
            _variable("service", "Service", 'headway_steps_total{namespace="$namespace"}')
        )
    )
    rows = {"Objectives": objectives(), "In force": in_force(), "Work": work()}
    numbered = 0
    for title, panels in rows.items():
        numbered += 1
        made.with_row(Row(title).id(numbered))
        for panel in panels:
            numbered += 1
            made.with_panel(panel.id(numbered))
    return made


def _variable(name: str, label: str, series: str) -> QueryVariable:
    source = "headway_service" if name == "service" else name
    return (
        QueryVariable(name)
        .label(label)
        .datasource(DATA_SOURCE)
        .query(f"label_values({series}, {source})")
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
    )


def to_json(made: Dashboard) -> str:
    """A dashboard as JSON in a fixed form."""
    return JSONEncoder(sort_keys=True, indent=2).encode(made.build()) + "\n"


def main() -> None:
    """Print the dashboard."""
    sys.stdout.write(to_json(dashboard()))


if __name__ == "__main__":
    main()
