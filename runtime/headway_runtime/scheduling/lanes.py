"""Puts newcomers where they belong when classes have limits: in front, or into their lane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headway_runtime.scheduling.class_limits import Admission, decide_admission
from headway_runtime.scheduling.lazy import merged
from headway_runtime.scheduling.order import place
from headway_runtime.scheduling.plan import Placement
from headway_runtime.scheduling.view import Lane, StepView, WaitingRequest


@dataclass(frozen=True)
class Places:
    """Where newcomers go.

    Attributes:
        front: newcomers without a limit among the settled requests.
        lanes: for each lane, newcomers of its class.
        unlimited: the newcomers without a limit, as they came.
        requests: all newcomers by id.
    """

    front: tuple[Placement, ...]
    lanes: tuple[tuple[Placement, ...], ...]
    unlimited: Sequence[WaitingRequest]
    requests: dict[str, WaitingRequest]

    @property
    def placements(self) -> tuple[Placement, ...]:
        """All of them, in the order in which they are carried out."""
        return self.front + tuple(each for lane in self.lanes for each in lane)


def place_newcomers(view: StepView) -> Places:
    """Positions for the unsettled requests, each in its lane if its class has one."""
    if not view.unsettled:
        return Places((), ((),) * len(view.lanes), (), {})
    numbers = {lane.class_name: number for number, lane in enumerate(view.lanes)}
    unlimited: list[WaitingRequest] = []
    limited: list[list[WaitingRequest]] = [[] for _ in view.lanes]
    for each in view.unsettled:
        number = numbers.get(each.traffic_class.name) if each.traffic_class is not None else None
        (unlimited if number is None else limited[number]).append(each)
    return Places(
        front=place(view.settled, unlimited),
        lanes=tuple(
            tuple(
                replace(placement, lane=number)
                for placement in place(lane.urgencies, limited[number])
            )
            for number, lane in enumerate(view.lanes)
        ),
        unlimited=unlimited,
        requests={each.request_id: each for each in view.unsettled},
    )


def admit(view: StepView, places: Places, max_batch_size: int) -> Admission:
    """What may be admitted once the newcomers are in their places."""
    most = max_batch_size - view.running
    if most <= 0:
        return Admission((), 0, all_may_run=False)
    lanes = [
        _with(lane, placed, places) for lane, placed in zip(view.lanes, places.lanes, strict=True)
    ]
    newcomers = [places.requests[each.request_id] for each in places.front]
    front = merged(view.front, newcomers, [each.position for each in places.front])
    admission = decide_admission(front, lanes, most)
    # Nobody has looked at what is unseen.
    return replace(admission, all_may_run=False) if view.unseen else admission


def without_background(lanes: Sequence[Lane]) -> tuple[Lane, ...]:
    """The lanes, those of classes without a TTFT closed: they are let in by turns of tenants."""
    return tuple([each if each.has_ttft else replace(each, room=0) for each in lanes])


def _with(lane: Lane, placed: Sequence[Placement], places: Places) -> Lane:
    """The lane with its newcomers."""
    newcomers = [places.requests[each.request_id] for each in placed]
    positions = [each.position for each in placed]
    return replace(
        lane,
        waiting=merged(lane.waiting, newcomers, positions),
        urgencies=merged(lane.urgencies, [each.urgency for each in newcomers], positions),
    )
