"""Stops planning for a while when it fails too often."""

from __future__ import annotations

from collections import deque

WINDOW_STEPS = 100
FAILURES_TO_OPEN = 3
OPEN_SECONDS = 10.0
OPEN_SECONDS_WHEN_LATE = 1.0
"""Plans that are right and only late come with bursts of requests, when promises need them most."""


class Breaker:
    """Opens for 10 s when planning failed in 3 of the last 100 planned steps.

    For 1 s if all three plans were only late. While it is open the engine decides alone, so that a
    planner that is broken or too slow costs nothing to speak of; afterwards it counts from zero.
    """

    def __init__(self) -> None:
        self._failures: deque[tuple[int, bool]] = deque(maxlen=FAILURES_TO_OPEN)
        self._open_until_s: float | None = None

    def is_open(self, now_s: float) -> bool:
        """Whether planning is off at this time (any clock that only moves forward)."""
        if self._open_until_s is not None and now_s >= self._open_until_s:
            self._open_until_s = None
        return self._open_until_s is not None

    def failed(self, step: int, now_s: float, *, only_late: bool = False) -> None:
        """Count a failure of planning in step number ``step``."""
        self._failures.append((step, only_late))
        full = len(self._failures) == FAILURES_TO_OPEN
        if full and step - self._failures[0][0] < WINDOW_STEPS:
            all_late = all(late for _, late in self._failures)
            self._open_until_s = now_s + (OPEN_SECONDS_WHEN_LATE if all_late else OPEN_SECONDS)
            self._failures.clear()
