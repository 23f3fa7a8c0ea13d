"""Between which values an operating point may move."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headway_operator.memory.tuning import OperatingPoint, Tuning

LEAST_TOKEN_BUDGET = 64
"""A step costs milliseconds whatever it holds; with fewer tokens in it, prefill crawls."""

LEAST_BATCH = 4
"""With fewer requests at once, an engine does little more than read its weights."""

LEAST_BACKGROUND = 1
"""Background work is slowed down and never stopped."""


@dataclass(frozen=True)
class Bounds:
    """Caps that the user set, for each engine.

    Attributes:
        token_budget_cap: most tokens one step may ever process.
        max_batch_cap: most requests that may ever run at once.
    """

    token_budget_cap: int
    max_batch_cap: int

    @property
    def token_budget_floor(self) -> int:
        """Least token budget."""
        return min(self.token_budget_cap, LEAST_TOKEN_BUDGET)

    @property
    def max_batch_floor(self) -> int:
        """Least batch size."""
        return min(self.max_batch_cap, LEAST_BATCH)

    def token_budget(self, point: OperatingPoint) -> int:
        """Token budget of a point."""
        return self.token_budget_cap if point.token_budget is None else point.token_budget

    def max_batch(self, point: OperatingPoint) -> int:
        """Batch size of a point."""
        return self.max_batch_cap if point.max_batch_size is None else point.max_batch_size

    def slots(self, point: OperatingPoint) -> int:
        """Most requests that an engine can run at once: each needs a token of a step's budget."""
        return min(self.max_batch(point), self.token_budget(point))


def clamp(tuning: Tuning, bounds: Bounds) -> Tuning:
    """The tuning brought within other bounds. A value at its cap goes on being at its cap."""
    point = tuning.point
    floor, cap = bounds.token_budget_floor, bounds.token_budget_cap
    return replace(
        tuning,
        point=replace(
            point,
            token_budget=_within(point.token_budget, floor, cap),
            max_batch_size=_within(
                point.max_batch_size, bounds.max_batch_floor, bounds.max_batch_cap
            ),
            background_limit=_within(
                point.background_limit, LEAST_BACKGROUND, bounds.max_batch_cap
            ),
        ),
    )


def _within(value: int | None, floor: int, cap: int) -> int | None:
    """The value moved between floor and cap; None, which is the cap, when it reaches that."""
    if value is None or max(value, floor) >= cap:
        return None
    return max(value, floor)
