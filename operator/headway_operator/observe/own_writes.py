"""Read your own writes: what was written is seen at once, not when the watch delivers it."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar

_DELETIONS_REMEMBERED = 512
"""A write takes seconds at most; only deletions during one matter."""


class Versioned(Protocol):
    """A record of an object that the API server numbers with every write."""

    @property
    def uid(self) -> str:
        """The object's uid."""

    @property
    def resource_version(self) -> int:
        """Grows with every write."""


RecordT = TypeVar("RecordT", bound=Versioned)


class OwnWrites(Generic[RecordT]):
    """Answers to our own writes, each until the watch has caught up with it."""

    def __init__(self) -> None:
        self._written: dict[Hashable, RecordT] = {}
        self._deleted: deque[str] = deque(maxlen=_DELETIONS_REMEMBERED)

    def note(self, name: Hashable, record: RecordT) -> None:
        """Remember the object as the API server answered it."""
        if record.uid not in self._deleted:
            self._written[name] = record

    def deleted(self, name: Hashable, uid: str) -> None:
        """The object was deleted; an answer to a write of it may still be on its way."""
        self._deleted.append(uid)
        self.forget(name)

    def forget(self, name: Hashable) -> None:
        """The object is gone."""
        self._written.pop(name, None)

    def latest(self, name: Hashable, watched: RecordT | None) -> RecordT | None:
        """The newer of what was watched and what was written."""
        written = self._written.get(name)
        if written is None:
            return watched
        if watched is None or watched.resource_version < written.resource_version:
            return written
        del self._written[name]
        return watched
