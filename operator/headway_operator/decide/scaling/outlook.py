"""What is asked of engines, now and soon, and how many of them it takes."""

from __future__ import annotations

from dataclasses import dataclass

from headway_operator.decide.scaling.offered_load import OfferedLoad
from headway_operator.decide.scaling.replicas import LEAST_ROOM, needed

CLEARLY = 1.05
"""A smaller factor is not worth telling."""


@dataclass(frozen=True)
class Outlook:
    """What is asked of a service's engines.

    Attributes:
        load: that is offered now.
        ahead: engine-seconds of work a second when a pod that is added now is ready.
        target: share of its time that an engine is to be asked for.
        correction: how much more work there is than engines tell.
    """

    load: OfferedLoad
    ahead: float
    target: float
    correction: float = 1.0

    @property
    def room(self) -> float:
        """Share of its time that an engine has for work."""
        return max(LEAST_ROOM, self.target - self.load.overhead)

    def pods(self, caution: float = 1.0) -> int:
        """Pods that it takes soon, each filled to that share of what it has room for."""
        return needed(self.correction * self.ahead, caution * self.room)

    def pods_now(self, caution: float) -> int:
        """Pods that it takes now, likewise."""
        return needed(self.correction * self.load.engines, caution * self.room)

    def __str__(self) -> str:
        grows = self.ahead > CLEARLY * self.load.engines
        soon = f", {self.ahead:.2f} soon if it goes on growing" if grows else ""
        more = f", counted {self.correction:.2f} times" if self.correction > CLEARLY else ""
        return (
            f"requests bring {self.load.engines:.2f} engine-seconds of work a second{soon}{more},"
            f" and an engine has room for {self.room:.2f}"
        )
