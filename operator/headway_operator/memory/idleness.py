"""What is remembered of how long a service was not used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Idleness:
    """What is remembered between ticks.

    Attributes:
        epoch: the operator's term in which it was.
        since: since when nobody has used the service, as Unix time in seconds.
        tokens: tokens that each pod's engine had processed, by pod uid: more of them are use, also
            where nothing ran at the moment of a sample.
        handed_over: since when the Service points to the activator so that pods can go, as Unix
            time in seconds; None while it need not.
        unattended_since: since when it has had neither pods nor an activator that tells whether
            they are wanted, as Unix time in seconds; None while it has.
        unready: since when each pod that is not ready has been seen so, by pod uid, as Unix time in
            seconds.
    """

    epoch: int
    since: float
    tokens: Mapping[str, float] = field(default_factory=dict)
    handed_over: float | None = None
    unattended_since: float | None = None
    unready: Mapping[str, float] = field(default_factory=dict)
