"""From how a step was decided and what it did to its record. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headway_runtime.exchange.step_record import Decision, StepRecord
from headway_runtime.policy import Stamp
from headway_runtime.scheduling.plan import Stay, StepOutcome, StepPlan
from headway_runtime.scheduling.timing.token_load import LoadRatios
from headway_runtime.scheduling.view import Limits

_NO_STAMP = Stamp(0, 0, 0)


@dataclass(frozen=True)
class Decided:
    """How a step was decided, before the engine ran it.

    Attributes:
        decision: who decided.
        stamp: the policy in force, None without one.
        plan: the plan that was made, None without one.
        limits: limits the engine runs the step with.
        breaker_open: whether planning is paused.
        entered_ns: when the step began, on the monotonic clock.
        plan_ns: from then until the limits were in force.
    """

    decision: Decision
    stamp: Stamp | None
    plan: StepPlan | None
    limits: Limits
    breaker_open: bool
    entered_ns: int
    plan_ns: int


@dataclass(frozen=True)
class EngineLoad:
    """What the engine has in hand.

    Attributes:
        running: requests running.
        waiting: requests waiting.
        kv_usage: share of KV blocks in use, 0 to 1.
        ratios: what is offered to it; None where that cannot be told.
        program_stretch: mean time of programs over the time since their calls were first served;
            None before one has ended.
    """

    running: int
    waiting: int
    kv_usage: float = 0.0
    ratios: LoadRatios | None = None
    program_stretch: float | None = None


@dataclass(frozen=True)
class Ended:
    """What a step did.

    Attributes:
        outcome: what the engine did.
        generated_tokens: tokens that came out of it.
        ended_ns: when it ended, nanoseconds since the epoch.
        plugin_ns: all time the plug-in took for it.
        step_ns: time from its start, or from the end of the step before, to its end.
    """

    outcome: StepOutcome
    generated_tokens: int
    ended_ns: int
    plugin_ns: int
    step_ns: int


def outcome_of(output: Any) -> StepOutcome:
    """What vLLM's ``SchedulerOutput`` says a step did."""
    return StepOutcome(output.total_num_scheduled_tokens, len(output.preempted_req_ids or ()))


def next_record(last: StepRecord, decided: Decided, ended: Ended, load: EngineLoad) -> StepRecord:
    """The record that follows ``last``."""
    stamp = decided.stamp or _NO_STAMP
    plan, outcome = decided.plan, ended.outcome
    return StepRecord(
        step=last.step + 1,
        wall_time_ns=ended.ended_ns,
        generation=stamp.generation,
        epoch=stamp.epoch,
        counter=stamp.counter,
        decision=int(decided.decision),
        breaker_open=int(decided.breaker_open),
        planned_token_budget=plan.limits.token_budget if plan else 0,
        planned_max_batch=plan.limits.max_batch_size if plan else 0,
        moved_requests=_moved(plan) if plan else 0,
        token_budget=decided.limits.token_budget,
        max_batch=decided.limits.max_batch_size,
        scheduled_tokens=outcome.scheduled_tokens,
        running=load.running,
        waiting=load.waiting,
        kv_usage_ppm=int(load.kv_usage * 1_000_000),
        plan_ns=decided.plan_ns,
        plugin_ns=ended.plugin_ns,
        step_ns=ended.step_ns,
        scheduled_tokens_total=last.scheduled_tokens_total + outcome.scheduled_tokens,
        generated_tokens_total=last.generated_tokens_total + ended.generated_tokens,
        preemptions_total=last.preemptions_total + outcome.preemptions,
        plan_ns_total=last.plan_ns_total + decided.plan_ns,
        plugin_ns_total=last.plugin_ns_total + ended.plugin_ns,
        step_ns_total=last.step_ns_total + ended.step_ns,
        failed_total=last.failed_total + (decided.decision is Decision.FAILED),
        late_total=last.late_total + (decided.decision is Decision.LATE),
        breaker_total=last.breaker_total + (decided.decision is Decision.BREAKER),
    )


def _moved(plan: StepPlan) -> int:
    return len(plan.placements) + sum(not isinstance(turn, Stay) for turn in plan.turns)
