"""Requests that wait for admission, kept as the planner sees them."""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from headway_runtime.executors.simulated.request import Request
from headway_runtime.policy import Policy, TrafficClass
from headway_runtime.scheduling.lazy import Lazy
from headway_runtime.scheduling.plan import LetIn, Placement, Stay, Turn
from headway_runtime.scheduling.programs.programs import Programs
from headway_runtime.scheduling.standing import standing_of
from headway_runtime.scheduling.tenants.tenancy import Tenancy, begin_of_background
from headway_runtime.scheduling.view import Urgency, WaitingRequest

ClassOf = Callable[[Request], TrafficClass | None]


class WaitingQueue:
    """A settled front, a lane for each class with a limit, and what has arrived since.

    Args:
        class_of: tells a request's class.
        priorities: of classes by name, where the engine has an order of its own; nothing is to be
            settled then.
        block_tokens: tokens of a block of the prefix cache.

    Attributes:
        first: id of a request that goes in front of all others for now.
        tenancy: whose requests wait.
        programs: the programs that requests are parts of.
    """

    def __init__(
        self,
        class_of: ClassOf,
        priorities: Mapping[str, int] | None = None,
        block_tokens: int = 16,
    ) -> None:
        self._class_of = class_of
        self._priorities = priorities
        self._block_tokens = block_tokens
        self.first: str | None = None
        self.tenancy: Tenancy[Request] = Tenancy()
        self.programs = Programs()
        self._front: deque[Request] = deque()
        self._lanes: list[deque[Request]] = []
        self._unsettled: deque[Request] = deque()

    def __len__(self) -> int:
        return sum(len(part) for part in self._parts)

    @property
    def settled(self) -> Sequence[Urgency]:
        """Urgencies of the front."""
        front = self._front
        return Lazy(len(front), lambda index: self.seen(front[index]).urgency)

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
        """The request that is admitted next.

        One that lost its KV blocks is passed over until all its steps under way are done.
        """
        ready = (each for each in self._everybody if not each.steps_under_way)
        head = next(ready, None)
        if self.first is None:
            return head
        return next((each for each in self._everybody if self._is_first(each)), head)

    def take(self) -> Request:
        """Take the head out.

        Raises:
            ValueError: nobody may be admitted.
        """
        head = self.head
        if head is None:
            raise ValueError("nobody may be admitted")
        self.remove(head)
        return head

    def remove(self, request: Request) -> None:
        """A request waits no more."""
        self.tenancy.left((request.request_id,))
        for part in self._parts:
            if request in part:
                part.remove(request)
                return

    def append(self, request: Request) -> None:
        """A request has arrived."""
        arrival = request.arrival
        request.standing = standing_of(
            self.programs, request.request_id, arrival.origin, arrival.at, arrival.prompt_tokens
        )
        self._waits(request)
        if self._priorities is None:
            self._unsettled.append(request)
        else:
            insort(self._unsettled, request, key=self._rank)

    def put_back(self, request: Request) -> None:
        """A request that ran comes first again."""
        if self._priorities is None:
            self._waits(request)
            self._front.appendleft(request)
        else:
            self.append(request)

    def give_way(self, request_ids: Sequence[str]) -> None:
        """These requests are late: they are to be put in order anew."""
        late = set(request_ids)
        for part in self._parts if late else ():
            for request in [each for each in part if each.request_id in late]:
                request.late = True
                part.remove(request)
                self._waits(request)
                self._unsettled.append(request)

    def put_in_order(self, requests: Iterable[Request]) -> None:
        """These requests wait again: they are to be put in order as if they had arrived."""
        for request in requests:
            self.remove(request)
            self._waits(request)
            self._unsettled.append(request)

    def adopt(self, policy: Policy | None) -> None:
        """Tenants or classes have changed."""
        if policy is not None:
            self.tenancy.declare(policy)
            self.programs.adopt(policy.priority)
        self.tenancy.nobody_waits()
        for request in self._everybody:
            self._waits(request)

    def unsettle(self, lanes: int) -> None:
        """Classes have changed: the order means nothing any more, and there are other lanes."""
        everybody = list(self._everybody)
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

    def in_turn(self, request_ids: Sequence[str]) -> None:
        """Put requests in front of all others without a TTFT, in this order."""
        waiting = [self.tenancy.request(each) for each in request_ids]
        place = begin_of_background(self.settled)
        for request in reversed([each for each in waiting if each is not None]):
            part = next(part for part in self._parts if request in part)
            part.remove(request)
            self._front.insert(place, request)

    @property
    def _everybody(self) -> Iterator[Request]:
        return (request for part in self._parts for request in part)

    @property
    def _parts(self) -> tuple[deque[Request], ...]:
        return (self._front, *self._lanes, self._unsettled)

    def _waits(self, request: Request) -> None:
        known = self.seen(request)
        self.tenancy.waits(known, known.urgency, request)

    def _view(self, part: deque[Request]) -> Sequence[WaitingRequest]:
        return Lazy(len(part), lambda index: self.seen(part[index]))

    def seen(self, request: Request) -> WaitingRequest:
        """What the planner is told of a request."""
        promised = self._class_of(request)
        return WaitingRequest(
            request.request_id,
            request.arrival.at,
            promised,
            prefill_tokens=request.known - request.cached(self._block_tokens),
            is_late=request.late,
            tenant=request.standing.tenant,
            due_s=request.standing.due_s(promised),
        )

    def _is_first(self, request: Request) -> bool:
        return request.request_id == self.first and not request.steps_under_way

    def _rank(self, request: Request) -> tuple[int, float]:
        priorities = self._priorities or {}
        return priorities.get(request.arrival.class_name, 0), request.arrival.at
