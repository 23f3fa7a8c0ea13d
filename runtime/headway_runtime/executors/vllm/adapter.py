"""How a plan is put in force, whatever the version of vLLM.

All supported versions read ``max_num_scheduled_tokens`` at the start of ``schedule()`` as the
step's token budget, and take requests from the front of ``waiting``, a ``deque``, under scheduling
policy fcfs. What differs is in :mod:`adapters`.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar

from headway_runtime.executors.vllm.board_keeper import BoardKeeper
from headway_runtime.executors.vllm.charges import Charges
from headway_runtime.executors.vllm.chunk_limits import chunk_limits
from headway_runtime.executors.vllm.running_classes import RunningClasses
from headway_runtime.executors.vllm.waiting_queue import QueueView
from headway_runtime.executors.vllm.waiting_room import WaitingRoom, limited_classes
from headway_runtime.executors.vllm.work_support import work_watch
from headway_runtime.executors.vllm.work_watch import WorkWatch
from headway_runtime.policy import Policy, TrafficClass
from headway_runtime.scheduling.admission.refusal import Board
from headway_runtime.scheduling.admission.waits import board as board_of
from headway_runtime.scheduling.plan import StepPlan
from headway_runtime.scheduling.reserve import KV_FOR_BACKGROUND
from headway_runtime.scheduling.timing.pace import tightest_ttft_s
from headway_runtime.scheduling.timing.token_load import LoadRatios
from headway_runtime.scheduling.view import NO_TENANTS, Lane, Limits, StepView, Work

Release = tuple[int, int]
"""Major and minor version of vLLM."""


class Adapter:
    """What all ranges share; implements :class:`headway_runtime.executors.interface.Executor`.

    Attributes:
        first: oldest release of the range.
        last: newest release of the range.
        admission_limit: name of the scheduler's attribute that holds admission back.
        room: who waits.
        board: tells those who let requests in how long they would wait; None tells nobody.
    """

    first: ClassVar[Release]
    last: ClassVar[Release]
    admission_limit: ClassVar[str]

    def __init__(self, scheduler: Any) -> None:
        self.room = WaitingRoom(scheduler)
        self.board: BoardKeeper | None = None
        self._classes: tuple[TrafficClass, ...] = ()
        self._looked_s = 0.0
        self._scheduler = scheduler
        self._chunk_limits = chunk_limits(scheduler)
        self._work = work_watch(scheduler) if self._chunk_limits is not None else None
        if self._work is not None:
            self._work.charges = Charges(self.room.tenancy, self.room.origins)
        self._running: RunningClasses | None = None
        self._changed: Limits | None = None
        self._ceilings = self._wanted = self._limits()
        self._tokens_per_decode = 1 + getattr(scheduler, "num_spec_tokens", 0)

    @classmethod
    def missing(cls, scheduler: Any) -> str | None:
        """The first thing this adapter relies on that the scheduler does not have, or None."""
        numbers = ("max_num_scheduled_tokens", "max_num_running_reqs", cls.admission_limit)
        for name in numbers:
            if not isinstance(getattr(scheduler, name, None), int):
                return name
        for name, kind in (("waiting", deque), ("running", list)):
            if not isinstance(getattr(scheduler, name, None), kind):
                return name
        return None

    @property
    def ceilings(self) -> Limits:
        """Limits the engine was started with."""
        return self._ceilings

    def adopt(self, policy: Policy | None) -> None:
        """Follow another policy."""
        limited = limited_classes(policy)
        self._running = RunningClasses(policy) if policy is not None and limited else None
        self._wanted = self._wanted_by(policy)
        self._gather()
        self.room.adopt(policy)
        self._classes = policy.classes if policy is not None else ()
        if self.board is not None:
            self.board.adopt(policy)
        if self._work is not None:
            self._work.reclassified(self.room.class_of)
            self._work.tightest_ttft_s = tightest_ttft_s(self._classes)
            self._work.load.adopt(policy)

    def observe(self) -> StepView:
        """The engine before the step."""
        wanted, scheduler = self._wanted, self._scheduler
        running = len(scheduler.running)
        admits = running < wanted.max_batch_size and bool(scheduler.waiting)
        queue = self.room.look(admits=admits)
        work = self._work_to_plan()
        return StepView(
            ceilings=self._ceilings,
            wanted=wanted,
            running=running,
            tokens_per_decode=self._tokens_per_decode,
            settled=queue.settled,
            unsettled=queue.unsettled,
            lanes=self._lanes(queue, admits=admits) if queue.lanes else (),
            front=queue.front,
            unseen=queue.unseen,
            work=work,
            tenants=self.room.tenants() if work is not None else NO_TENANTS,
        )

    def _wanted_by(self, policy: Policy | None) -> Limits:
        if policy is None:
            return self._ceilings
        return Limits(
            policy.token_budget or self._ceilings.token_budget,
            policy.max_batch_size or self._ceilings.max_batch_size,
        )

    def _work_to_plan(self) -> Work | None:
        """What is in hand; None where no prompt is to be computed, and blocks are not short.

        Most steps of an engine that is not full only decode, in which nothing is to be decided.
        """
        if self._work is None:
            return None
        kv_usage = self._scheduler.kv_cache_manager.usage
        is_idle = not (self._work.has_prompts or self._scheduler.get_request_counts()[1])
        if is_idle and kv_usage < KV_FOR_BACKGROUND:
            return None
        return self._work.work(time.monotonic(), time.time(), kv_usage)

    def _lanes(self, queue: QueueView, *, admits: bool) -> tuple[Lane, ...]:
        if self._running is None:
            return ()
        names = self._running.names
        # In a full batch nobody needs to know who runs.
        room = self._running.room(self._scheduler.running) if admits else [0] * len(names)
        lanes = zip(names, room, queue.lanes, self._running.have_ttft, strict=True)
        return tuple(Lane(name, free, *waiting, ttft) for name, free, waiting, ttft in lanes)

    def apply(self, plan: StepPlan) -> None:
        """Put the plan in force for one ``schedule()``."""
        self.room.apply(plan)
        if self._work is not None:
            if plan.carried is not None:
                self._work.carried = plan.carried
            self._work.is_to_admit = plan.admits
            self._work.give_up(plan.late_prefills)
            if plan.chunks and self._chunk_limits is not None:
                self._chunk_limits.set(plan.chunks)
            if plan.background_last:
                self._work.background_last(self._scheduler.running)
        found = self._limits()
        self._changed = found
        self._set(
            min(found.token_budget, plan.limits.token_budget),
            min(found.max_batch_size, self._admission(plan.limits.max_batch_size)),
        )

    def pass_over(self) -> None:
        """Leave the step to vLLM although it was planned."""
        self.room.pass_over()

    def limit_prompts(self, prompt_tokens: int) -> Limits:
        """Leave one ``schedule()`` to vLLM, with so many tokens beside those of decodes."""
        found = self._limits()
        decode_tokens = len(self._scheduler.running) * self._tokens_per_decode
        budget = min(found.token_budget, decode_tokens + prompt_tokens)
        limits = Limits(budget, min(found.max_batch_size, self._wanted.max_batch_size))
        self._changed = found
        self._set(limits.token_budget, self._admission(limits.max_batch_size))
        if self._work is not None and self._chunk_limits is not None:
            # Else a long prompt that stands in front of those that decode takes their tokens too.
            self._chunk_limits.set(self._work.chunks_within(prompt_tokens))
        return limits

    def restore(self) -> None:
        """Take back what was changed for one step."""
        if self._changed is not None:
            self._set(self._changed.token_budget, self._changed.max_batch_size)
            self._changed = None
        if self._chunk_limits is not None:
            self._chunk_limits.clear()

    def added(self, request: Any) -> None:
        """VLLM has appended a request to ``waiting``."""
        is_request = self.room.added(request)
        if is_request and self._work is not None and request.request_id not in self.room.set_aside:
            load = self._work.load
            load.arrived(request.request_id, request.num_tokens, time.monotonic())

    def scheduled(self, output: Any, decided_s: float) -> None:
        """VLLM has scheduled a step, just before which it took in what had come."""
        self._looked_s = decided_s
        self.room.scheduled(output)
        if self._work is None:
            return
        if output.preempted_req_ids:
            self._work.stopped(output.preempted_req_ids)
        new, resumed = output.scheduled_new_reqs, output.scheduled_cached_reqs.resumed_req_ids
        for name in (*(each.req_id for each in new), *resumed):
            self._admitted(name, output.num_scheduled_tokens.get(name, 0))
        if not (new or resumed):
            self._work.nobody_admitted()
        self._work.is_to_admit = False
        self._work.scheduled(output.num_scheduled_tokens, decided_s, self._scheduler.running)

    def launched(self, at_s: float) -> None:
        """The launch of the step scheduled last is over."""
        if self._work is not None:
            self._work.clock.launched(at_s)

    def looked_at(self, output: Any, at_s: float) -> None:
        """VLLM has begun to look at the output of a step at this time, and has taken it in."""
        if self._work is not None:
            epoch_s = time.time() - time.monotonic() + at_s
            self._work.looked_at(output.num_scheduled_tokens, at_s, epoch_s)
            if self.board is not None:
                self._renew(self.board, self._work)

    def _renew(self, board: BoardKeeper, work: WorkWatch) -> None:
        """Let those who let requests in know what there is."""
        running, waiting = self._scheduler.get_request_counts()
        now_s = time.monotonic()
        board.renew(now_s, lambda: self._board(work, now_s), is_idle=not (running or waiting))

    def _board(self, work: WorkWatch, now_s: float) -> Board:
        usage = self._scheduler.kv_cache_manager.usage
        in_hand = work.work(now_s, time.time(), usage)
        queued = self.room.queued(self._wanted.max_batch_size - len(self._scheduler.running))
        board = board_of(in_hand, queued, self._classes, self.room.tenants())
        # What came since is not on it.
        return replace(board, written_s=in_hand.now_s - (now_s - self._looked_s))

    def load_ratios(self, waiting: int) -> LoadRatios | None:
        """What is offered to the engine, of which so many requests wait; None where not told."""
        if self._work is None:
            return None
        return self._work.load.ratios(time.monotonic(), self._work.clock.step_time, waiting)

    @property
    def program_stretch(self) -> float | None:
        """Mean time of programs over the time since their calls were first served, if any ended."""
        learning = self.room.origins.programs.learning
        return learning.mean_stretch if learning.programs else None

    def ended(self, request_ids: Iterable[str]) -> None:
        """These requests are gone."""
        gone = tuple(request_ids)
        self.room.ended(gone)
        if self._work is not None:
            self._work.ended(gone)

    def left(self, request_ids: Iterable[str]) -> None:
        """These requests wait no more: they run, or they have ended."""
        self.room.left(request_ids)

    def _admitted(self, request_id: str, tokens: int) -> None:
        is_late = self.room.admitted(request_id)
        if self._work is None:
            return
        try:
            request = self._scheduler.requests[request_id]
            self._work.admitted(
                request,
                self.room.class_of(request),
                is_late=is_late,
                standing=self.room.origins.of(request_id),
                cached_tokens=request.num_computed_tokens - tokens,
            )
        except Exception as error:  # noqa: BLE001 - others were admitted as well
            self.room.set_aside.add(request_id, error)

    def _gather(self) -> None:
        """Bring requests back into the queue that vLLM keeps elsewhere; only with class limits."""

    def _admission(self, max_batch_size: int) -> int:
        """The admission limit's value for this batch size.

        VLLM counts paused streaming sessions among what it limits: they hold a slot but are in no
        batch, and with a low batch size they would shut everybody out until their clients speak.
        """
        return max_batch_size + int(getattr(self._scheduler, "num_waiting_for_streaming_input", 0))

    def _limits(self) -> Limits:
        return Limits(
            self._scheduler.max_num_scheduled_tokens,
            getattr(self._scheduler, self.admission_limit),
        )

    def _set(self, token_budget: int, max_batch_size: int) -> None:
        self._scheduler.max_num_scheduled_tokens = token_budget
        setattr(self._scheduler, self.admission_limit, max_batch_size)
