"""Who is suspected of having killed the engine, and what becomes of him. Pure.

A request is known by its fingerprint. A crash says of each request that was under way that it may
have been the one. Clients try again what failed, all at once, so whoever was beside the culprit is
beside it again: having been there twice says nothing. So suspects are tried, one at a time, beside
requests that are not suspected: a second crash then says who it was, and who ends well is cleared.
Most culprits kill before their first token, and few others are without one at any moment; so at
first only those are tried, and those that had tokens only when they were there twice.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import NamedTuple

QUARANTINE_S = 900.0
LONGER = 4
LONGEST_S = 86_400.0
"""For so long a culprit is refused after two crashes, and so many times as long after each further
one, up to a day. Then it is tried again: what breaks may have been mended, and whoever was refused
for what was another one's fault is cleared."""

REMEMBERED_S = 172_800.0
"""After so long without a crash nothing is held against anybody."""

MOST_SUSPECTS = 512
"""So many are remembered; those against whom least is held are forgotten first."""

TRIED_BEFORE_TOKEN, GUILTY_BEFORE_TOKEN = 1, 2
"""After so many crashes before its first token a request is tried, and found guilty."""
TRIED_IN_ALL, GUILTY_IN_ALL = 2, 3
"""The same of all crashes while it was under way."""


class Standing(enum.Enum):
    """How a request that comes is dealt with."""

    FREE = enum.auto()
    """As any other."""
    TRIED = enum.auto()
    """It is let in while no other suspect is under way."""
    QUARANTINED = enum.auto()
    """It is refused."""


class UnderWay(NamedTuple):
    """A request that was under way when the engine died.

    Attributes:
        fingerprint: tells it from others.
        tenant: whose it was; empty where that is not known.
        has_token: whether its first token had come.
    """

    fingerprint: bytes
    tenant: str = ""
    has_token: bool = False


class Suspect(NamedTuple):
    """A request that was under way in a crash.

    Attributes:
        tenant: whose it was, last.
        before_token: crashes before its first token.
        in_all: all crashes while it was under way.
        last_s: when the last one was noticed, seconds since the epoch.
    """

    tenant: str = ""
    before_token: int = 0
    in_all: int = 0
    last_s: float = 0.0

    @property
    def is_guilty(self) -> bool:
        """Whether it was there too often to be there by chance."""
        return self.before_token >= GUILTY_BEFORE_TOKEN or self.in_all >= GUILTY_IN_ALL

    @property
    def is_tried(self) -> bool:
        """Whether another crash would say that it was the one."""
        return self.before_token >= TRIED_BEFORE_TOKEN or self.in_all >= TRIED_IN_ALL

    @property
    def free_s(self) -> float:
        """When it is refused no more, if it is; seconds since the epoch."""
        longer: int = LONGER ** min(8, max(0, self.in_all - GUILTY_BEFORE_TOKEN))
        return self.last_s + min(LONGEST_S, QUARANTINE_S * longer)


Suspects = Mapping[bytes, Suspect]
"""By fingerprint."""


def standing(suspect: Suspect | None, now_s: float) -> Standing:
    """How a request with this fingerprint is dealt with; None is held against nobody."""
    if suspect is None or now_s - suspect.last_s >= REMEMBERED_S or not suspect.is_tried:
        return Standing.FREE
    # A clock that was set back keeps nobody in.
    is_refused = suspect.is_guilty and suspect.last_s <= now_s < suspect.free_s
    return Standing.QUARANTINED if is_refused else Standing.TRIED


def after_crash(
    known: Suspects, under_way: Iterable[UnderWay], now_s: float
) -> dict[bytes, Suspect]:
    """Who is suspected after the engine died with these under way."""
    found = {key: each for key, each in known.items() if now_s - each.last_s < REMEMBERED_S}
    for fingerprint, each in _each_once(under_way).items():
        before = found.get(fingerprint, Suspect())
        found[fingerprint] = Suspect(
            each.tenant,
            before.before_token + (not each.has_token),
            before.in_all + 1,
            now_s,
        )
    kept = sorted(found.items(), key=_held_against, reverse=True)[:MOST_SUSPECTS]
    return dict(kept)


def cleared(known: Suspects, fingerprint: bytes) -> dict[bytes, Suspect]:
    """The same after a request with this fingerprint has ended well."""
    return {key: each for key, each in known.items() if key != fingerprint}


def _each_once(under_way: Iterable[UnderWay]) -> dict[bytes, UnderWay]:
    """One of several with the same fingerprint: one without a token if there is any."""
    ordered = sorted(under_way, key=lambda each: not each.has_token)
    return {each.fingerprint: each for each in ordered}


def _held_against(entry: tuple[bytes, Suspect]) -> tuple[bool, bool, float, bytes]:
    fingerprint, suspect = entry
    return suspect.is_guilty, suspect.is_tried, suspect.last_s, fingerprint
