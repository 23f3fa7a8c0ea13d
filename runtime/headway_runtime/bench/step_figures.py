"""Figures of one run's steps, from the engine's step log. Pure."""

from __future__ import annotations

from typing import Any

import numpy as np

from headway_runtime.bench.step_log import Rows, column
from headway_runtime.bench.step_seconds import model_error_median

CURVE_POINTS = 200

GRAPH_TOKENS = 512
"""Largest step that vLLM runs as a CUDA graph, unless it is told otherwise."""


def step_figures(rows: Rows) -> dict[str, Any] | None:
    """How many steps there were and what they were like; None without any."""
    if not len(rows):
        return None
    begun_s = column(rows, "schedule_s")
    schedule_ms = 1000 * (column(rows, "scheduled_s") - begun_s)
    picked = np.unique(np.linspace(0, len(rows) - 1, CURVE_POINTS).astype(int))
    return {
        "steps": len(rows),
        "schedule_ms_mean": round(float(schedule_ms.mean()), 3),
        "schedule_ms_p99": round(float(np.percentile(schedule_ms, 99)), 3),
        "tokens_mean": round(float(column(rows, "tokens").mean()), 1),
        "running_mean": round(float(column(rows, "running").mean()), 1),
        "waiting_max": int(column(rows, "waiting").max()),
        "kv_usage_max": round(float(column(rows, "kv_usage").max()), 3),
        "preemptions": int(column(rows, "preemptions").sum()),
        "model_error_median": model_error_median(rows, GRAPH_TOKENS),
        "curve": {
            "time_s": (begun_s[picked] - begun_s[0]).round(2).tolist(),
            "token_budget": column(rows, "token_budget")[picked].astype(int).tolist(),
            "tokens": column(rows, "tokens")[picked].astype(int).tolist(),
        },
    }
