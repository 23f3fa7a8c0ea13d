"""What is remembered of how many pods a service needed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple


class LoadPoint(NamedTuple):
    """Work that was asked for at a moment.

    Attributes:
        at: Unix time in seconds.
        engines: engine-seconds of work a second, of all pods together.
    """

    at: float
    engines: float


class Needed(NamedTuple):
    """Pods that were needed at a moment; ``at`` is Unix time in seconds."""

    at: float
    replicas: int


@dataclass(frozen=True)
class Scaling:
    """What is remembered between ticks.

    Attributes:
        replicas: pods that were decided last.
        since: when it began to be remembered, as Unix time in seconds: what was before is unknown.
        epoch: the operator's term in which it was.
        loads: of the last minutes, oldest first.
        needed: of the last minutes, oldest first, as cautiously as before pods are removed.
        rising: ticks in a row in which more pods were needed than there are; one in which many more
            were counts twice.
        missed: ticks in a row in which objectives were missed although load would fit; below 0
            while the last pod that was added for it has not had its effect yet.
        correction: how much more work there is than engines tell, by objectives that were missed.
        removed_at: when pods were removed last, as Unix time in seconds.
        collection: number of the collection of metrics that was acted on last.
        claimed: pods that were needed last within the user's bounds; more than ``replicas`` where
            the service does not get so many.
    """

    replicas: int
    since: float
    epoch: int
    loads: tuple[LoadPoint, ...] = ()
    needed: tuple[Needed, ...] = ()
    rising: int = 0
    missed: int = 0
    correction: float = 1.0
    removed_at: float = 0.0
    collection: int = 0
    claimed: int = 0


def timed_anew(known: Scaling, now: float) -> Scaling:
    """The same pods, without what was seen over time until now (Unix time in seconds)."""
    return replace(known, since=now, loads=(), needed=(), rising=0, missed=0, removed_at=now)
