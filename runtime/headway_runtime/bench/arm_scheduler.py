"""A vLLM scheduler that serves every arm in turn: ``--scheduler-cls`` of a benchmarked engine.

Arms without a planner run vLLM's own decisions: the plug-in's control is replaced by one that has
no engine to plan for. Rivals of Headway's planner plan in its place, through the same plug-in.
Other orders of admission are vLLM's own decisions on a queue that was put in order before.
"""

from __future__ import annotations

import logging
import os
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from vllm.v1.core.sched.request_queue import SchedulingPolicy, create_request_queue
from vllm.version import __version__ as engine_version

from headway_runtime.bench.arms import Arm, Order, Seating
from headway_runtime.bench.arms_file import ArmsFile
from headway_runtime.bench.rivals.choice import rival_of, rule_of
from headway_runtime.bench.rule_in_vllm import RuleInVllm
from headway_runtime.bench.static_batch import StaticBatch
from headway_runtime.bench.step_log import StepLog, StepTimes
from headway_runtime.exchange.tenant_seal import TenantSeal
from headway_runtime.executors.vllm.attachment import RUN_DIR_VARIABLE, attach
from headway_runtime.executors.vllm.control import StepControl
from headway_runtime.executors.vllm.plugin import HeadwayScheduler
from headway_runtime.executors.vllm.request_class import CLASS_KEY
from headway_runtime.executors.vllm.request_origin import origin_of

_LOGGER = logging.getLogger("vllm.headway")

STEP_LOG_VARIABLE = "HEADWAY_STEP_LOG"
"""Environment variable that names the step log; without it none is written."""


class ArmScheduler(HeadwayScheduler):
    """The scheduler under test, in one arm at a time.

    An arm is put in force when a request comes to an idle engine, so that a run is never under two.
    """

    max_num_scheduled_tokens: int
    policy: SchedulingPolicy

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._planned = self._headway
        self._stock = _unplanned(self)
        self._arms = ArmsFile(
            Path(os.environ[RUN_DIR_VARIABLE]),
            engine_version,
            is_async=bool(self.scheduler_config.async_scheduling),
        )
        self._seating: Seating | None = None
        self._in_force = ExitStack()
        self._batch: StaticBatch | None = None
        self._rule: RuleInVllm | None = None
        self._seal = TenantSeal.of_run(Path(os.environ[RUN_DIR_VARIABLE]))
        self._budget = self.max_num_scheduled_tokens
        # What holds admission back has another name from 0.31 on.
        self._admission = next(
            name for name in ("max_num_active_reqs", "max_num_running_reqs") if hasattr(self, name)
        )
        self._admitted = getattr(self, self._admission)
        self._threshold = self.scheduler_config.long_prefill_token_threshold
        path = os.environ.get(STEP_LOG_VARIABLE)
        self._steps = StepTimes(StepLog(Path(path))) if path else None

    def add_request(self, request: Any) -> None:
        """Take in a request; see ``SchedulerInterface.add_request``."""
        if self.get_request_counts() == (0, 0):
            self._look_for_another_arm()
        if self._seating is not None:
            request.priority = self._seating.priorities.get(_class_of(request), 0)
        if self._rule is not None:
            self._rule.arrived(request)
        super().add_request(request)

    def schedule(self, *args: Any, **kwargs: Any) -> Any:
        """Schedule one step; see ``SchedulerInterface.schedule``."""
        if self._batch is not None:
            limit = self._batch.limit(self.requests, self.waiting)
            setattr(self, self._admission, limit or self._admitted)
        if self._rule is not None:
            self._rule.arrange(self.waiting, self.requests, time.time())
        if self._steps is None:
            return super().schedule(*args, **kwargs)
        self._steps.entered()
        output = super().schedule(*args, **kwargs)
        self._steps.scheduled(self, output)
        return output

    def _update_after_schedule(self, scheduler_output: Any) -> None:
        # Here the step is decided, and neither its tokens are counted as computed nor the plan's
        # budget is taken back.
        if self._steps is not None:
            self._steps.decided(self, scheduler_output)
        if self._rule is not None:
            self._rule.stepped(scheduler_output.num_scheduled_tokens, time.time())
        super()._update_after_schedule(scheduler_output)

    def get_grammar_bitmask(self, scheduler_output: Any) -> Any:
        """The engine has launched the step; see ``SchedulerInterface.get_grammar_bitmask``."""
        if self._steps is not None:
            self._steps.launched(scheduler_output)
        return super().get_grammar_bitmask(scheduler_output)

    def update_from_output(self, scheduler_output: Any, model_runner_output: Any) -> Any:
        """Take in a step's output; see ``SchedulerInterface.update_from_output``."""
        if self._steps is not None:
            self._steps.ended(scheduler_output)
        outputs = super().update_from_output(scheduler_output, model_runner_output)
        if self._rule is not None:
            stepped = scheduler_output.num_scheduled_tokens
            self._rule.ended([each for each in stepped if each not in self.requests])
        if self._steps is not None and not self.has_unfinished_requests():
            self._steps.idle()
        return outputs

    def finish_requests(self, request_ids: Any, finished_status: Any) -> Any:
        """End requests from outside of a step; see ``SchedulerInterface.finish_requests``."""
        before = set(self.requests) if self._rule is not None else set()
        ended = super().finish_requests(request_ids, finished_status)
        if self._rule is not None:
            self._rule.ended(before - set(self.requests))
        if self._steps is not None and not self.has_unfinished_requests():
            self._steps.idle()
        return ended

    def shutdown(self) -> None:
        """Shut down; see ``SchedulerInterface.shutdown``."""
        self._in_force.close()
        super().shutdown()

    def _look_for_another_arm(self) -> None:
        seating = self._arms.wanted()
        if seating is None or seating == self._seating:
            return
        self._seating = seating
        self._seat(seating.arm)
        rule = rule_of(seating.arm, seating.weights)
        if rule is not None:
            self._rule = RuleInVllm(rule, lambda request: origin_of(request, self._seal))
        else:
            self._rule = None
        if self._steps is not None:
            self._steps.serial = seating.serial
        self._arms.applied(seating)
        _LOGGER.info("Arm %s is in force, run %d", seating.arm.name, seating.serial)

    def _seat(self, arm: Arm) -> None:
        """Put an arm in force in an idle scheduler, from whichever arm was before."""
        rival = rival_of(arm)
        self._in_force.close()
        self._in_force.enter_context(rival.in_force())
        self._planned.planner = rival.planner
        self._headway = self._planned if arm.is_planned else self._stock
        self._batch = StaticBatch(arm.batch) if arm.batch is not None else None
        self.max_num_scheduled_tokens = min(arm.token_budget or self._budget, self._budget)
        setattr(self, self._admission, self._admitted)
        self.scheduler_config.long_prefill_token_threshold = (
            arm.long_prefill_threshold or self._threshold
        )
        # Plans need the queue in their own order.
        policy = SchedulingPolicy((Order.FCFS if arm.is_planned else arm.order).value)
        if policy is not self.policy:
            self.policy = policy
            # Of requests that are not ready; named so up to 0.30, and later otherwise.
            for name in ("waiting", "skipped_waiting", "kv_holding_waiting"):
                if hasattr(self, name):
                    setattr(self, name, create_request_queue(policy))


def _unplanned(scheduler: Any) -> StepControl:
    """A control that leaves the scheduler alone, as in an engine without a run directory."""
    run_dir = os.environ.pop(RUN_DIR_VARIABLE)
    try:
        return attach(scheduler)
    finally:
        os.environ[RUN_DIR_VARIABLE] = run_dir


def _class_of(request: Any) -> str:
    parameters = request.sampling_params
    extra = parameters.extra_args if parameters is not None else None
    return str((extra or {}).get(CLASS_KEY, ""))
