"""Which requests are sent when others have ended: the closed loop inside programs. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from headway_runtime.bench.workload import Request


class ClosedLoop:
    """Requests that wait for others.

    Args:
        requests: all of a workload.
    """

    def __init__(self, requests: Sequence[Request]) -> None:
        self._requests = requests
        self._missing = {
            index: len(each.after) for index, each in enumerate(requests) if each.after
        }
        self._followers: dict[int, list[int]] = defaultdict(list)
        for index in self._missing:
            for parent in requests[index].after:
                self._followers[parent].append(index)

    def completed(self, index: int, now_s: float) -> list[tuple[int, float]]:
        """A request is complete.

        Returns:
            Indexes of those that waited for it last of all, with the time at which each is sent.
        """
        sent = []
        for follower in self._followers.pop(index, ()):
            self._missing[follower] -= 1
            if not self._missing[follower]:
                sent.append((follower, sent_s(self._requests[follower], now_s)))
        return sent


def sent_s(request: Request, answered_s: float) -> float:
    """When a request is sent whose predecessors had all been answered at this time."""
    return max(request.arrival_s, answered_s + request.delay_s)


def components(requests: Sequence[Request]) -> list[int]:
    """For each request the index of the first one that it is linked with by who waits for whom."""
    first = list(range(len(requests)))

    def root(index: int) -> int:
        while first[index] != index:
            first[index] = index = first[first[index]]
        return index

    for index, each in enumerate(requests):
        for parent in each.after:
            low, high = sorted((root(index), root(parent)))
            first[high] = low
    return [root(index) for index in range(len(requests))]
