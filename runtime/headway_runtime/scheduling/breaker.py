"""Stops planning for a while when it fails too often."""

from __future__ import annotations

from collections import deque

WINDOW_STEPS = 100
FAILURES_TO_OPEN = 3
OPEN_SECONDS = 10.0


class Breaker:
    """Opens for 10 s when 3 of the last 100 planned steps failed.

    While it is open the engine decides alone, so that a planner that is broken or too slow costs
    nothing; afterwards it counts from zero.
    """

    def __init__(self) -> None:
        self._failed_steps: deque[int] = deque(maxlen=FAILURES_TO_OPEN)
        self._open_until_s: float | None = None

    def is_open(self, now_s: float) -> bool:
        """Whether planning is off at this time (any clock that only moves forward)."""
        if self._open_until_s is not None and now_s >= self._open_until_s:
            self._open_until_s = None
        return self._open_until_s is not None

    def failed(self, step: int, now_s: float) -> None:
        """Count a failure of planning in step number ``step``."""
        self._failed_steps.append(step)
        full = len(self._failed_steps) == FAILURES_TO_OPEN
        if full and step - self._failed_steps[0] < WINDOW_STEPS:
            self._open_until_s = now_s + OPEN_SECONDS
            self._failed_steps.clear()
