"""Which engines a router is to have: pure bookkeeping of what was found out about each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, auto

SILENCES_TOLERATED = 2
"""Probes without an answer after which an engine is taken out. A busy one may miss one; who refuses
or says no is taken out at once."""


class Answer(Enum):
    """What came of asking an engine whether it takes requests."""

    YES = auto()
    NO = auto()
    """It said so, or nobody listens."""
    SILENCE = auto()
    """No answer in time."""


@dataclass(frozen=True)
class Changes:
    """What has to be done to a router's list.

    Attributes:
        added, removed: URLs of engines, in order.
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


@dataclass
class Membership:
    """What is known of the engines.

    Attributes:
        candidates: URLs of all engines there are; None until that is known.
    """

    candidates: frozenset[str] | None = None
    _takes_requests: dict[str, bool] = field(default_factory=dict)
    _silences: dict[str, int] = field(default_factory=dict)

    @property
    def taking_requests(self) -> frozenset[str]:
        """URLs of the engines that take requests."""
        return frozenset(url for url, takes in self._takes_requests.items() if takes)

    def found(self, candidates: Iterable[str]) -> None:
        """These are all engines there are."""
        self.candidates = frozenset(candidates)
        for known in (self._takes_requests, self._silences):
            for url in known.keys() - self.candidates:
                del known[url]

    def answered(self, url: str, answer: Answer) -> None:
        """An engine was asked."""
        if url not in (self.candidates or ()):
            return
        if answer is Answer.SILENCE:
            self._silences[url] = self._silences.get(url, 0) + 1
            if self._silences[url] >= SILENCES_TOLERATED:
                self._takes_requests[url] = False
            return
        self._silences.pop(url, None)
        self._takes_requests[url] = answer is Answer.YES

    def changes(self, present: Iterable[str]) -> Changes:
        """What is to be done to a router that has these engines.

        Who has not been asked yet stays as it is: this process may have just begun.
        """
        if self.candidates is None:
            return Changes()
        listed = frozenset(present)
        wanted = {url for url, takes in self._takes_requests.items() if takes}
        unknown = self.candidates - self._takes_requests.keys()
        return Changes(
            added=tuple(sorted(wanted - listed)),
            removed=tuple(sorted(listed - wanted - unknown)),
        )
