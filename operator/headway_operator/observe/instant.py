"""A moment in time, read once and passed to whatever decides."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True)
class Instant:
    """A moment in the two forms that are needed.

    Attributes:
        unix: seconds since 1970.
        text: RFC 3339, whole seconds, as conditions and events carry it.
    """

    unix: float
    text: str

    @classmethod
    def at(cls, unix: float) -> Instant:
        """The moment that many seconds after 1970."""
        return cls(unix, datetime.fromtimestamp(unix, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))


def unix_of(text: str) -> float:
    """Unix time in seconds of a moment in that form; 0 where the text is none."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0
