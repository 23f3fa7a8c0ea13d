"""What the plug-in did during a run, from the engine's own records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headway_runtime.exchange import statistics_file
from headway_runtime.exchange.step_record import StepRecord


def latest_record(run_dir: Path) -> StepRecord | None:
    """The newest step that the plug-in has recorded; None where there is none, or none readable."""
    path = run_dir / statistics_file.file_name(0)
    try:
        return statistics_file.read(path, records=1).latest
    except (OSError, statistics_file.StatisticsFileError):
        return None


def plan_figures(before: StepRecord | None, after: StepRecord | None) -> dict[str, Any] | None:
    """What happened between two records; None if the plug-in ran no step.

    Returns:
        ``steps``, of them those without a plan because planning ``failed``, was ``late`` or was
        paused (``breaker``), and the shares of step time that planning and all of the plug-in took.
    """
    if before is None or after is None or after.step == before.step:
        return None
    step_ns = after.step_ns_total - before.step_ns_total
    return {
        "steps": after.step - before.step,
        "failed": after.failed_total - before.failed_total,
        "late": after.late_total - before.late_total,
        "breaker": after.breaker_total - before.breaker_total,
        "plan_share": round((after.plan_ns_total - before.plan_ns_total) / step_ns, 4),
        "plugin_share": round((after.plugin_ns_total - before.plugin_ns_total) / step_ns, 4),
    }
