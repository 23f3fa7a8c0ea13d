"""How long it takes until an engine takes requests, by the last time it did. Pure."""

from __future__ import annotations

import math

LONGEST_SECONDS = 600
"""Clients are not told to wait longer for their next try."""

OVERDUE_SHARE = 0.1
"""An engine that takes longer than the last one is thought to need this share of it more."""


class StartTime:
    """Learns from each start.

    Args:
        seconds: what is thought before the first.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._began_at: float | None = None

    def begins(self, now: float) -> None:
        """An engine was asked for, or one has appeared; ``now`` is in seconds, of any clock."""
        if self._began_at is None:
            self._began_at = now

    def ends(self, now: float) -> None:
        """An engine takes requests."""
        if self._began_at is not None:
            self.seconds = now - self._began_at
            self._began_at = None

    def remaining(self, now: float) -> int:
        """Whole seconds until an engine takes requests, at least 1."""
        passed = 0.0 if self._began_at is None else now - self._began_at
        left = self.seconds - passed
        if left <= 0:
            left = OVERDUE_SHARE * self.seconds
        return min(max(1, math.ceil(left)), LONGEST_SECONDS)
