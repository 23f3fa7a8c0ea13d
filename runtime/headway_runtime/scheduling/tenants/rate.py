"""How fast something goes on while somebody waits for it."""

from __future__ import annotations

from math import exp

MEMORY_S = 10.0
"""How long a rate is remembered."""

LEAST_SEEN_S = 1.0
"""Before it has been seen for so long, there is no rate."""


class Rate:
    """So much a second, over the time in which somebody waited."""

    def __init__(self) -> None:
        self._amount = 0.0
        self._new = 0.0
        self._seconds = 0.0
        self._seen_s = 0.0
        self._at_s: float | None = None

    def count(self, amount: float) -> None:
        """So much more is done."""
        self._new += amount

    def age(self, now_s: float, *, waits: bool) -> None:
        """Time has gone by since the last call, in which somebody did or did not wait."""
        before_s, self._at_s = self._at_s, now_s
        new, self._new = self._new, 0.0
        if before_s is None:
            return
        passed_s = max(0.0, now_s - before_s)
        if waits:
            self._amount += new
            self._seconds += passed_s
            self._seen_s = min(LEAST_SEEN_S, self._seen_s + passed_s)
        kept = exp(-passed_s / MEMORY_S)
        self._amount *= kept
        self._seconds *= kept

    @property
    def per_s(self) -> float | None:
        """The rate; None while it is not known."""
        if self._seen_s < LEAST_SEEN_S or self._seconds <= 0:
            return None
        return self._amount / self._seconds
