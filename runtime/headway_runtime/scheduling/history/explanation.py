"""Why a request took as long as it did, in plain words. The largest share of its time first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headway_runtime.scheduling.history.lifecycle import LIVE, State
from headway_runtime.scheduling.history.summary import RequestSummary, Yielded
from headway_runtime.scheduling.history.work_done import OTHERS, REASONS

_ENDED_AS = {
    State.FINISHED: "it was complete",
    State.ABORTED: "it was ended for its client, who had gone or had met a stop string",
    State.FAILED: "the engine gave it up",
    State.QUARANTINED: "it was quarantined, since steps failed with it",
}

_MENTIONED_NS = 1_000_000
"""Shares of time below a millisecond are not worth a sentence."""


def explain(request: RequestSummary) -> tuple[str, ...]:
    """Sentences about one request, as far as it has come.

    For one that is under way, give its summary :meth:`RequestSummary.at` the present.
    """
    shares = sorted(zip(request.ns_in, LIVE, strict=True), key=lambda share: -share[0])
    told = [_share(request, spent_ns, state) for spent_ns, state in shares if _counts(spent_ns)]
    return (_first_token(request), _end(request), *told)


def _counts(spent_ns: int) -> bool:
    return spent_ns >= _MENTIONED_NS


def _first_token(request: RequestSummary) -> str:
    promised = f" ({_s(request.ttft_ms * 10**6)} were promised)" if request.ttft_ms else ""
    if request.first_token_ns:
        took_ns = request.first_token_ns - request.arrived_ns
        return f"Its first token came {_s(took_ns)} after its arrival{promised}."
    return f"No token of it has come{promised}."


def _end(request: RequestSummary) -> str:
    state = State(request.state)
    total = _s(request.total_ns)
    if state.is_end:
        return f"After {total} {_ENDED_AS[state]}."
    return f"It is {state.name.lower()}, {total} after its arrival."


def _share(request: RequestSummary, spent_ns: int, state: State) -> str:
    sentence = f"{_s(spent_ns)} of {_s(request.total_ns)} {_SPENT[state](request)}"
    return f"{sentence}."


def _waiting(request: RequestSummary) -> str:
    parts = [_and([_unseen(request), *_went_first(request, request.waiting_ns)])]
    if request.given_up_ns:
        given_up = _s(request.given_up_ns - request.arrived_ns)
        parts.append(f"its own TTFT was given up after {given_up}")
    if request.reasons:
        parts.append(f"plans until its first token: {_reasons(request)}")
    return "; ".join(["waiting to be admitted" + _after_colon(parts[0]), *parts[1:]])


def _prefilling(request: RequestSummary) -> str:
    largest = f", the largest of {_count(request.largest_chunk_tokens)}" * (request.chunks > 1)
    parts = f"{request.chunks} {_plural('part', request.chunks)}{largest}"
    told = [f"computing its prompt: {_count(request.chunk_tokens)} tokens in {parts}"]
    if request.cached_tokens:
        told.append(f"{_count(request.cached_tokens)} more were in the cache")
    if request.beside_tokens:
        told.append(f"{_count(request.beside_tokens)} prompt tokens of others were computed beside")
    if request.held_back_steps:
        steps = _plural("step", request.held_back_steps)
        told.append(f"{_count(request.held_back_steps)} {steps} left it out")
    return "; ".join(told)


def _decoding(request: RequestSummary) -> str:
    gaps = request.output_tokens - 1
    if gaps < 1:
        return "generating"
    promised = f" ({request.tpot_ms} ms were promised)" if request.tpot_ms else ""
    mean_ms = request.decoding_ns / 1e6 / gaps
    return f"generating {_count(request.output_tokens)} tokens, {mean_ms:.1f} ms each{promised}"


def _preempted(request: RequestSummary) -> str:
    times = f"{request.preemptions} {_plural('time', request.preemptions)}"
    told = [f"waiting again after it had lost its KV blocks {times}"]
    told += _went_first(request, request.preempted_ns)
    if request.recomputed_tokens:
        told.append(f"{_count(request.recomputed_tokens)} tokens were computed again")
    return "; ".join(told)


def _paused(request: RequestSummary) -> str:
    return f"waiting for its client after {request.turns} {_plural('part', request.turns)}"


_SPENT: dict[State, Callable[[RequestSummary], str]] = {
    State.WAITING: _waiting,
    State.PREFILLING: _prefilling,
    State.DECODING: _decoding,
    State.PREEMPTED: _preempted,
    State.PAUSED: _paused,
}


def _unseen(request: RequestSummary) -> str:
    """How long it took until the engine knew of it: it looks between two steps."""
    unseen_ns = request.taken_in_ns - request.arrived_ns
    return f"{_s(unseen_ns)} passed before the engine looked" if _counts(unseen_ns) else ""


def _went_first(request: RequestSummary, spent_ns: int) -> list[str]:
    """Whom it waited for, told where most of its waiting was."""
    if spent_ns < max(request.waiting_ns, request.preempted_ns) or not request.waited_steps:
        return []
    steps = f"{_count(request.waited_steps)} {_plural('step', request.waited_steps)}"
    if not request.yielded_tokens:
        return [f"no prompt of others was computed in {steps} that ran meanwhile"]
    named = [f"{_count(each.tokens)} of {_name(each)}" for each in request.yielded]
    rest = request.yielded_tokens - sum(each.tokens for each in request.yielded)
    if rest > 0:
        named.append(f"{_count(rest)} of others")
    return [f"these prompt tokens went first in {steps}: {_and(named)}"]


def _name(group: Yielded) -> str:
    kind = f"class {group.class_name}" if group.class_name else "no class"
    if not group.tenant:
        return kind
    return f"{kind} ({'other tenants' if group.tenant == OTHERS else f'tenant {group.tenant}'})"


def _reasons(request: RequestSummary) -> str:
    known = [(REASONS[number], steps) for number, steps in request.reasons if number < len(REASONS)]
    return _and(
        [f"{reason.value} in {_count(steps)} {_plural('step', steps)}" for reason, steps in known]
    )


def _and(parts: Sequence[str]) -> str:
    return ", ".join(each for each in parts if each)


def _after_colon(text: str) -> str:
    return f": {text}" if text else ""


def _plural(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"


def _count(number: int) -> str:
    return f"{number:,}"


def _s(nanoseconds: int) -> str:
    """Seconds, with as many digits as say something."""
    seconds = nanoseconds / 1e9
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"
