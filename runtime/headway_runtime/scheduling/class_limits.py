"""Which waiting requests a step may admit when classes have a limit on how many of them run.

A walk along the front of the queue: a request of a class that has reached its limit goes to its
class's lane, behind all that may run; when room comes again, the most urgent of a lane takes its
place at the front. What a step does is bounded however long the queue is.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass

from headway_runtime.scheduling.plan import HoldBack, LetIn, Stay, Turn
from headway_runtime.scheduling.view import Lane, Readiness, Urgency, WaitingRequest

ADMISSIONS_PER_STEP = 64
"""Most requests a step admits while classes have limits."""

MOVES_PER_STEP = 32
"""Most requests a step takes out of lanes or puts into them."""

LOOKS_PER_STEP = 256
"""Most requests a step looks at; more than it admits, for those that are not ready."""


@dataclass(frozen=True)
class Admission:
    """What may be admitted.

    Attributes:
        turns: how the front of the queue gets to begin with it.
        ready: how many requests may be admitted in this step.
        all_may_run: whether no request at all is held back, so that the step needs no limit.
    """

    turns: tuple[Turn, ...]
    ready: int
    all_may_run: bool


def decide_admission(
    front: Sequence[WaitingRequest], lanes: Sequence[Lane], most: int
) -> Admission:
    """Walk along the front until ``most`` requests may be admitted or no other may be.

    Requests run in order of urgency, whether they come from the front or from a lane; of two that
    are equally urgent the one at the front goes first. A pending request takes its place in its
    class, but none in the step: what the engine passes over must not let another in.

    Args:
        front: requests in front of all lanes, nearly in order of urgency.
        lanes: those held back, a lane for each class with a limit.
        most: requests that the batch has room for.
    """
    walk = _Walk(front, lanes)
    most = min(most, ADMISSIONS_PER_STEP)
    looks = 0
    while walk.ready < most and looks < LOOKS_PER_STEP and walk.moves < MOVES_PER_STEP:
        if not walk.go_on():
            return Admission(tuple(walk.turns), walk.ready, walk.nothing_is_held)
        looks += 1
    return Admission(tuple(walk.turns), walk.ready, all_may_run=False)


class _Walk:
    """The state of a walk along the front.

    Attributes:
        turns: what was decided.
        ready: requests that may be admitted so far.
        moves: requests moved so far.
    """

    def __init__(self, front: Sequence[WaitingRequest], lanes: Sequence[Lane]) -> None:
        self._front = front
        self._lanes = lanes
        self._numbers = {lane.class_name: number for number, lane in enumerate(lanes)}
        self._room = [lane.room for lane in lanes]
        self._let_in = [0] * len(lanes)
        self._held: list[list[Urgency]] = [[] for _ in lanes]
        self._heads: dict[int, tuple[Urgency, WaitingRequest]] = {}
        for number in range(len(lanes)):
            self._look_at_head(number)
        self._passed = 0
        self.turns: list[Turn] = []
        self.ready = 0
        self.moves = 0

    @property
    def nothing_is_held(self) -> bool:
        lanes = zip(self._lanes, self._let_in, self._held, strict=True)
        return not any(held or let_in < len(lane.waiting) for lane, let_in, held in lanes)

    def go_on(self) -> bool:
        """Decide about one more request; False when there is none that may run."""
        first = self._front[self._passed] if self._passed < len(self._front) else None
        if first is not None:
            number = self._number(first)
            if number is not None and self._room[number] <= 0:
                self._hold_back(first, number)
                return True
        lane = min(self._heads, key=lambda number: self._heads[number][0], default=None)
        if first is not None and (lane is None or first.urgency <= self._heads[lane][0]):
            self._passed += 1
            self._take(first, Stay())
            return True
        if lane is None:
            return False
        _, request = self._heads[lane]
        self._let_in[lane] += 1
        self.moves += 1
        self._take(request, LetIn(lane))
        return True

    def _look_at_head(self, number: int) -> None:
        """Remember the most urgent request of a lane, if the lane may let it in."""
        waiting, let_in = self._lanes[number].waiting, self._let_in[number]
        if self._room[number] > 0 and let_in < len(waiting):
            head = waiting[let_in]
            self._heads[number] = (head.urgency, head)
        else:
            self._heads.pop(number, None)

    def _take(self, request: WaitingRequest, turn: Turn) -> None:
        number = self._number(request)
        if number is not None:
            self._room[number] -= request.readiness is not Readiness.BLOCKED
            self._look_at_head(number)
        self.ready += request.readiness is Readiness.READY
        self.turns.append(turn)

    def _hold_back(self, request: WaitingRequest, number: int) -> None:
        key, held, let_in = request.urgency, self._held[number], self._let_in[number]
        among_waiting = bisect_right(self._lanes[number].urgencies, key, lo=let_in) - let_in
        self.turns.append(HoldBack(number, among_waiting + bisect_right(held, key)))
        insort(held, key)
        self._passed += 1
        self.moves += 1

    def _number(self, request: WaitingRequest) -> int | None:
        name = request.traffic_class.name if request.traffic_class is not None else None
        return self._numbers.get(name) if name is not None else None
