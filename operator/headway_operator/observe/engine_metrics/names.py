"""The metrics that decisions are made from, by the names sidecars expose them under."""

from __future__ import annotations

PREFIX = "headway_"

STEPS = "headway_steps_total"

FIELDS = {
    "utilisation": "headway_utilisation_ratio",
    "kv_usage": "headway_kv_cache_usage_ratio",
    "running": "headway_running_requests",
    "waiting": "headway_waiting_requests",
    "steps_total": STEPS,
    "scheduled_tokens_total": "headway_scheduled_tokens_total",
    "step_seconds_total": "headway_step_seconds_total",
    "preemptions_total": "headway_preemptions_total",
    "token_budget": "headway_token_budget_tokens",
    "max_batch": "headway_max_batch_requests",
    "token_budget_ceiling": "headway_token_budget_ceiling_tokens",
    "max_batch_ceiling": "headway_max_batch_ceiling_requests",
}
"""Field of an EngineSample -> metric. A pod that lacks one of them is not decided about."""

OPTIONAL_FIELDS = {
    "token_load": "headway_token_load_ratio",
    "step_overhead": "headway_step_overhead_ratio",
    "planning": "headway_active_engines",
}
"""Likewise, but only there where an engine can tell them."""

CLASS_LABEL = "class"

CLASS_FIELDS = {
    "requests_total": "headway_class_requests_total",
    "attained_total": "headway_class_attained_requests_total",
    "ttft_ratio": "headway_class_recent_ttft_ratio",
    "tpot_ratio": "headway_class_recent_tpot_ratio",
}
"""Field of a ClassSample -> metric. The ratios are only there while there is something to tell."""

ALL = (*FIELDS.values(), *OPTIONAL_FIELDS.values(), *CLASS_FIELDS.values())
