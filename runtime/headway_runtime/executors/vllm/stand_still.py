"""Finds out who stands in front of all others and cannot be admitted even when nothing runs.

vLLM admits in order and stops at the first request that gets no KV blocks. One that needs more of
them than there are, a prompt or an answer that has outgrown the cache before it was preempted,
would stop everybody behind it for ever.
"""

from __future__ import annotations

from typing import Any

from headway_runtime.executors.vllm.readiness import readiness
from headway_runtime.scheduling.view import Readiness

STEPS = 4
"""So many steps in a row have nothing in them. A step or two may: for a request that was preempted
while its tokens were on their way, or when all that run have just been preempted."""


class StandStill:
    """Watches for steps in which nothing runs although requests wait.

    Attributes:
        misfits: ids of requests that were in front then.
    """

    def __init__(self) -> None:
        self.misfits: set[str] = set()
        self._steps = 0

    def scheduled(self, tokens: object, scheduler: Any) -> str | None:
        """A step was scheduled.

        Args:
            tokens: what is in it; false if nothing is.
            scheduler: vLLM's.

        Returns:
            The id of the request that is in the way of all others, if there is one.
        """
        if tokens or scheduler.running or not scheduler.waiting:
            self._steps = 0
            return None
        front = scheduler.waiting[0]
        if readiness(front) is not Readiness.READY:
            return None
        self._steps += 1
        if self._steps < STEPS:
            return None
        self._steps = 0
        self.misfits.add(front.request_id)
        return str(front.request_id)
