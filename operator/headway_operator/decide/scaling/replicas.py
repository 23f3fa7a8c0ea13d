"""How many pods so much work needs."""

from __future__ import annotations

import math
from collections.abc import Iterable

from headway_operator.observe.scaling import Needed

LEAST_ROOM = 0.1
"""Share of an engine's time that is left for work at least, however long its steps are for what is
promised: else no number of pods would be enough."""

CAUTION = 0.9
"""Pods are removed only when those left would be filled to this share of the target, so that they
are not added again at once."""

MOST_UP_FACTOR = 2
MOST_UP_PODS = 4
"""In one decision pods are doubled at most, or so many added."""

MOST_DOWN_SHARE = 0.25
"""In one decision at most this share of pods is removed, or one: after a burst the next one may be
near, and pods that went take as long as a start to come back."""


def needed(engines: float, room: float) -> int:
    """Pods that so much work takes, at least one.

    Args:
        engines: engine-seconds of work a second.
        room: how many of them one engine is to be asked for, above 0.
    """
    # An exact multiple is no reason for one more.
    return max(1, math.ceil(engines / room - 1e-9))


def most_at_once(replicas: int) -> int:
    """Most pods that one decision makes of so many."""
    return max(MOST_UP_FACTOR * replicas, replicas + MOST_UP_PODS)


def least_at_once(replicas: int) -> int:
    """Fewest pods that one decision leaves of so many."""
    return replicas - max(1, int(MOST_DOWN_SHARE * replicas))


def most_needed(history: Iterable[Needed]) -> int:
    """Most pods that were needed at any time of a history; 0 of an empty one."""
    return max((each.replicas for each in history), default=0)
