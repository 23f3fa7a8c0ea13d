"""Keeps account of steps and requests, and writes the statistics file."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from headway_runtime.exchange.statistics_file import StatisticsWriter
from headway_runtime.exchange.statistics_record import NOT_TOLD, EngineState, Header, Load, ppm
from headway_runtime.exchange.step_record import Decision, StepRecord
from headway_runtime.executors.vllm.class_accounts import ClassAccounts
from headway_runtime.executors.vllm.gpu_utilisation import GpuSample, GpuUtilisation
from headway_runtime.executors.vllm.request_histories import RequestHistories
from headway_runtime.executors.vllm.step_account import (
    Decided,
    Ended,
    EngineLoad,
    next_record,
    outcome_of,
)
from headway_runtime.policy import Policy

CLASSES_PERIOD_NS = 250_000_000
"""Classes that have changed, and histories, are written this often rather than with every step."""


class Journal:
    """Turns steps into records and requests into totals of their classes.

    With asynchronous scheduling a step is scheduled before the one ahead of it is finished, so what
    was decided is kept until its output comes back, first in, first out.

    Args:
        writer: the statistics file; None keeps no account of anything.
        header: what the file says about the engine.
        gpus: asked how busy the GPUs are.
        classes: what becomes of requests, by class.
        histories: follows requests, and tells ``classes``.
    """

    def __init__(
        self,
        writer: StatisticsWriter | None,
        header: Header,
        gpus: GpuUtilisation | None = None,
        classes: ClassAccounts | None = None,
        histories: RequestHistories | None = None,
    ) -> None:
        self._writer = writer
        self._header = header
        self._gpus = gpus
        self._gpu_sample = GpuSample()
        self._classes = classes or ClassAccounts()
        # One that follows nobody yet counts as false.
        self._histories = RequestHistories(self._classes) if histories is None else histories
        self._in_flight: deque[tuple[Any, Decided, int]] = deque()
        self._last_end_ns = 0
        self._classes_written_ns = 0
        self._unaccounted_ns = 0
        self._record = StepRecord(**dict.fromkeys(StepRecord.__dataclass_fields__, 0))

    @property
    def is_kept(self) -> bool:
        """Whether anything is written at all."""
        return self._writer is not None

    @property
    def requests_under_way(self) -> int:
        """Requests that have arrived and not ended."""
        return len(self._histories)

    def adopt(self, policy: Policy | None) -> None:
        """Follow another policy."""
        self._classes.adopt(policy)
        self._write_classes()

    def arrived(self, request: Any) -> None:
        """The engine has taken in a request, or a part of a session."""
        self._histories.arrived(request, time.time_ns())

    def given_up(self, request_ids: Iterable[str]) -> None:
        """These requests cannot keep their TTFT any more."""
        self._histories.given_up(request_ids, time.time_ns())

    def scheduled(
        self, output: Any, decided: Decided, tell_load: Callable[[], EngineLoad], returned_ns: int
    ) -> None:
        """A step was handed to the model.

        Args:
            output: vLLM's ``SchedulerOutput``.
            decided: how it was decided.
            tell_load: tells what the engine has in hand.
            returned_ns: when the engine's own ``schedule()`` returned, on the monotonic clock.
        """
        if not self._in_flight:
            # Else the step before has just been looked at, which wrote it.
            self._write_load(tell_load())
        plan = decided.plan if decided.decision is Decision.ACT else None
        if plan is not None and (plan.late or plan.late_prefills):
            self.given_up((*plan.late, *plan.late_prefills))
        self._histories.scheduled(output, plan.reasons if plan is not None else (), time.time_ns())
        plugin_ns = decided.plan_ns + time.monotonic_ns() - returned_ns
        self._in_flight.append((output, decided, plugin_ns))

    def finished(
        self, output: Any, outputs: Any, tell_load: Callable[[], EngineLoad], ended_ns: int
    ) -> Sequence[str]:
        """The output of a step came back from the model.

        Args:
            output: vLLM's ``SchedulerOutput`` of it.
            outputs: vLLM's ``EngineCoreOutputs`` by client.
            tell_load: tells what the engine has in hand.
            ended_ns: when the engine's own ``update_from_output()`` returned.

        Returns:
            Requests that ended with it.
        """
        now_ns, load = time.time_ns(), tell_load()
        decided, plugin_ns = self._take(output)
        tokens, gone = self._histories.tokens_came(outputs, now_ns)
        # A step without tokens only flushes aborted requests: no model ran.
        if decided is not None and output.total_num_scheduled_tokens > 0:
            plugin_ns += self._unaccounted_ns
            self._unaccounted_ns = 0
            began_ns = max(decided.entered_ns, self._last_end_ns)
            ended = Ended(outcome_of(output), tokens, now_ns, plugin_ns, ended_ns - began_ns)
            self._record = next_record(self._record, decided, ended, load)
            if self._writer is not None:
                self._writer.append(self._record)
        if self._gpus is not None:
            self._gpu_sample = self._gpus.sample(ended_ns, now_ns)
        self._write_load(load)
        # The last step before the engine falls idle leaves nothing unwritten.
        if load.running == 0 or ended_ns - self._classes_written_ns >= CLASSES_PERIOD_NS:
            self._write_classes()
            self._histories.write(now_ns)
            self._classes_written_ns = ended_ns
        self._last_end_ns = ended_ns
        # Writing takes part in the share too; this step's record is out, so the next one has it.
        self.took(time.monotonic_ns() - ended_ns)
        return gone

    def ended(self, requests: Sequence[Any], *, by_client: bool) -> None:
        """The engine has ended requests from outside of a step.

        Args:
            requests: vLLM's requests.
            by_client: whether their clients may have asked for it.
        """
        now_ns = time.time_ns()
        self._histories.ended(requests, now_ns, by_client=by_client)
        self._histories.write(now_ns)
        self._write_classes()

    def took(self, plugin_ns: int) -> None:
        """The plug-in took this time beside a step; the next one has it in its record."""
        self._unaccounted_ns += plugin_ns

    def refused(self, count: int) -> None:
        """Policy files refused so far."""
        self._header = replace(self._header, refused_policies=count)
        self._write_header()

    def set_aside(self, count: int) -> None:
        """Requests that were left to vLLM's own order so far."""
        self._header = replace(self._header, set_aside_requests=count)
        self._write_header()

    def stopped(self) -> None:
        """The engine shuts down."""
        self._header = replace(self._header, state=int(EngineState.STOPPED))
        self._write_header()
        self._write_load(EngineLoad(running=0, waiting=0))

    def give_up(self) -> None:
        """Write no statistics any more, after an error in doing so."""
        self._writer = None
        # Nobody tells it any more which requests have ended.
        self._classes = ClassAccounts()
        self._histories = RequestHistories(self._classes)

    def _take(self, output: Any) -> tuple[Decided | None, int]:
        while self._in_flight:
            scheduled, decided, plugin_ns = self._in_flight.popleft()
            if scheduled is output:
                return decided, plugin_ns
        return None, 0

    def _write_load(self, load: EngineLoad) -> None:
        if self._writer is not None:
            sample = self._gpu_sample
            offered, overhead = load.ratios or (None, None)
            self._writer.write_load(
                Load(
                    time.time_ns(),
                    self._record.step,
                    load.running,
                    load.waiting,
                    sample.utilisation_ppm,
                    sample.memory_bandwidth_ppm,
                    sample.sampled_ns,
                    _told(offered),
                    _told(overhead),
                    _told(load.program_stretch),
                )
            )

    def _write_classes(self) -> None:
        if self._writer is not None:
            self._classes.table.write_changes(self._writer.write_class)

    def _write_header(self) -> None:
        if self._writer is not None:
            self._writer.write_header(self._header)


def _told(ratio: float | None) -> int:
    return NOT_TOLD if ratio is None else ppm(ratio)
