"""What was let in and the engine's board does not know of yet. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headway_runtime.scheduling.admission.refusal import LetIn

ON_ITS_WAY_S = 0.02
"""So long a request takes from here into the scheduler: it is rendered, tokenized and sent."""

_FOREVER_MS = 2**63


@dataclass(frozen=True)
class _Entry:
    class_name: str
    prompt_tokens: int
    came_s: float


@dataclass
class _Sum:
    requests: int = 0
    prompt_tokens: int = 0


@dataclass
class Ledger:
    """Requests that were let in, by the ticket each of them got. Oldest first."""

    _entries: dict[int, _Entry] = field(default_factory=dict)
    _sums: dict[str, _Sum] = field(default_factory=dict)
    _last_ticket: int = 0

    def __len__(self) -> int:
        return len(self._entries)

    def enter(self, class_name: str, prompt_tokens: int, now_s: float) -> int:
        """A request of a class is let in; the ticket to strike it out with."""
        self._last_ticket += 1
        self._entries[self._last_ticket] = _Entry(class_name, prompt_tokens, now_s)
        total = self._sums.setdefault(class_name, _Sum())
        total.requests += 1
        total.prompt_tokens += prompt_tokens
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


def _rank(ttft_ms: int | None) -> int:
    return _FOREVER_MS if ttft_ms is None else ttft_ms
