"""What is in force in a service's engines below the caps, and what is remembered with it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class OperatingPoint:
    """Live limits of every engine of a service. None is at the cap, or no limit.

    Attributes:
        theta_ppm: switching threshold, in parts per million; None before the first decision.
        token_budget: most tokens one step may process.
        max_batch_size: most requests running at once.
        background_limit: most requests of each class with neither a TTFT nor a TPOT target running
            at once.
    """

    theta_ppm: int | None = None
    token_budget: int | None = None
    max_batch_size: int | None = None
    background_limit: int | None = None

    @property
    def is_as_declared(self) -> bool:
        """Whether no limit is below what the user declared."""
        return self.token_budget is self.max_batch_size is self.background_limit is None


@dataclass(frozen=True)
class Streaks:
    """For how many ticks in a row something has held, so that one odd tick moves nothing.

    Attributes:
        tpot_missed: a class was over its TPOT target.
        tpot_room: TPOT targets left room for a larger token budget, and it was of use or did no
            harm.
        ttft_missed: a class was over its TTFT target while requests waited for a slot.
        out_of_reach: a class was over its TPOT target, and nothing was left to lower for it.
    """

    tpot_missed: int = 0
    tpot_room: int = 0
    ttft_missed: int = 0
    out_of_reach: int = 0


@dataclass(frozen=True)
class Tuning:
    """What is remembered of one service between ticks.

    Attributes:
        point: what is in force.
        streaks: what has held for how long.
        collection: number of the collection of metrics that was acted on last.
    """

    point: OperatingPoint = field(default_factory=OperatingPoint)
    streaks: Streaks = field(default_factory=Streaks)
    collection: int = 0
