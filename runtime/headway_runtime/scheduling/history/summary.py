"""What is told of one request: the numbers of its history, to be written down and explained."""

from __future__ import annotations

from typing import Any, NamedTuple

from headway_runtime.scheduling.history.lifecycle import LIVE, State


class Yielded(NamedTuple):
    """Requests that went first.

    Attributes:
        class_name: their class of traffic; empty without one.
        tenant: whose they are; empty for all who cannot be told apart.
        tokens: tokens of their prompts that were computed meanwhile.
    """

    class_name: str
    tenant: str
    tokens: int


class RequestSummary(NamedTuple):
    """One request. Times are nanoseconds since the epoch, 0 for what has not come to pass.

    Attributes:
        request_id: the engine's id of it.
        class_name: its class of traffic; empty without one.
        tenant: whose it is; empty for all who cannot be told apart.
        state: where it is, a :class:`State`.
        arrived_ns: when it arrived at the front-end.
        taken_in_ns: when the engine took it in.
        since_ns: since when it is in its state.
        admitted_ns: when it was first admitted.
        first_token_ns: when its first token came.
        ended_ns: when it ended.
        given_up_ns: when its TTFT was given up.
        waiting_ns: time in that state, as of all states that follow; without the time it has been
            in its present one.
        prefilling_ns: time in which its prompt was computed.
        decoding_ns: time in which its tokens came.
        preempted_ns: time in which it waited without the KV blocks that it had.
        paused_ns: time in which it waited for its client.
        ttft_ms: promised time to first token; 0 without.
        tpot_ms: promised time per token after it; 0 without.
        prompt_tokens: length of its prompt.
        cached_tokens: tokens of it that were in the prefix cache when it was first admitted.
        output_tokens: tokens that came; known at its end.
        chunks: parts that its prompt was computed in, over and over when it was preempted.
        chunk_tokens: tokens of all of them.
        largest_chunk_tokens: tokens of the largest.
        held_back_steps: steps that left its prompt out after it was admitted.
        preemptions: how often it lost its KV blocks.
        recomputed_tokens: tokens that were computed again because of it.
        turns: parts of a session that have ended.
        waited_steps: steps in which it waited while others ran.
        beside_tokens: prompt tokens of others that were computed while its own were.
        yielded_tokens: prompt tokens of others that were computed while it waited.
        yielded: whose these were, largest first; not all of them.
        reasons: steps until its first token, by number of the reason why they were planned so,
            most frequent first; not all of them.
    """

    request_id: str
    class_name: str = ""
    tenant: str = ""
    state: int = State.WAITING
    arrived_ns: int = 0
    taken_in_ns: int = 0
    since_ns: int = 0
    admitted_ns: int = 0
    first_token_ns: int = 0
    ended_ns: int = 0
    given_up_ns: int = 0
    waiting_ns: int = 0
    prefilling_ns: int = 0
    decoding_ns: int = 0
    preempted_ns: int = 0
    paused_ns: int = 0
    ttft_ms: int = 0
    tpot_ms: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    chunks: int = 0
    chunk_tokens: int = 0
    largest_chunk_tokens: int = 0
    held_back_steps: int = 0
    preemptions: int = 0
    recomputed_tokens: int = 0
    turns: int = 0
    waited_steps: int = 0
    beside_tokens: int = 0
    yielded_tokens: int = 0
    yielded: tuple[Yielded, ...] = ()
    reasons: tuple[tuple[int, int], ...] = ()

    @property
    def ns_in(self) -> tuple[int, ...]:
        """Time in each state in which time is spent, by its number."""
        return (
            self.waiting_ns,
            self.prefilling_ns,
            self.decoding_ns,
            self.preempted_ns,
            self.paused_ns,
        )

    @property
    def total_ns(self) -> int:
        """Time from its arrival, as far as it is told."""
        return sum(self.ns_in)

    def at(self, now_ns: int) -> RequestSummary:
        """The same with the time in its present state up to now."""
        if State(self.state).is_end:
            return self
        now_ns = max(now_ns, self.since_ns)
        spent_ns = self.ns_in[self.state] + now_ns - self.since_ns
        spent: dict[str, Any] = {f"{LIVE[self.state].name.lower()}_ns": spent_ns}
        return self._replace(since_ns=now_ns, **spent)
