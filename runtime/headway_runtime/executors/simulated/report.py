"""What a pod would tell of its engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class ClassReport:
    """One class of traffic.

    Attributes:
        requests_total: requests that ended.
        attained_total: those of them that met every objective of their class.
        ttft_ratio: 95th percentile of recent times to first token over the target; None without a
            target or without recent requests.
        tpot_ratio: the same of the time per output token.
    """

    requests_total: int
    attained_total: int
    ttft_ratio: float | None
    tpot_ratio: float | None


@dataclass(frozen=True)
class Report:
    """One moment of an engine.

    Attributes:
        at: the moment, in seconds.
        utilisation: busy share of steps, 0 to 1.
        kv_usage: share of KV blocks in use, 0 to 1.
        running: requests running.
        waiting: requests waiting.
        steps_total: engine steps.
        scheduled_tokens_total: tokens they processed.
        step_seconds_total: time they took.
        preemptions_total: running requests that lost their KV blocks.
        token_budget: most tokens the last step might process.
        max_batch: most requests running at once in the last step.
        token_budget_ceiling: token budget set at start.
        max_batch_ceiling: batch size set at start.
        classes: by name.
        token_load_ratio: engine-seconds of work offered each second; None where steps have no
            length.
        step_overhead_ratio: share of a step that passes whatever is done, likewise.
    """

    at: float
    utilisation: float
    kv_usage: float
    running: int
    waiting: int
    steps_total: int
    scheduled_tokens_total: int
    step_seconds_total: float
    preemptions_total: int
    token_budget: int
    max_batch: int
    token_budget_ceiling: int
    max_batch_ceiling: int
    classes: Mapping[str, ClassReport]
    token_load_ratio: float | None = None
    step_overhead_ratio: float | None = None
