"""What is remembered of shortages between ticks. It can be lost: they are then timed anew."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class Shortage(StrEnum):
    """What is short."""

    KV_CACHE = "KVCache"
    """KV blocks of running engines."""
    MEMORY = "Memory"
    """Memory that engines need to start, or to go on."""
    ROOM = "Room"
    """Nodes, GPUs or quota for pods."""


class Timing(NamedTuple):
    """For how long something has been as it is.

    Attributes:
        short_since: since when it is short, as Unix time in seconds; None while it is not.
        clear_since: likewise, since when there is clearly enough.
    """

    short_since: float | None = None
    clear_since: float | None = None


@dataclass(frozen=True)
class ShortageWatch:
    """What is remembered of a service's shortages.

    Attributes:
        epoch: the operator's term in which it was.
        timings: by shortage.
    """

    epoch: int
    timings: dict[Shortage, Timing] = field(default_factory=dict)

    def of(self, shortage: Shortage) -> Timing:
        """How long one of them lasts."""
        return self.timings.get(shortage, Timing())
