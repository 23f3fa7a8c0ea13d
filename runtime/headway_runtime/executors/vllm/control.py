"""What happens around each step of the engine: follow the policy, plan, apply, restore, record."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from headway_runtime.exchange.policy_watch import PolicyWatch
from headway_runtime.exchange.step_record import Decision
from headway_runtime.executors.interface import Executor
from headway_runtime.executors.vllm.crash_watch import CrashWatch
from headway_runtime.executors.vllm.journal import Journal
from headway_runtime.executors.vllm.step_account import Decided, EngineLoad
from headway_runtime.policy import Mode, Policy
from headway_runtime.scheduling.breaker import Breaker
from headway_runtime.scheduling.plan import StepPlan
from headway_runtime.scheduling.planner import Planner, PlanOverdueError, plan_step
from headway_runtime.scheduling.unplanned import Unplanned
from headway_runtime.scheduling.view import Limits

_LOGGER = logging.getLogger("vllm.headway")

PLAN_CPU_DEADLINE_NS = 2_000_000
"""Processor time that a plan may take; the engine decides the step itself after that.

Processor time, since on a busy machine the engine's thread may be off its core for longer than
this, which says nothing about the plan.
"""

PLAN_WALL_DEADLINE_NS = 50_000_000
"""Time that a plan may take whatever the machine does."""

ARRIVAL_FOLLOWS_AFTER_NS = 100_000_000
"""An idle engine looks for another policy when a request comes, whose class depends on it; one that
runs steps has just looked."""

_WITHOUT_A_PLAN = (Decision.LATE, Decision.FAILED, Decision.BREAKER)

_Answer = TypeVar("_Answer")
_Outcome = tuple[Decision, StepPlan | None]


class StepControl:
    """Drives one scheduler through one executor.

    Whatever goes wrong in here costs the plan of a step, never the step.

    Attributes:
        planner: what plans steps; another one is put in its place only to compare it.

    Args:
        executor: the engine; None when plans are not supported in it, and then it is only recorded.
        ceilings: limits the engine was started with.
        watch: the policy.
        journal: where steps are recorded.
        load: asks the engine what it has in hand.
        crashes: keeps who is under way in case the engine dies; None keeps nobody.
    """

    def __init__(  # noqa: PLR0913 - each is one part of what happens around a step
        self,
        executor: Executor | None,
        ceilings: Limits,
        watch: PolicyWatch,
        journal: Journal,
        load: Callable[[], EngineLoad],
        *,
        crashes: CrashWatch | None = None,
    ) -> None:
        self._crashes = crashes
        self.planner: Planner = plan_step
        self._executor = executor
        self._ceilings = ceilings
        self._watch = watch
        self._journal = journal
        self._load = load
        self._breaker = Breaker()
        self._unplanned = Unplanned()
        self._planned_steps = 0
        self._adopted: Policy | None = None
        self._followed_ns = -ARRIVAL_FOLLOWS_AFTER_NS

    def schedule(self, stock: Callable[[], Any]) -> Any:
        """Run ``stock``, the engine's own ``schedule()``, under the plan for this step."""
        decided = self._decide(time.monotonic_ns())
        try:
            output = stock()
        except Exception as error:
            self._watch_crashes(CrashWatch.failed, error)
            raise
        finally:
            returned_ns = time.monotonic_ns()
            if self._executor is not None:
                self._executor.restore()
        self._watch_crashes(CrashWatch.scheduled, output)
        if self._executor is not None:
            self._tell(_tell_admitted, self._executor, output)
            self._tell(self._executor.scheduled, output, decided.entered_ns / 1e9)
        self._record(self._journal.scheduled, output, decided, self._load, returned_ns)
        return output

    def update(self, output: Any, stock: Callable[[], Any]) -> Any:
        """Run ``stock``, the engine's own ``update_from_output()`` for this scheduler output."""
        entered_s = time.monotonic_ns() / 1e9
        try:
            outputs = stock()
        except Exception as error:
            self._watch_crashes(CrashWatch.failed, error)
            raise
        ended_ns = time.monotonic_ns()
        self._watch_crashes(CrashWatch.tokens_came, outputs)
        if self._executor is not None:
            self._tell(self._executor.looked_at, output, entered_s)
        gone = self._record(self._journal.finished, output, outputs, self._load, ended_ns)
        if gone is None:
            # Without statistics nobody else has looked.
            gone = self._tell(_ended, outputs)
        if gone:
            self._tell_gone(gone)
        return outputs

    def launched(self, output: Any) -> None:
        """The engine has launched the step it scheduled last, or what it could of it."""
        is_whole = not getattr(output, "pending_structured_output_tokens", False)
        if is_whole and self._executor is not None:
            self._tell(self._executor.launched, time.monotonic_ns() / 1e9)

    def arriving(self, request: Any) -> None:
        """The engine is about to take in a request."""
        if self._watch.policy is None:
            self._follow(time.monotonic_ns())
        policy = self._watch.policy
        if policy is not None and policy.mode is Mode.ACT:
            # Else nobody is tried, and having been there twice would prove nothing.
            self._watch_crashes(CrashWatch.arriving, request)

    def added(self, request: Any) -> None:
        """The engine has taken in a request."""
        entered_ns = time.monotonic_ns()
        if self._executor is not None:
            self._tell(self._executor.added, request)
        self._watch_crashes(CrashWatch.added, request)
        if entered_ns - self._followed_ns > ARRIVAL_FOLLOWS_AFTER_NS:
            self._follow(entered_ns)
        self._record(self._journal.arrived, request)
        self._journal.took(time.monotonic_ns() - entered_ns)

    def ended(self, requests: Sequence[Any], *, by_client: bool) -> None:
        """The engine has ended requests from outside of a step.

        Args:
            requests: vLLM's requests.
            by_client: whether their clients may have asked for it.
        """
        entered_ns = time.monotonic_ns()
        if by_client:
            self._watch_crashes(CrashWatch.given_up, requests)
        self._tell_gone([each.request_id for each in requests])
        self._record(lambda: self._journal.ended(requests, by_client=by_client))
        self._journal.took(time.monotonic_ns() - entered_ns)

    def stopped(self) -> None:
        """The engine shuts down."""
        self._record(self._journal.stopped)

    def _decide(self, entered_ns: int) -> Decided:
        decision, plan = Decision.STOCK, None
        self._follow(entered_ns)
        if self._executor is not None:
            decision, plan = self._guarded(self._executor, entered_ns)
        policy = self._watch.policy
        return Decided(
            decision=decision,
            stamp=policy.stamp if policy is not None and self._executor is not None else None,
            plan=plan,
            limits=self._limits(decision, plan),
            breaker_open=decision is Decision.BREAKER,
            entered_ns=entered_ns,
            plan_ns=time.monotonic_ns() - entered_ns,
        )

    def _limits(self, decision: Decision, plan: StepPlan | None) -> Limits:
        """Limits the engine runs the step with."""
        if plan is not None and decision is Decision.ACT:
            self._unplanned.planned(plan)
            return plan.limits
        prompt_tokens = self._unplanned.prompt_tokens
        policy = self._watch.policy
        acts = policy is not None and policy.mode is Mode.ACT
        if self._executor is None or prompt_tokens is None or not acts:
            return self._ceilings
        if decision not in _WITHOUT_A_PLAN:
            return self._ceilings
        return self._tell(self._executor.limit_prompts, prompt_tokens) or self._ceilings

    @staticmethod
    def _overdue(entered_ns: int) -> Callable[[], bool]:
        cpu_deadline_ns = time.thread_time_ns() + PLAN_CPU_DEADLINE_NS
        earliest_ns = entered_ns + min(PLAN_CPU_DEADLINE_NS, PLAN_WALL_DEADLINE_NS)
        wall_deadline_ns = entered_ns + PLAN_WALL_DEADLINE_NS

        def is_overdue() -> bool:
            # Processor time cannot have passed sooner, and takes much longer to ask for.
            now_ns = time.monotonic_ns()
            if now_ns <= earliest_ns:
                return False
            return now_ns > wall_deadline_ns or time.thread_time_ns() > cpu_deadline_ns

        return is_overdue

    def _guarded(self, executor: Executor, entered_ns: int) -> _Outcome:
        try:
            return self._plan(executor, entered_ns)
        except PlanOverdueError:
            failure = Decision.LATE
        except Exception:
            # The engine must run its step whatever is wrong with the plan.
            _LOGGER.exception("Headway could not plan a step")
            failure = Decision.FAILED
        executor.restore()
        only_late = failure is Decision.LATE
        self._breaker.failed(self._planned_steps, entered_ns / 1e9, only_late=only_late)
        return failure, None

    def _plan(self, executor: Executor, entered_ns: int) -> _Outcome:
        policy = self._watch.policy
        if policy is not self._adopted:
            executor.adopt(policy)
            self._adopted = policy
        if policy is None:
            return Decision.NO_POLICY, None
        if policy.mode is Mode.OFF:
            return Decision.OFF, None
        if self._breaker.is_open(entered_ns / 1e9):
            return Decision.BREAKER, None
        self._planned_steps += 1
        is_overdue = self._overdue(entered_ns)
        plan = self.planner(executor.observe(), is_overdue)
        if policy.mode is Mode.SHADOW:
            executor.pass_over()
            return Decision.SHADOW, plan
        executor.apply(plan)
        return Decision.ACT, plan

    def _follow(self, now_ns: int) -> None:
        """Look for another policy."""
        self._followed_ns = now_ns
        refused_before = self._watch.refused
        try:
            changed = self._watch.refresh()
        except Exception:
            _LOGGER.exception("Headway could not look for another policy")
            return
        if changed:
            self._record(lambda: self._journal.adopt(self._watch.policy))
        if self._watch.refused != refused_before:
            self._record(lambda: self._journal.refused(self._watch.refused))

    def _tell_gone(self, request_ids: Sequence[str]) -> None:
        """Tell which requests have ended."""
        self._watch_crashes(CrashWatch.ended, request_ids)
        if self._executor is not None:
            self._tell(self._executor.left, request_ids)
            self._tell(self._executor.ended, request_ids)

    def _watch_crashes(self, event: Callable[..., None], told: Any) -> None:
        """Keep who is under way; once that fails, nobody is kept any more."""
        if self._crashes is None:
            return
        try:
            event(self._crashes, told)
        except Exception:
            self._crashes = None
            _LOGGER.exception("Headway does not keep who is under way from now on")

    @staticmethod
    def _tell(event: Callable[..., _Answer], *arguments: Any) -> _Answer | None:
        """Tell the executor what has become of a step; None where that fails."""
        try:
            return event(*arguments)
        except Exception:
            # Its plans are worse from now on, the steps are not. It finds out by itself where its
            # order is not what it was.
            _LOGGER.exception("Headway has lost sight of what the engine has in hand")
            return None

    def _record(self, write: Callable[..., _Answer], *arguments: Any) -> _Answer | None:
        """Write down what has happened; None where nothing is written."""
        if not self._journal.is_kept:
            return None
        try:
            return write(*arguments)
        except Exception:
            # Statistics are worth less than the step they are about.
            _LOGGER.exception("Headway writes no statistics from now on")
            self._journal.give_up()
            return None


def _tell_admitted(executor: Executor, output: Any) -> None:
    """Which requests a ``SchedulerOutput`` takes from the waiting queue."""
    resumed = output.scheduled_cached_reqs.resumed_req_ids
    if output.scheduled_new_reqs or resumed:
        executor.left([*(each.req_id for each in output.scheduled_new_reqs), *resumed])


def _ended(outputs: Any) -> Sequence[str]:
    """Requests that vLLM's ``EngineCoreOutputs`` say have ended."""
    return [
        each.request_id
        for client in outputs.values()
        for each in client.outputs
        if each.finish_reason is not None
    ]
