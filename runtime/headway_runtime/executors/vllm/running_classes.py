"""How many requests of each class with a limit are running."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway_runtime.executors.vllm.request_class import Classifier
from headway_runtime.policy import Policy

_FORGET_BEYOND = 64
_UNKNOWN = -1


class RunningClasses:
    """Counts by looking at what runs, so that no event can be missed.

    Classes are remembered by request id, so that a look costs one dictionary lookup for each
    running request.

    Args:
        policy: whose classes and limits count.
    """

    def __init__(self, policy: Policy) -> None:
        self._classifier = Classifier(policy)
        limited = [each for each in policy.classes if each.max_running is not None]
        self._numbers = {each.name: number for number, each in enumerate(limited)}
        self._limits = [each.max_running or 0 for each in limited]
        self.have_ttft = tuple([each.ttft_ms is not None for each in limited])
        """Whether requests of each of these classes were promised one."""
        self._known: dict[str, int | None] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Classes with a limit, in the policy's order."""
        return tuple(self._numbers)

    def room(self, running: Sequence[Any]) -> list[int]:
        """How many more requests of each of these classes may run; negative when too many do."""
        room = self._limits.copy()
        known = self._known
        for request in running:
            number = known.get(request.request_id, _UNKNOWN)
            if number == _UNKNOWN:
                number = known[request.request_id] = self._number(request)
            if number is not None:
                room[number] -= 1
        if len(known) > 2 * len(running) + _FORGET_BEYOND:
            self._known = {each.request_id: known[each.request_id] for each in running}
        return room

    def _number(self, request: Any) -> int | None:
        traffic_class = self._classifier.traffic_class(request)
        return None if traffic_class is None else self._numbers.get(traffic_class.name)
