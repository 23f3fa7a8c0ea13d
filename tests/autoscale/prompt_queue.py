"""Prompts that wait in an engine, in the order in which Headway's planner computes them."""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from itertools import islice
from typing import NamedTuple

from headway_runtime.executors.simulated.request import Arrival
from headway_runtime.scheduling.lateness import LOOKS


class Prompt(NamedTuple):
    """A prompt; ``seconds`` is what it takes alone."""

    arrival: Arrival
    name: str
    seconds: float


class PromptQueue:
    """All of one class: in order of arrival, but those that are too much give way.

    Args:
        ttft_s: promised to each.
    """

    def __init__(self, ttft_s: float) -> None:
        self._ttft_s = ttft_s
        self._in_time: deque[Prompt] = deque()
        self._late: deque[Prompt] = deque()
        self._seconds = 0.0

    def __len__(self) -> int:
        return len(self._in_time) + len(self._late)

    @property
    def has_some_in_time(self) -> bool:
        """Whether anybody waits whose objective can be kept."""
        return bool(self._in_time)

    def add(self, prompt: Prompt) -> None:
        """A request came."""
        self._in_time.append(prompt)
        self._seconds += prompt.seconds

    def next(self, now_s: float, slower: float) -> Prompt | None:
        """Take out the next one; prompts take so many times what they take alone."""
        if self._in_time:
            self._give_way(now_s, slower)
        if self._in_time:
            prompt = self._in_time.popleft()
            self._seconds = max(0.0, self._seconds - prompt.seconds)
            return prompt
        return self._late.popleft() if self._late else None

    def _give_way(self, now_s: float, slower: float) -> None:
        """Moore and Hodgson's rule, see :mod:`headway_runtime.scheduling.lateness`."""
        end_s = now_s
        if end_s + slower * self._seconds <= self._in_time[0].arrival.at + self._ttft_s:
            return
        taken: list[tuple[float, str]] = []
        late = set()
        for prompt in islice(self._in_time, LOOKS):
            end_s += slower * prompt.seconds
            heappush(taken, (-prompt.seconds, prompt.name))
            if end_s > prompt.arrival.at + self._ttft_s:
                seconds, given_up = heappop(taken)
                end_s += slower * seconds
                late.add(given_up)
        if late:
            self._late.extend(each for each in self._in_time if each.name in late)
            self._in_time = deque(each for each in self._in_time if each.name not in late)
            self._seconds = sum(each.seconds for each in self._in_time)
