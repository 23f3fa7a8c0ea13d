"""When the next tokens of decoding requests are due.

A token is due one TPOT target after the one before it, the second one of an answer together with
the third. Every step gives each decoding request one token, which moves all that is due by the same
time: what is kept of each request does not change from step to step, and the most pressed one is on
top of a heap. A step costs O(1) for each target, and a look at each request that has just begun.
"""

from __future__ import annotations

from collections.abc import Container
from heapq import heapify, heappop, heappush
from itertools import filterfalse

from headway_runtime.scheduling.view import TokenDue

HOPELESS_S = 0.5
"""A request whose token is late by more than this cannot be helped by shorter steps: it goes on
decoding and nobody hurries for it."""

EARLY_TOKENS = 2
"""Up to this token none is due before it. TPOT is a mean over an answer, and somebody has always
just begun: with the first gap due by itself no step could be longer than one TPOT, whatever time
all others have."""

KEPT_SHARE = 0.1
"""Tokens are aimed at so much of a TPOT before they are due, once for an answer and not anew for
each token: what the length of one step may be off by."""

_COMPACT_BEYOND = 64


class _Member:
    """A decoding request.

    Attributes:
        due_s: when its next token would be due had no step been made since the clock began; None
            for one that nobody hurries for.
        context: tokens it would have, likewise.
    """

    __slots__ = ("context", "due_s")

    def __init__(self, due_s: float | None, context: int) -> None:
        self.due_s = due_s
        self.context = context


class DecodeClock:
    """Decoding requests with one TPOT target.

    Attributes:
        tpot_s: the target.
        context_tokens: tokens before those that decode next.

    Args:
        tpot_s: the target, in seconds; None for requests without one.
    """

    def __init__(self, tpot_s: float | None) -> None:
        self.tpot_s = tpot_s
        self.context_tokens = 0
        self._steps = 0
        self._members: dict[str, _Member] = {}
        self._heap: list[tuple[float, str]] = []
        self._early: dict[str, int] = {}
        """Output tokens of requests that have few, which are not in the heap yet."""

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._members

    def join(self, request_id: str, first_token_s: float, tokens: int, context: int) -> None:
        """A request decodes from now on.

        Args:
            request_id: the request; it takes the place of one of the same id.
            first_token_s: when its first token came, or will come.
            tokens: output tokens it has, those under way included.
            context: all tokens it has.
        """
        self.leave(request_id)
        due_s = None
        if self.tpot_s is not None:
            due_s = first_token_s + (tokens - self._steps - KEPT_SHARE) * self.tpot_s
            if tokens < EARLY_TOKENS:
                self._early[request_id] = tokens
            else:
                heappush(self._heap, (due_s, request_id))
        self._members[request_id] = _Member(due_s, context - self._steps)
        self.context_tokens += context

    def leave(self, request_id: str) -> bool:
        """A request decodes no more. Returns whether it did."""
        member = self._members.pop(request_id, None)
        if member is None:
            return False
        self.context_tokens -= member.context + self._steps
        self._early.pop(request_id, None)
        if len(self._heap) > 2 * len(self._members) + _COMPACT_BEYOND:
            settled = [name for name in self._members if name not in self._early]
            pairs = ((self._members[name].due_s, name) for name in settled)
            self._heap = [(due_s, name) for due_s, name in pairs if due_s is not None]
            heapify(self._heap)
        return True

    def move(self, request_id: str, seconds: float) -> None:
        """A request's first token came so much later than was thought."""
        member = self._members.get(request_id)
        if member is not None and member.due_s is not None:
            member.due_s += seconds
            self._settle(request_id, member)

    def stepped(self, scheduled: Container[str] | None = None) -> None:
        """A step was made.

        Args:
            scheduled: requests that got a token; None if all did.
        """
        self._steps += 1
        self.context_tokens += len(self._members)
        if scheduled is not None:
            for name in filterfalse(scheduled.__contains__, self._members):
                self._skipped(name, self._members[name])
        if self._early:
            self._early_stepped(scheduled)

    def _early_stepped(self, scheduled: Container[str] | None) -> None:
        for name, tokens in list(self._early.items()):
            if scheduled is not None and name not in scheduled:
                continue
            self._early[name] = tokens + 1
            if tokens + 1 >= EARLY_TOKENS:
                del self._early[name]
                self._settle(name, self._members[name])

    def _settle(self, name: str, member: _Member) -> None:
        """It has its place in the heap from now on, unless it has just begun."""
        if member.due_s is not None and name not in self._early:
            heappush(self._heap, (member.due_s, name))

    def next_due(self, now_s: float) -> TokenDue | None:
        """The most pressed request's next token; None where no request has one that matters."""
        if self.tpot_s is None:
            return None
        dues_s = self._early_dues_s(self.tpot_s) if self._early else []
        dues_s = [due_s for due_s in dues_s if due_s >= now_s - HOPELESS_S]
        settled_s = self._settled_due_s(self.tpot_s, now_s - HOPELESS_S)
        if settled_s is not None:
            dues_s.append(settled_s)
        return TokenDue(min(dues_s), self.tpot_s) if dues_s else None

    def _early_dues_s(self, tpot_s: float) -> list[float]:
        found = []
        for name, tokens in self._early.items():
            due_s = self._members[name].due_s
            if due_s is not None:
                found.append(due_s + (self._steps + EARLY_TOKENS - tokens) * tpot_s)
        return found

    def _settled_due_s(self, tpot_s: float, earliest_s: float) -> float | None:
        """The earliest of those that have not just begun."""
        moved_s = self._steps * tpot_s
        heap = self._heap
        while heap:
            due_s, name = heap[0]
            member = self._members.get(name)
            if member is not None and member.due_s == due_s:
                if due_s + moved_s >= earliest_s:
                    return due_s + moved_s
                member.due_s = None
            heappop(heap)
        return None

    def _skipped(self, name: str, member: _Member) -> None:
        member.context -= 1
        self.context_tokens -= 1
        if member.due_s is not None and self.tpot_s is not None:
            member.due_s -= self.tpot_s
            self._settle(name, member)


class DecodeClocks:
    """All decoding requests, a clock for each TPOT target."""

    def __init__(self) -> None:
        self._clocks: dict[float | None, DecodeClock] = {}
        self._clock_of: dict[str, DecodeClock] = {}

    def __len__(self) -> int:
        return len(self._clock_of)

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._clock_of

    @property
    def context_tokens(self) -> int:
        """Tokens before those that decode next, of all requests."""
        return sum([clock.context_tokens for clock in self._clocks.values()])

    def join(
        self, request_id: str, tpot_s: float | None, first_token_s: float, tokens: int, context: int
    ) -> None:
        """A request decodes from now on; see :meth:`DecodeClock.join`."""
        self.leave(request_id)
        clock = self._clocks.get(tpot_s)
        if clock is None:
            clock = self._clocks[tpot_s] = DecodeClock(tpot_s)
        clock.join(request_id, first_token_s, tokens, context)
        self._clock_of[request_id] = clock

    def leave(self, request_id: str) -> None:
        """A request decodes no more, if it did."""
        clock = self._clock_of.pop(request_id, None)
        if clock is not None:
            clock.leave(request_id)
            if not len(clock):
                del self._clocks[clock.tpot_s]

    def move(self, request_id: str, seconds: float) -> None:
        """A request's first token came so much later than was thought."""
        clock = self._clock_of.get(request_id)
        if clock is not None:
            clock.move(request_id, seconds)

    def stepped(self, scheduled: Container[str] | None = None) -> None:
        """A step was made; ``scheduled`` are those that got a token, None if all did."""
        for clock in self._clocks.values():
            clock.stepped(scheduled)

    def due(self, now_s: float) -> tuple[TokenDue, ...]:
        """For each target the most pressed request's next token."""
        found = [clock.next_due(now_s) for clock in self._clocks.values()]
        return tuple([each for each in found if each is not None])
