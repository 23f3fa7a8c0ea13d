"""Requests that wait for admission, kept as the planner sees them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from headway_runtime.executors.simulated.request import Request
from headway_runtime.policy import TrafficClass
from headway_runtime.scheduling.lazy import Lazy
from headway_runtime.scheduling.order import urgency_of
from headway_runtime.scheduling.plan import LetIn, Placement, Stay, Turn
from headway_runtime.scheduling.view import Urgency, WaitingRequest

ClassOf = Callable[[Request], TrafficClass | None]


class WaitingQueue:
    """A settled front, a lane for each class with a limit, and what has arrived since.

    Args:
        class_of: tells a request's class.
    """

    def __init__(self, class_of: ClassOf) -> None:
        self._class_of = class_of
        self._front: deque[Request] = deque()
        self._lanes: list[deque[Request]] = []
        self._unsettled: deque[Request] = deque()

    def __len__(self) -> int:
        return sum(len(part) for part in self._parts)

    @property
    def settled(self) -> Sequence[Urgency]:
        """Urgencies of the front."""
        front = self._front
        return Lazy(len(front), lambda index: urgency_of(self._seen(front[index])))

    @property
    def front(self) -> Sequence[WaitingRequest]:
        """The front itself."""
        return self._view(self._front)

    @property
    def lanes(self) -> list[Sequence[WaitingRequest]]:
        """Each lane."""
        return [self._view(lane) for lane in self._lanes]

    @property
    def unsettled(self) -> tuple[WaitingRequest, ...]:
        """What is to be put in order."""
        return tuple(self._view(self._unsettled))

    @property
    def head(self) -> Request | None:
        """The request that is admitted next."""
        return next((part[0] for part in self._parts if part), None)

    def take(self) -> Request:
        """Take the head out.

        Raises:
            StopIteration: nobody waits.
        """
        return next(part for part in self._parts if part).popleft()

    def append(self, request: Request) -> None:
        """A request has arrived."""
        self._unsettled.append(request)

    def put_back(self, request: Request) -> None:
        """A request that ran comes first again."""
        self._front.appendleft(request)

    def unsettle(self, lanes: int) -> None:
        """Classes have changed: the order means nothing any more, and there are other lanes."""
        everybody = [request for part in self._parts for request in part]
        self._front.clear()
        self._lanes = [deque() for _ in range(lanes)]
        self._unsettled = deque(sorted(everybody, key=lambda request: request.arrival.at))

    def settle(self, placements: Sequence[Placement]) -> None:
        """Carry out placements of all unsettled requests; none means they are in order."""
        newcomers = {request.request_id: request for request in self._unsettled}
        for placement in placements:
            part = self._front if placement.lane is None else self._lanes[placement.lane]
            part.insert(placement.position, newcomers.pop(placement.request_id))
        self._front.extend(newcomers.values())
        self._unsettled.clear()

    def take_turns(self, turns: Sequence[Turn]) -> None:
        """Walk along the front as decided."""
        index = 0
        for turn in turns:
            if isinstance(turn, Stay):
                index += 1
            elif isinstance(turn, LetIn):
                self._front.insert(index, self._lanes[turn.lane].popleft())
                index += 1
            else:
                request = self._front[index]
                del self._front[index]
                self._lanes[turn.lane].insert(turn.position, request)

    @property
    def _parts(self) -> tuple[deque[Request], ...]:
        return (self._front, *self._lanes, self._unsettled)

    def _view(self, part: deque[Request]) -> Sequence[WaitingRequest]:
        return Lazy(len(part), lambda index: self._seen(part[index]))

    def _seen(self, request: Request) -> WaitingRequest:
        return WaitingRequest(request.request_id, request.arrival.at, self._class_of(request))
