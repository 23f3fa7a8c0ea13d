"""How a plan is put in force in each range of vLLM versions.

They differ in what holds admission back, and in where requests wait that cannot be admitted yet.
"""

from __future__ import annotations

from typing import Any

from headway_runtime.executors.vllm.adapter import Adapter
from headway_runtime.scheduling.view import StepView


class RunningLimitAdapter(Adapter):
    """vLLM 0.26 to 0.30: admission stops at ``max_num_running_reqs``.

    The same number is asserted not to be below the requests running at the end of the step, so it
    is never set below those that already run: none is admitted, and the batch shrinks as they
    finish.
    """

    first = (0, 26)
    last = (0, 30)
    admission_limit = "max_num_running_reqs"

    def observe(self) -> StepView:
        """The engine before the step, with every waiting request in one queue."""
        self._gather()
        return super().observe()

    def restore(self) -> None:
        """Take back what :meth:`apply` changed."""
        super().restore()
        self._gather()

    def added(self, request: Any) -> None:
        """VLLM has appended a request to ``waiting``, or to a queue of those not ready."""
        skipped = getattr(self._scheduler, "skipped_waiting", None)
        if self._running is not None and skipped:
            self._scheduler.waiting.append(skipped.pop())
        super().added(request)

    def _gather(self) -> None:
        # These versions keep requests that are not ready in a queue of their own and admit them
        # from there before all others, which no limit of a class could stop. Later ones leave them
        # at the front of the one queue.
        skipped = getattr(self._scheduler, "skipped_waiting", None)
        if self._running is not None and skipped:
            self._scheduler.waiting.extendleft(reversed(skipped))
            skipped.clear()

    def _admission(self, max_batch_size: int) -> int:
        return max(super()._admission(max_batch_size), len(self._scheduler.running))


class ActiveLimitAdapter(Adapter):
    """vLLM 0.31 to 0.33: admission stops at ``max_num_active_reqs``, which nothing asserts."""

    first = (0, 31)
    last = (0, 33)
    admission_limit = "max_num_active_reqs"


ADAPTERS: tuple[type[Adapter], ...] = (RunningLimitAdapter, ActiveLimitAdapter)
