"""vLLM's waiting queue, kept in the planner's order without walking through it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, overload

from headway_runtime.executors.vllm.request_class import Classifier
from headway_runtime.scheduling.plan import Placement
from headway_runtime.scheduling.view import Urgency, WaitingRequest

MOVES_PER_STEP = 32
"""Requests put in order in one step. Bounds planning when thousands arrive at once or the classes
change; 32 need some 0.3 ms among 10,000 waiting."""


class _Settled(Sequence[Urgency]):
    """Urgencies of the first ``count`` requests of the queue, computed only where looked at."""

    def __init__(self, queue: deque[Any], count: int, urgency: Callable[[Any], Urgency]) -> None:
        self._queue = queue
        self._count = count
        self._urgency = urgency

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Urgency: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Urgency]: ...
    def __getitem__(self, index: int | slice) -> Urgency | Sequence[Urgency]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(self._count))]
        return self._urgency(self._queue[index])


class WaitingQueue:
    """Knows how much of vLLM's queue is in order: a settled front, then what has arrived since.

    vLLM takes from the front and puts preempted or blocked requests back there, so the settled part
    is only nearly sorted at times; positions are then approximate and the queue stays whole.
    """

    def __init__(self) -> None:
        self._unsettled = 0

    def added(self) -> None:
        """VLLM has appended a request."""
        self._unsettled += 1

    def unsettle(self, queue: deque[Any]) -> None:
        """The order means nothing any more, for instance because the classes have changed."""
        self._unsettled = len(queue)

    def look(
        self, queue: deque[Any], classifier: Classifier
    ) -> tuple[Sequence[Urgency], tuple[WaitingRequest, ...]]:
        """The settled urgencies, and the requests to put in order in this step."""
        settled = self._settled_count(queue)
        unsettled = range(settled, min(len(queue), settled + MOVES_PER_STEP))
        return (
            _Settled(queue, settled, classifier.urgency),
            tuple(classifier.waiting(queue[index]) for index in unsettled),
        )

    def settle(self, queue: deque[Any], placements: Sequence[Placement]) -> None:
        """Carry out placements made for what :meth:`look` showed; none means it is in order."""
        first = self._settled_count(queue)
        found = {
            request.request_id: request
            for request in (queue[first + offset] for offset in range(len(placements)))
        }
        moves = [(found[each.request_id], each.position) for each in placements]
        for _ in moves:
            del queue[first]
        for request, position in moves:
            queue.insert(position, request)
        self._pass(queue, first)

    def pass_over(self, queue: deque[Any]) -> None:
        """Leave what :meth:`look` showed where it is, and do not show it again."""
        self._pass(queue, self._settled_count(queue))

    def restore_arrival_order(self, queue: deque[Any]) -> None:
        """Put everything back into the order vLLM would have kept by itself."""
        in_order = sorted(queue, key=attrgetter("arrival_time"))
        queue.clear()
        queue.extend(in_order)
        self._unsettled = len(queue)

    def _pass(self, queue: deque[Any], first: int) -> None:
        self._unsettled = max(0, len(queue) - first - MOVES_PER_STEP)

    def _settled_count(self, queue: deque[Any]) -> int:
        self._unsettled = min(self._unsettled, len(queue))
        return len(queue) - self._unsettled
