"""Stretches of vLLM's waiting queue in which requests of classes with a limit wait."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from headway_runtime.scheduling.plan import LetIn, Placement, Stay, Turn

_FRONT = -1


class Lanes:
    """Lanes behind the front of the queue, one after the other.

    Which request is in which lane is remembered by its id, and where a lane begins is found by
    bisection: vLLM adds and removes requests as it likes, and no position lasts longer than a step.

    Args:
        count: how many there are.
    """

    def __init__(self, count: int) -> None:
        self._starts = [0] * count
        self._end = 0
        self._lane_of: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._starts)

    @property
    def front_length(self) -> int:
        """Requests in front of all lanes."""
        return self._starts[0] if self._starts else self._end

    @property
    def bounds(self) -> list[tuple[int, int]]:
        """First index of each lane and the one behind its last."""
        return list(pairwise((*self._starts, self._end))) if self._starts else []

    def find(self, queue: deque[Any], end: int) -> bool:
        """Find the lanes in the first ``end`` requests; whether all that belongs there is there."""
        self._end = end
        lane_of = self._lane_of
        if not lane_of:
            self._starts = [end] * len(self)
            return True

        def lane_at(index: int) -> int:
            return lane_of.get(queue[index].request_id, _FRONT)

        indexes = range(end)
        self._starts = [bisect_left(indexes, lane, key=lane_at) for lane in range(len(self))]
        return end - self.front_length == len(lane_of)

    def left(self, request_ids: Iterable[str]) -> None:
        """These requests are in no lane any more."""
        if self._lane_of:
            for each in request_ids:
                self._lane_of.pop(each, None)

    def insert(self, queue: deque[Any], request: Any, placement: Placement) -> None:
        """Put a request at its place, in front or in a lane."""
        lane = placement.lane
        if lane is None:
            queue.insert(placement.position, request)
            self._shift(0, 1)
        else:
            self._put(queue, request, lane, placement.position)

    def take_turns(self, queue: deque[Any], turns: Sequence[Turn]) -> None:
        """Walk along the front as decided."""
        index = 0
        for turn in turns:
            if isinstance(turn, Stay):
                index += 1
            elif isinstance(turn, LetIn):
                place = self._starts[turn.lane]
                request = queue[place]
                del queue[place]
                queue.insert(index, request)
                self._lane_of.pop(request.request_id, None)
                self._starts[: turn.lane + 1] = (s + 1 for s in self._starts[: turn.lane + 1])
                index += 1
            else:
                request = queue[index]
                del queue[index]
                self._shift(0, -1)
                self._put(queue, request, turn.lane, turn.position)

    def to_front(self, queue: deque[Any], index: int, place: int) -> None:
        """Move a request to a place in front, from wherever it is."""
        request = queue[index]
        del queue[index]
        queue.insert(place, request)
        lane = self._lane_of.pop(request.request_id, None)
        if lane is not None:
            self._starts[: lane + 1] = [start + 1 for start in self._starts[: lane + 1]]
        elif index >= self._end:
            self._shift(0, 1)

    def _put(self, queue: deque[Any], request: Any, lane: int, position: int) -> None:
        queue.insert(self._starts[lane] + position, request)
        self._lane_of[request.request_id] = lane
        self._shift(lane + 1, 1)

    def _shift(self, first_lane: int, by: int) -> None:
        """Lanes from this one on begin so much later."""
        self._starts[first_lane:] = [start + by for start in self._starts[first_lane:]]
        self._end += by
