"""The scheduler class that vLLM is started with: ``--scheduler-cls``."""

from __future__ import annotations

from typing import Any

from vllm.v1.core.sched.async_scheduler import AsyncScheduler

from headway_runtime.executors.vllm.attachment import attach


class HeadwayScheduler(AsyncScheduler):  # type: ignore[misc]
    """vLLM's scheduler with a plan for every step.

    It extends ``AsyncScheduler``: with ``Scheduler`` as its base, vLLM would schedule each step
    only after the one before it has finished.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._headway = attach(self)

    def schedule(self, *args: Any, **kwargs: Any) -> Any:
        """Schedule one step under its plan; see ``SchedulerInterface.schedule``."""
        stock = super().schedule
        return self._headway.schedule(lambda: stock(*args, **kwargs))

    def update_from_output(self, scheduler_output: Any, model_runner_output: Any) -> Any:
        """Take in a step's output; see ``SchedulerInterface.update_from_output``."""
        stock = super().update_from_output
        return self._headway.update(
            scheduler_output, lambda: stock(scheduler_output, model_runner_output)
        )

    def get_grammar_bitmask(self, scheduler_output: Any) -> Any:
        """Ask for the grammar's bitmask, which vLLM does as soon as a step is launched."""
        self._headway.launched(scheduler_output)
        return super().get_grammar_bitmask(scheduler_output)

    def add_request(self, request: Any) -> None:
        """Take in a request; see ``SchedulerInterface.add_request``."""
        self._headway.arriving(request)
        super().add_request(request)
        self._headway.added(request)

    def finish_requests(self, request_ids: Any, finished_status: Any) -> Any:
        """End requests from outside of a step; see ``SchedulerInterface.finish_requests``."""
        ended = super().finish_requests(request_ids, finished_status)
        # Only the engine itself ends all there are.
        self._headway.ended(ended, by_client=request_ids is not None)
        return ended

    def shutdown(self) -> None:
        """Shut down; see ``SchedulerInterface.shutdown``."""
        self._headway.stopped()
        super().shutdown()
