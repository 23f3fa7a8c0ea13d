"""Notices when the clock that everything is timed by was set."""

from __future__ import annotations

from collections.abc import Callable

TOLERATED_SECONDS = 5.0
"""Clocks are put right in small steps all the time; what is decided here is timed in more."""


class ClockWatch:
    """Compares the wall clock with one that nobody sets.

    Args:
        wall: Unix time in seconds.
        steady: seconds since any moment; it never goes back.
    """

    def __init__(self, wall: Callable[[], float], steady: Callable[[], float]) -> None:
        self._wall = wall
        self._steady = steady
        self._ahead = wall() - steady()

    def jumped(self) -> float:
        """By how many seconds the wall clock was set since the last time; 0 where it hardly was."""
        before, self._ahead = self._ahead, self._wall() - self._steady()
        by = self._ahead - before
        return by if abs(by) > TOLERATED_SECONDS else 0.0
