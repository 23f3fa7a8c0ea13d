"""Figures of every scenario and arm, for the document and the report. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway_runtime.bench.classes.scenarios import HONEST, LIAR
from headway_runtime.bench.classes.table import Table
from headway_runtime.bench.simulated import SIMULATED

Path = tuple[str, ...]

COLUMNS: Mapping[str, Path] = {
    "attainment": ("summary", "attainment"),
    "accepted_attainment_shed": ("admission", "shed", "accepted_attainment"),
    "accepted": ("admission", "accepted"),
    "refused": ("admission", "refused"),
    "refusal_ms_p50": ("admission", "refusal_ms", "p50"),
    "refusal_ms_p99": ("admission", "refusal_ms", "p99"),
    "ttft_ms_p50": ("summary", "ttft_ms", "p50"),
    "ttft_ms_p99": ("summary", "ttft_ms", "p99"),
    "tokens_per_s": ("summary", "window_tokens_per_s"),
    "jain_index": ("sharing", "jain_index"),
    "jain_index_worst": ("sharing", "jain_index_worst"),
    "beyond_bound": ("sharing", "beyond_bound"),
    "longest_lag_tokens": ("sharing", "longest_lag_tokens"),
    "bound_tokens": ("sharing", "bound_tokens"),
    "programs": ("programs", "programs"),
    "unfinished": ("programs", "unfinished"),
    "completion_s_p50": ("programs", "completion_s", "p50"),
    "completion_s_p95": ("programs", "completion_s", "p95"),
    "completion_s_mean": ("programs", "completion_s", "mean"),
    "honest_s_p50": ("programs", "tenants", HONEST, "completion_s", "p50"),
    "honest_s_p95": ("programs", "tenants", HONEST, "completion_s", "p95"),
    "liar_s_p50": ("programs", "tenants", LIAR, "completion_s", "p50"),
    "liar_s_p95": ("programs", "tenants", LIAR, "completion_s", "p95"),
}
"""By name, where each figure is found in a result."""


_TIMED_OVER_HTTP = ("refusal_ms_p50", "refusal_ms_p99")


def details(table: Table) -> dict[str, dict[str, dict[str, Any]]]:
    """For each scenario and arm its figures, means over seeds, without those it does not have.

    With tenants, ``tenants`` has their attainment, share of the service and longest wait.
    """
    return {
        scenario: {arm: _row(table, scenario, arm) for arm in table.arms(scenario)}
        for scenario in table.scenarios
    }


def _row(table: Table, scenario: str, arm: str) -> dict[str, Any]:
    means = {
        name: table.mean(scenario, arm, *path)
        for name, path in COLUMNS.items()
        if not (name in _TIMED_OVER_HTTP and _is_simulated(table, scenario, arm))
    }
    row: dict[str, Any] = {name: round(v, 4) for name, v in means.items() if v is not None}
    row["seeds"] = sorted(table.seeds(scenario, arm))
    tenants = {name for run in table.runs(scenario, arm) for name in _tenants(run)}
    if tenants:
        row["tenants"] = {
            name: {
                figure: value
                for figure in ("attainment", "service_share", "longest_wait_s")
                if (value := table.mean(scenario, arm, "sharing", "tenants", name, figure))
                is not None
            }
            for name in sorted(tenants)
        }
    return row


def _is_simulated(table: Table, scenario: str, arm: str) -> bool:
    return any(run["shape"] == SIMULATED for run in table.runs(scenario, arm))


def _tenants(run: Mapping[str, Any]) -> list[str]:
    return list((run["sharing"] or {}).get("tenants", {}))
