"""What pods tell of requests that broke their engine or the plug-in. Every word is untrusted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_MOST_TOLD = 16
_MOST_CRASHES = 2**16
_FINGERPRINT = re.compile(r"[0-9a-f]{24}\Z")


@dataclass(frozen=True)
class Quarantined:
    """A request that a pod refuses, since its engine died of it.

    Attributes:
        fingerprint: 24 hex digits, of which nobody can tell what was asked.
        crashes: how often the engine died while it was under way.
    """

    fingerprint: str
    crashes: int


@dataclass(frozen=True)
class BadRequests:
    """What one pod tells.

    Attributes:
        quarantined: in order of their fingerprints.
        set_aside: whether the plug-in could make nothing of some, and plans around them.
    """

    quarantined: tuple[Quarantined, ...] = ()
    set_aside: bool = False


def bad_requests(status: Mapping[str, Any]) -> BadRequests:
    """What an answer to ``GET /v1/status`` tells; a pod of an older release tells nothing."""
    listed = status.get("quarantined")
    entries = listed[:_MOST_TOLD] if isinstance(listed, list) else []
    known = {found for each in entries if (found := _quarantined(each)) is not None}
    count = status.get("setAsideRequests")
    return BadRequests(
        tuple(sorted(known, key=lambda each: (each.fingerprint, each.crashes))),
        set_aside=isinstance(count, int) and count > 0,
    )


def _quarantined(entry: Any) -> Quarantined | None:
    found = entry if isinstance(entry, dict) else {}
    fingerprint, crashes = found.get("fingerprint"), found.get("crashes")
    if not isinstance(fingerprint, str) or not _FINGERPRINT.match(fingerprint):
        return None
    if isinstance(crashes, bool) or not isinstance(crashes, int):
        return None
    return Quarantined(fingerprint, crashes) if 0 < crashes < _MOST_CRASHES else None
