"""What has become of a request, while it goes on."""

from __future__ import annotations

from typing import TypeVar

from headway_runtime.scheduling.history.lifecycle import LIVE, IllegalTransitionError, State, follow
from headway_runtime.scheduling.history.summary import RequestSummary, Yielded
from headway_runtime.scheduling.history.work_done import (
    NO_GROUP,
    NOTHING_DONE,
    Group,
    Reading,
    steps_by_reason,
)

MOST_YIELDED_TO = 8
"""Groups that a history tells apart among those that went first; the least of them are dropped."""

TOLD_YIELDED_TO = 3
"""The largest of them that its summary tells."""

TOLD_REASONS = 3
"""The most frequent reasons that its summary tells."""

_Key = TypeVar("_Key")


class RequestHistory:
    """The history of one request: a fixed number of numbers, however long it is under way.

    Times are nanoseconds since the epoch. A clock that was set back makes no time negative: what
    comes then counts as if it were at once. What the engine has done so far is told with each
    event, since the difference to the last one tells what went on meanwhile.

    Attributes:
        state: where it is.

    Args:
        request_id: the engine's id of it.
        arrived_ns: when it arrived at the front-end.
        taken_in_ns: when the engine took it in.
        done: what the engine had done by then.
        group: its class and tenant.
        prompt_tokens: length of its prompt.
        promised_ms: its time to first token, and per token after it; 0 without.
    """

    __slots__ = (
        "_admitted_ns", "_arrived_ns", "_beside_tokens", "_cached_tokens", "_chunk_tokens",
        "_chunks", "_computed_tokens", "_done", "_first_token_ns", "_given_up_ns", "_group",
        "_held_back_steps", "_largest_chunk_tokens", "_ns_in", "_output_tokens", "_preemptions",
        "_promised_ms", "_prompt_tokens", "_reasons", "_recomputed_tokens", "_request_id",
        "_since_ns", "_taken_in_ns", "_turns", "_waited_steps", "_yielded", "_yielded_tokens",
        "state",
    )  # fmt: skip

    def __init__(  # noqa: PLR0913 - each is one thing that is known when it arrives
        self,
        request_id: str,
        arrived_ns: int,
        taken_in_ns: int,
        done: Reading = NOTHING_DONE,
        *,
        group: Group = NO_GROUP,
        prompt_tokens: int = 0,
        promised_ms: tuple[int, int] = (0, 0),
    ) -> None:
        self.state: State = State.WAITING
        self._request_id = request_id
        self._group = group
        self._promised_ms = promised_ms
        self._prompt_tokens = prompt_tokens
        self._arrived_ns = self._since_ns = arrived_ns
        self._taken_in_ns = max(arrived_ns, taken_in_ns)
        self._done = done
        self._admitted_ns = self._first_token_ns = self._given_up_ns = 0
        self._ns_in = [0] * len(LIVE)
        self._computed_tokens = self._cached_tokens = self._output_tokens = 0
        self._chunks = self._chunk_tokens = self._largest_chunk_tokens = 0
        self._held_back_steps = self._preemptions = self._recomputed_tokens = self._turns = 0
        self._waited_steps = self._beside_tokens = self._yielded_tokens = 0
        self._yielded: dict[Group, int] = {}
        self._reasons = 0

    @property
    def chunk_tokens(self) -> int:
        """Tokens of its prompt that were computed, and those again that were so again."""
        return self._chunk_tokens

    def admitted(self, now_ns: int, done: Reading, cached_tokens: int = 0) -> None:
        """It runs from now on, or again; so many of its tokens need not be computed.

        Raises:
            IllegalTransitionError: it did not wait.
        """
        self._becomes(State.PREFILLING, now_ns, done)
        if not self._admitted_ns:
            self._admitted_ns = self._since_ns
            self._cached_tokens = cached_tokens

    def chunk(self, tokens: int, computed_tokens: int) -> None:
        """A step computes so many tokens of its prompt after those computed; 0 leaves it out.

        Raises:
            IllegalTransitionError: it does not compute its prompt.
        """
        if self.state is not State.PREFILLING:
            raise IllegalTransitionError(f"a part of its prompt while {self.state.name.lower()}")
        if not tokens:
            self._held_back_steps += 1
            return
        self._chunks += 1
        self._chunk_tokens += tokens
        self._largest_chunk_tokens = max(self._largest_chunk_tokens, tokens)
        computed = computed_tokens + tokens
        if computed_tokens < self._computed_tokens:
            self._recomputed_tokens += min(computed, self._computed_tokens) - computed_tokens
        self._computed_tokens = max(self._computed_tokens, computed)

    def token_came(self, now_ns: int, done: Reading) -> None:
        """A token came: its first one, or the first one after its prompt was computed again.

        Raises:
            IllegalTransitionError: it does not run.
        """
        if self.state is not State.PREEMPTED:
            self._becomes(State.DECODING, now_ns, done)
        self.late_token_came(now_ns)

    def late_token_came(self, now_ns: int) -> None:
        """A token came that was on its way when the request lost its KV blocks."""
        if not self._first_token_ns:
            self._first_token_ns = max(now_ns, self._since_ns)

    def preempted(self, now_ns: int, done: Reading, tokens: int) -> None:
        """It has lost the KV blocks of its ``tokens`` prompt and output tokens.

        Raises:
            IllegalTransitionError: it does not run.
        """
        was = self.state
        self._becomes(State.PREEMPTED, now_ns, done)
        self._preemptions += 1
        if was is State.DECODING:
            # All but the one that came last, which nobody has computed yet.
            self._computed_tokens = max(self._computed_tokens, tokens - 1)

    def turn_ended(self, now_ns: int, done: Reading) -> None:
        """A part of a session has ended; it waits for its client.

        Raises:
            IllegalTransitionError: it does not run.
        """
        self._becomes(State.PAUSED, now_ns, done)
        self._turns += 1

    def goes_on(self, now_ns: int, done: Reading) -> None:
        """The next part of a session has come.

        Raises:
            IllegalTransitionError: it does not wait for its client.
        """
        self._becomes(State.WAITING, now_ns, done)

    def given_up(self, now_ns: int) -> None:
        """Its TTFT cannot be kept any more: it gives way to requests whose TTFT can be."""
        if not self._given_up_ns and not self._first_token_ns and not self.state.is_end:
            self._given_up_ns = max(now_ns, self._since_ns)

    def ended(self, state: State, now_ns: int, done: Reading, output_tokens: int = 0) -> None:
        """It has ended like this, with so many tokens.

        Raises:
            IllegalTransitionError: it cannot end so, or has ended.
        """
        if not state.is_end:
            raise IllegalTransitionError(f"{state.name.lower()} is no end")
        self._becomes(state, now_ns, done)
        self._output_tokens = output_tokens

    def summary(self, done: Reading | None = None) -> RequestSummary:
        """The history so far; with what the engine has done by now, it tells of that as well."""
        if done is not None and not self.state.is_end:
            self._meanwhile(done)
        ended_ns = self._since_ns if self.state.is_end else 0
        waiting_ns, prefilling_ns, decoding_ns, preempted_ns, paused_ns = self._ns_in
        ttft_ms, tpot_ms = self._promised_ms
        return RequestSummary(
            self._request_id, self._group.class_name, self._group.tenant, self.state.value,
            self._arrived_ns, self._taken_in_ns, self._since_ns, self._admitted_ns,
            self._first_token_ns, ended_ns, self._given_up_ns, waiting_ns, prefilling_ns,
            decoding_ns, preempted_ns, paused_ns, ttft_ms, tpot_ms,
            self._prompt_tokens, self._cached_tokens, self._output_tokens, self._chunks,
            self._chunk_tokens, self._largest_chunk_tokens, self._held_back_steps,
            self._preemptions, self._recomputed_tokens, self._turns, self._waited_steps,
            max(0, self._beside_tokens - self._chunk_tokens), self._yielded_tokens,
            tuple([
                Yielded(*group, tokens)
                for group, tokens in _most(self._yielded, TOLD_YIELDED_TO)
            ]),
            tuple(_most(steps_by_reason(self._reasons), TOLD_REASONS)),
        )  # fmt: skip

    def _becomes(self, state: State, now_ns: int, done: Reading) -> None:
        state = follow(self.state, state)
        self._meanwhile(done)
        if now_ns > self._since_ns:
            self._ns_in[self.state] += now_ns - self._since_ns
            self._since_ns = now_ns
        self.state = state

    def _meanwhile(self, done: Reading) -> None:
        """Add what the engine has done since it was told last."""
        before, self._done = self._done, done
        if before is done or self.state is State.DECODING or self.state is State.PAUSED:
            return
        tokens = done.prompt_tokens - before.prompt_tokens
        if self.state is State.PREFILLING:
            # Its own are among them.
            self._beside_tokens += tokens
        else:
            self._waited_steps += done.steps - before.steps
            self._yielded_tokens += tokens
            if tokens:
                _add(self._yielded, done.tokens_since(before))
            if len(self._yielded) > MOST_YIELDED_TO:
                self._yielded = dict(_most(self._yielded, MOST_YIELDED_TO))
        if not self._first_token_ns:
            self._reasons += done.reasons - before.reasons


def _add(to: dict[_Key, int], more: dict[_Key, int]) -> None:
    for key, count in more.items():
        to[key] = to.get(key, 0) + count


def _most(counts: dict[_Key, int], count: int) -> list[tuple[_Key, int]]:
    """The largest of them, largest first."""
    if len(counts) < 2:  # noqa: PLR2004 - nothing to sort
        return [*counts.items()]
    return sorted(counts.items(), key=lambda each: each[1], reverse=True)[:count]
