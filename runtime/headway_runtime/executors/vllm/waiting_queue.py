"""vLLM's waiting queue, kept in the planner's order without walking through it."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple

from headway_runtime.executors.vllm.lanes import Lanes
from headway_runtime.executors.vllm.request_class import Classifier
from headway_runtime.scheduling.lazy import Lazy
from headway_runtime.scheduling.plan import Placement, Turn
from headway_runtime.scheduling.urgency import BACKGROUND
from headway_runtime.scheduling.view import Urgency, WaitingRequest

MOVES_PER_STEP = 16
"""Requests put in order in one step. Bounds planning when thousands arrive at once or the classes
change; 16 need some 0.2 ms among 10,000 waiting."""


TURNS_PER_STEP = 4
"""Requests brought forward in one step because it is their tenants' turn; each may stand anywhere,
which takes 0.5 ms to find among 10,000."""

NEAR_THE_FRONT = 128
"""No request that stands further behind is found to be late."""


class QueueView(NamedTuple):
    """The queue in the planner's words; see :class:`StepView` for the fields' meaning.

    Attributes:
        settled: urgencies of what stands in front of all lanes.
        unsettled: what is to be put in order now.
        unseen: how many stand behind that.
        front: the settled requests themselves.
        lanes: what waits in each lane, and how urgent it is.
    """

    settled: Sequence[Urgency]
    unsettled: tuple[WaitingRequest, ...]
    unseen: int
    front: Sequence[WaitingRequest] = ()
    lanes: tuple[tuple[Sequence[WaitingRequest], Sequence[Urgency]], ...] = ()


class _Requests(Lazy[WaitingRequest]):
    """A stretch of the queue: mostly read from its front, which takes no look by index."""

    def __init__(self, queue: deque[Any], classifier: Classifier, start: int, stop: int) -> None:
        self._stretch = queue, start, stop
        self._told = told = classifier.waiting
        super().__init__(stop - start, lambda index: told(queue[start + index]))

    def __iter__(self) -> Iterator[WaitingRequest]:
        return map(self._told, islice(*self._stretch))


class WaitingQueue:
    """Knows how much of vLLM's queue is in order: a settled front, lanes, then what has arrived.

    vLLM takes from the front and puts preempted or blocked requests back there, so the settled part
    is only nearly sorted at times; positions are then approximate and the queue stays whole.
    """

    def __init__(self) -> None:
        self._unsettled = 0
        self._lanes = Lanes(0)

    def added(self) -> None:
        """VLLM has appended a request."""
        self._unsettled += 1

    def left(self, request_ids: Iterable[str]) -> None:
        """These requests wait no more."""
        self._lanes.left(request_ids)

    def unsettle(self, queue: deque[Any], lanes: int = 0) -> None:
        """The order means nothing any more, for instance because the classes have changed.

        Args:
            queue: the queue.
            lanes: how many lanes to have from now on.
        """
        self._unsettled = len(queue)
        self._lanes = Lanes(lanes)

    def look(self, queue: deque[Any], classifier: Classifier, *, admits: bool = True) -> QueueView:
        """What is in order, and the requests to put in order in this step.

        Args:
            queue: the queue.
            classifier: tells classes of requests.
            admits: whether the step may admit any; without newcomers nothing else needs a look.
        """
        end = self._settled_count(queue)
        if not admits and not self._unsettled:
            return QueueView((), (), 0)
        if not self._lanes.find(queue, end) and not self._unsettled:
            # Somebody else has moved requests: start again, which costs only a few steps.
            self.unsettle(queue, len(self._lanes))
            end = 0
            self._lanes.find(queue, end)
        shown = range(end, end + min(self._unsettled, MOVES_PER_STEP))
        unsettled = tuple([classifier.waiting(queue[index]) for index in shown])

        def urgencies(start: int, stop: int) -> Sequence[Urgency]:
            return Lazy(stop - start, lambda index: classifier.urgency(queue[start + index]))

        def requests(start: int, stop: int) -> Sequence[WaitingRequest]:
            return _Requests(queue, classifier, start, stop)

        front = self._lanes.front_length
        unseen = self._unsettled - len(unsettled)
        lanes = [(requests(*bounds), urgencies(*bounds)) for bounds in self._lanes.bounds]
        return QueueView(urgencies(0, front), unsettled, unseen, requests(0, front), tuple(lanes))

    def settle(self, queue: deque[Any], placements: Sequence[Placement]) -> None:
        """Carry out placements made for what :meth:`look` showed; none means it is in order."""
        if not self._unsettled:
            return
        first = self._settled_count(queue)
        found = {
            request.request_id: request
            for request in (queue[first + offset] for offset in range(len(placements)))
        }
        moves = [(found[each.request_id], each) for each in placements]
        for _ in moves:
            del queue[first]
        for request, placement in moves:
            self._lanes.insert(queue, request, placement)
        self._pass(queue, first)

    def take_turns(self, queue: deque[Any], turns: Sequence[Turn]) -> None:
        """Bring requests that may run to the front, after :meth:`settle`."""
        self._lanes.take_turns(queue, turns)

    def in_turn(self, queue: deque[Any], requests: Iterable[Any], classifier: Classifier) -> None:
        """Put requests in front of all others without a TTFT, in this order."""
        settled = len(queue) - self._unsettled
        front = range(min(settled, self._lanes.front_length) if self._lanes else settled)
        place = bisect_left(front, BACKGROUND, key=lambda at: classifier.urgency(queue[at])[0])
        moves = 0
        for request in requests:
            if place >= len(queue) or queue[place] is not request:
                moves += 1
                if moves > TURNS_PER_STEP:
                    return
                try:
                    found = queue.index(request)
                except ValueError:
                    # Somebody else has taken it out.
                    continue
                self._lanes.to_front(queue, found, place)
                if found >= settled:
                    self._unsettled -= 1
                    settled += 1
            place += 1

    def bring_forward(self, queue: deque[Any], request_id: str) -> None:
        """Put a request in front of all others."""
        request = self._take_out(queue, request_id, len(queue))
        if request is not None:
            queue.appendleft(request)

    def give_way(self, queue: deque[Any], request_ids: Iterable[str]) -> None:
        """Put requests that stand near the front behind all others, to be put in order anew."""
        for each in request_ids:
            request = self._take_out(queue, each, NEAR_THE_FRONT)
            if request is not None:
                queue.append(request)
                self._unsettled += 1

    def _take_out(self, queue: deque[Any], request_id: str, looks: int) -> Any | None:
        for index in range(min(len(queue) - self._unsettled, looks)):
            request = queue[index]
            if request.request_id == request_id:
                del queue[index]
                return request
        return None

    def pass_over(self, queue: deque[Any]) -> None:
        """Leave what :meth:`look` showed where it is, and do not show it again."""
        self._pass(queue, self._settled_count(queue))

    def restore_arrival_order(self, queue: deque[Any]) -> None:
        """Put everything back into the order vLLM would have kept by itself."""
        in_order = sorted(queue, key=attrgetter("arrival_time"))
        queue.clear()
        queue.extend(in_order)
        self.unsettle(queue)

    def _pass(self, queue: deque[Any], first: int) -> None:
        self._unsettled = max(0, len(queue) - first - MOVES_PER_STEP)

    def _settled_count(self, queue: deque[Any]) -> int:
        length = len(queue)
        self._unsettled = min(self._unsettled, length)
        return length - self._unsettled
