"""Samples of the pods' metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

HISTORY_SECONDS = 60.0
"""How far back samples are kept: attainment is looked at over this time."""


class Source(StrEnum):
    """Where samples come from."""

    PROMETHEUS = "Prometheus"
    DIRECT_SCRAPE = "DirectScrape"


@dataclass(frozen=True)
class ClassSample:
    """Metrics of one class of traffic in one pod.

    Attributes:
        requests_total: requests that ended, those their clients gave up left out.
        attained_total: those of them that met every objective of their class.
        ttft_ratio: 95th percentile of recent times to first token over the target; None without a
            target or without recent requests.
        tpot_ratio: the same of the time per output token.
    """

    requests_total: float
    attained_total: float
    ttft_ratio: float | None = None
    tpot_ratio: float | None = None


@dataclass(frozen=True)
class EngineSample:
    """Metrics of one pod at one moment.

    Attributes:
        at: when they held, as Unix time in seconds.
        utilisation: of its GPUs, 0 to 1; the busy share of steps where GPUs cannot be asked.
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
        token_load: engine-seconds of work that requests bring a second; None where it is not told.
        step_overhead: share of its time that the engine's steps take whatever they hold.
        planning: its engine processes whose steps are planned; None where it is not told.
        classes: by name.
    """

    at: float
    utilisation: float
    kv_usage: float
    running: float
    waiting: float
    steps_total: float
    scheduled_tokens_total: float
    step_seconds_total: float
    preemptions_total: float
    token_budget: float
    max_batch: float
    token_budget_ceiling: float
    max_batch_ceiling: float
    token_load: float | None = None
    step_overhead: float | None = None
    planning: float | None = None
    classes: Mapping[str, ClassSample] = field(default_factory=dict)


History = tuple[EngineSample, ...]
"""Samples of one pod over the last HISTORY_SECONDS, oldest first, never empty."""


@dataclass(frozen=True)
class ServiceMetrics:
    """Metrics of a service's living pods.

    Attributes:
        collection: number of the collection, from 1, that last brought news of one of them; a
            decision is made once for each. 0: none has yet.
        pods: by pod uid. A pod whose newest sample is too old is not in it.
        source: where the newest samples came from; None when no pod has a usable one.
        since: when they began to come from there, as Unix time in seconds.
        missing: a metric that is read and that a pod does not expose; empty when all are there.
        trouble: why Prometheus was not the source; empty when it was.
        expected: there is a Prometheus that should have been the source.
        collected: pods were collected from lately: that there are no samples says something.
        unasked: a pod waits for its turn to be asked, or to be asked again after its first silence.
    """

    collection: int = 0
    pods: Mapping[str, History] = field(default_factory=dict)
    source: Source | None = None
    since: float = 0.0
    missing: str = ""
    trouble: str = ""
    expected: bool = False
    collected: bool = False
    unasked: bool = False
