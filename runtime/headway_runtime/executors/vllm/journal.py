"""Keeps account of steps and writes the statistics file."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, replace
from typing import Any

from headway_runtime.exchange.statistics_file import StatisticsWriter
from headway_runtime.exchange.statistics_record import (
    Decision,
    EngineState,
    Header,
    Load,
    StepRecord,
)
from headway_runtime.policy import Stamp
from headway_runtime.scheduling.plan import StepOutcome, StepPlan
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
    """

    running: int
    waiting: int
    kv_usage: float = 0.0


class Journal:
    """Turns steps into records.

    With asynchronous scheduling a step is scheduled before the one ahead of it is finished, so what
    was decided is kept until its output comes back, first in, first out.
    """

    def __init__(self, writer: StatisticsWriter | None, header: Header) -> None:
        self._writer = writer
        self._header = header
        self._in_flight: deque[tuple[Any, Decided, int]] = deque()
        self._last_end_ns = 0
        self._unaccounted_ns = 0
        self._record = StepRecord(**dict.fromkeys(StepRecord.__dataclass_fields__, 0))

    @property
    def is_kept(self) -> bool:
        """Whether anything is written at all."""
        return self._writer is not None

    def scheduled(self, output: Any, decided: Decided, load: EngineLoad, returned_ns: int) -> None:
        """A step was handed to the model.

        Args:
            output: vLLM's ``SchedulerOutput``.
            decided: how it was decided.
            load: what the engine has in hand.
            returned_ns: when the engine's own ``schedule()`` returned, on the monotonic clock.
        """
        self._write_load(load)
        plugin_ns = decided.plan_ns + time.monotonic_ns() - returned_ns
        self._in_flight.append((output, decided, plugin_ns))

    def finished(self, output: Any, outputs: Any, load: EngineLoad, ended_ns: int) -> None:
        """The output of a step came back from the model.

        Args:
            output: vLLM's ``SchedulerOutput`` of it.
            outputs: vLLM's ``EngineCoreOutputs`` by client.
            load: what the engine has in hand.
            ended_ns: when the engine's own ``update_from_output()`` returned.
        """
        decided, plugin_ns = self._take(output)
        # A step without tokens only flushes aborted requests: no model ran.
        if decided is not None and output.total_num_scheduled_tokens > 0:
            plugin_ns += self._unaccounted_ns
            began_ns = max(decided.entered_ns, self._last_end_ns)
            ended = _Ended(_outcome(output), _generated(outputs), plugin_ns, ended_ns - began_ns)
            self._record = _next(self._record, decided, ended, load)
            if self._writer is not None:
                self._writer.append(self._record)
        self._write_load(load)
        self._last_end_ns = ended_ns
        # Writing takes part in the share too; this step's record is out, so the next one has it.
        self._unaccounted_ns = time.monotonic_ns() - ended_ns

    def refused(self, count: int) -> None:
        """Policy files refused so far."""
        self._header = replace(self._header, refused_policies=count)
        self._write_header()

    def stopped(self) -> None:
        """The engine shuts down."""
        self._header = replace(self._header, state=int(EngineState.STOPPED))
        self._write_header()
        self._write_load(EngineLoad(running=0, waiting=0))

    def give_up(self) -> None:
        """Write no statistics any more, after an error in doing so."""
        self._writer = None

    def _take(self, output: Any) -> tuple[Decided | None, int]:
        while self._in_flight:
            scheduled, decided, plugin_ns = self._in_flight.popleft()
            if scheduled is output:
                return decided, plugin_ns
        return None, 0

    def _write_load(self, load: EngineLoad) -> None:
        if self._writer is not None:
            self._writer.write_load(
                Load(time.time_ns(), self._record.step, load.running, load.waiting)
            )

    def _write_header(self) -> None:
        if self._writer is not None:
            self._writer.write_header(self._header)


@dataclass(frozen=True)
class _Ended:
    outcome: StepOutcome
    generated_tokens: int
    plugin_ns: int
    step_ns: int


def _outcome(output: Any) -> StepOutcome:
    return StepOutcome(output.total_num_scheduled_tokens, len(output.preempted_req_ids or ()))


def _generated(outputs: Any) -> int:
    return sum(len(each.new_token_ids) for client in outputs.values() for each in client.outputs)


def _next(last: StepRecord, decided: Decided, ended: _Ended, load: EngineLoad) -> StepRecord:
    stamp = decided.stamp or _NO_STAMP
    plan, outcome = decided.plan, ended.outcome
    return StepRecord(
        step=last.step + 1,
        wall_time_ns=time.time_ns(),
        generation=stamp.generation,
        epoch=stamp.epoch,
        counter=stamp.counter,
        decision=int(decided.decision),
        breaker_open=int(decided.breaker_open),
        planned_token_budget=plan.limits.token_budget if plan else 0,
        planned_max_batch=plan.limits.max_batch_size if plan else 0,
        moved_requests=len(plan.placements) if plan else 0,
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
