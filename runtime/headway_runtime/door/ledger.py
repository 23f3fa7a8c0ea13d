"""What was let in and the engine's board does not know of yet. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headway_runtime.exchange.let_in_file import LetInRequest
from headway_runtime.scheduling.admission.refusal import LetIn

ON_ITS_WAY_S = 0.02
"""So long a request takes from here into the scheduler: it is rendered, tokenized and sent."""

_FOREVER_MS = 2**63


@dataclass
class _Sum:
    requests: int = 0
    prompt_tokens: int = 0


@dataclass
class Ledger:
    """Requests that were let in, by the ticket each of them got. Oldest first."""

    _entries: dict[int, LetInRequest] = field(default_factory=dict)
    _sums: dict[str, _Sum] = field(default_factory=dict)
    _last_ticket: int = 0

    def __len__(self) -> int:
        return len(self._entries)

    def enter(self, request: LetInRequest) -> int:
        """A request is let in; the ticket to strike it out with. Tickets go up by one."""
        self._last_ticket += 1
        self._entries[self._last_ticket] = request
        total = self._sums.setdefault(request.class_name, _Sum())
        total.requests += 1
        total.prompt_tokens += request.prompt_tokens
        return self._last_ticket

    def leave(self, ticket: int) -> None:
        """It has its answer, or nobody waits for it any more; twice is the same as once."""
        entry = self._entries.pop(ticket, None)
        if entry is None:
            return
        total = self._sums[entry.class_name]
        total.requests -= 1
        total.prompt_tokens -= entry.prompt_tokens
        if total.requests == 0:
            # Names of classes come and go.
            del self._sums[entry.class_name]

    def seen(self, known_s: float) -> None:
        """A board was read that knows of what had reached the engine by this time."""
        while self._entries:
            ticket, entry = next(iter(self._entries.items()))
            if entry.came_s + ON_ITS_WAY_S > known_s:
                return
            self.leave(ticket)

    def let_in(self, class_name: str, ttft_ms: Mapping[str, int | None]) -> LetIn:
        """What a request of a class has before it of those let in.

        Args:
            class_name: its class.
            ttft_ms: TTFT of each class, None where it has none: it comes after all that have.
        """
        own = _rank(ttft_ms.get(class_name))
        tokens = sum(
            total.prompt_tokens
            for name, total in self._sums.items()
            if _rank(ttft_ms.get(name)) <= own
        )
        requests = self._sums[class_name].requests if class_name in self._sums else 0
        return LetIn(requests, tokens)


def unseen_since(known_s: float) -> float:
    """What came later than this is not on a board that knows of what the engine had by a time."""
    return known_s - ON_ITS_WAY_S


def with_others(
    own: LetIn,
    others: Iterable[LetInRequest],
    class_name: str,
    ttft_ms: Mapping[str, int | None],
) -> LetIn:
    """The same with what other processes let in that the board does not know of.

    Args:
        own: what this one let in.
        others: what they let in.
        class_name: class of the request that comes.
        ttft_ms: TTFT of each class, as in :meth:`Ledger.let_in`.
    """
    rank = _rank(ttft_ms.get(class_name))
    requests, tokens = own
    for each in others:
        requests += each.class_name == class_name
        if _rank(ttft_ms.get(each.class_name)) <= rank:
            tokens += each.prompt_tokens
    return LetIn(requests, tokens)


def _rank(ttft_ms: int | None) -> int:
    return _FOREVER_MS if ttft_ms is None else ttft_ms
