"""How many pods so much work needs."""

from __future__ import annotations

import math
from collections.abc import Iterable

from headway_operator.memory.scaling import Needed

LEAST_ROOM = 0.1
"""Share of an engine's time that is left for work at least, however long its steps are for what is
promised: else no number of pods would be enough."""

CAUTION = 0.9
"""Pods are removed only when those left would be filled to this share of the target, so that they
are not added again at once."""

TICKS_TO_RISE = 4
"""More pods must be needed in so many ticks in a row: arrivals come in clusters by chance, and a
pod that is added for one stays for minutes."""

CLEARLY_SHORT = 1.5
"""Where this factor more pods than there are, and one, are needed it is no chance: two ticks do."""

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


def rising(before: int, pods: int, replicas: int) -> int:
    """The count of ticks in which more pods were needed than there are, after another one.

    Args:
        before: the count until now.
        pods: that are needed.
        replicas: that there are.
    """
    if pods <= replicas:
        return 0
    is_clear = pods >= CLEARLY_SHORT * replicas + 1
    return before + (TICKS_TO_RISE // 2 if is_clear else 1)


def most_at_once(replicas: int) -> int:
    """Most pods that one decision makes of so many."""
    return max(MOST_UP_FACTOR * replicas, replicas + MOST_UP_PODS)


def least_at_once(replicas: int) -> int:
    """Fewest pods that one decision leaves of so many."""
    return replicas - max(1, int(MOST_DOWN_SHARE * replicas))


def most_needed(history: Iterable[Needed]) -> int:
    """Most pods that were needed at any time of a history; 0 of an empty one."""
    return max((each.replicas for each in history), default=0)
