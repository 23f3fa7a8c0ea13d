"""What an engine must offer to be driven by plans."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from headway_runtime.policy import Policy
from headway_runtime.scheduling.plan import StepPlan
from headway_runtime.scheduling.view import Limits, StepView


class Executor(Protocol):
    """An engine, seen from the planner.

    A step goes ``observe`` -> plan -> ``apply`` -> the engine's own step -> ``restore``. None of
    these may take requests out of the batch, raise a limit above its ceiling, or lose a request
    when it fails half-way.
    """

    @property
    def ceilings(self) -> Limits:
        """Limits the engine was started with."""
        ...

    def adopt(self, policy: Policy | None) -> None:
        """Follow another policy from the next step on; None returns to the engine's own order."""
        ...

    def observe(self) -> StepView:
        """The engine before the step. Cheap whatever the length of the queue.

        Must follow :meth:`adopt` with a policy.
        """
        ...

    def apply(self, plan: StepPlan) -> None:
        """Put the plan in force for one step."""
        ...

    def pass_over(self) -> None:
        """The step was planned but the engine decides it alone: do not show the same work again."""
        ...

    def limit_prompts(self, prompt_tokens: int) -> Limits:
        """The engine decides one step alone, with so many tokens at most beside those of decodes.

        Returns:
            The limits that are in force.
        """
        ...

    def restore(self) -> None:
        """Take back every limit that was changed for one step. Harmless without one."""
        ...

    def added(self, request: Any) -> None:
        """The engine has put this request at the end of its waiting queue."""
        ...

    def scheduled(self, output: Any, decided_s: float) -> None:
        """The engine has scheduled a step whose decision began at this time.

        Times are seconds of the monotonic clock.
        """
        ...

    def launched(self, at_s: float) -> None:
        """The launch of the step scheduled last is over."""
        ...

    def looked_at(self, output: Any, at_s: float) -> None:
        """The engine has begun to look at the output of this step at this time."""
        ...

    def ended(self, request_ids: Iterable[str]) -> None:
        """These requests are gone."""
        ...

    def left(self, request_ids: Iterable[str]) -> None:
        """These requests wait no more: they run, or they have ended."""
        ...
