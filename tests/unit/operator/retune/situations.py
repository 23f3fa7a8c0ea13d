"""Metrics of a service whose situation has been the same for a minute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from headway_operator.decide.retune import (
    Bounds,
    Change,
    ClassTargets,
    Reason,
    Retuned,
    What,
    retune,
)
from headway_operator.memory.tuning import OperatingPoint, Streaks, Tuning
from headway_operator.observe.engine_metrics.sample import (
    HISTORY_SECONDS,
    ClassSample,
    EngineSample,
    History,
    ServiceMetrics,
    Source,
)

TICK_SECONDS = 5
NOW = 10_000.0
BOUNDS = Bounds(token_budget_cap=8192, max_batch_cap=256)
CHAT = ClassTargets("chat", ttft_ms=1000, tpot_ms=30)
BATCH = ClassTargets("batch", deadline_s=600)
CLASSES = (CHAT, BATCH)


@dataclass(frozen=True)
class Situation:
    """What each pod tells, tick after tick.

    Attributes:
        slots_taken: running requests, as a share of those that may run.
        tpot: ratio of class chat; None tells none.
        ttft: likewise.
        chat_requests: of class chat that end in a tick.
        chat_attained: share of them inside their objectives.
        preemptions: in a tick.
        planned: its engine plans its steps.
    """

    utilisation: float = 0.5
    kv_usage: float = 0.5
    slots_taken: float = 0.2
    waiting: float = 0.0
    tokens_per_step: float = 200.0
    step_ms: float = 10.0
    tpot: float | None = 0.95
    ttft: float | None = 0.5
    chat_requests: float = 5.0
    chat_attained: float = 1.0
    preemptions: float = 0.0
    pods: int = 1
    planned: bool = False


STARVED = Situation(ttft=1.2, waiting=5, slots_taken=1.0)
"""Requests miss their TTFT, since others hold the slots."""


def history(situation: Situation, point: OperatingPoint, bounds: Bounds) -> History:
    """A minute of one pod, which follows the point."""
    slots = bounds.slots(point)
    steps = TICK_SECONDS * 1000 / situation.step_ms
    chat = ClassSample(0.0, 0.0, situation.ttft, situation.tpot)
    batch = ClassSample(0.0, 0.0)

    def sample(ticks: int) -> EngineSample:
        ended = situation.chat_requests * ticks
        return EngineSample(
            at=NOW - HISTORY_SECONDS + ticks * TICK_SECONDS,
            utilisation=situation.utilisation,
            kv_usage=situation.kv_usage,
            running=situation.slots_taken * slots,
            waiting=situation.waiting,
            steps_total=1000 + steps * ticks,
            scheduled_tokens_total=1000 + steps * ticks * situation.tokens_per_step,
            step_seconds_total=1000.0 + TICK_SECONDS * ticks,
            preemptions_total=1000 + situation.preemptions * ticks,
            token_budget=bounds.token_budget(point),
            max_batch=slots,
            token_budget_ceiling=bounds.token_budget_cap,
            max_batch_ceiling=bounds.max_batch_cap,
            planning=float(situation.planned),
            classes={
                "chat": replace(
                    chat,
                    requests_total=1000 + ended,
                    attained_total=1000 + ended * situation.chat_attained,
                ),
                "batch": replace(batch, requests_total=1000 + ticks),
            },
        )

    return tuple(sample(ticks) for ticks in range(int(HISTORY_SECONDS) // TICK_SECONDS + 1))


def metrics(
    situation: Situation,
    point: OperatingPoint | None = None,
    bounds: Bounds = BOUNDS,
    collection: int = 1,
) -> ServiceMetrics:
    """All pods of a service, alike."""
    pod = history(situation, point or OperatingPoint(), bounds)
    pods = {f"pod-{number}": pod for number in range(situation.pods)}
    return ServiceMetrics(collection=collection, pods=pods, source=Source.PROMETHEUS)


def tick(
    tuning: Tuning,
    situation: Situation,
    classes: Sequence[ClassTargets] = CLASSES,
    bounds: Bounds = BOUNDS,
) -> Retuned:
    """The next tick of the loop."""
    seen = metrics(situation, tuning.point, bounds, tuning.collection + 1)
    return retune(tuning, seen, classes, bounds)


def settled(**point: int | None) -> Tuning:
    """A tuning at this point, with every streak as long as any rule asks for."""
    return Tuning(OperatingPoint(**point), Streaks(9, 9, 9))


def change(
    what: What, tuning: Tuning, situation: Situation, classes: Any = CLASSES, bounds: Any = BOUNDS
) -> Change | None:
    """What one tick changes of this."""
    found = tick(tuning, situation, classes, bounds).changes
    return next((each for each in found if each.what is what), None)


def moved(*args: Any, **kwargs: Any) -> tuple[int | None, int | None, Reason] | None:
    """Likewise: from what, to what, why."""
    found = change(*args, **kwargs)
    return None if found is None else (found.before, found.after, found.reason)
