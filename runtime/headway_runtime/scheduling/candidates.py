"""Requests whose prompts may be computed in a step, most urgent first."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Sequence
from dataclasses import replace
from itertools import islice
from math import inf
from operator import attrgetter
from typing import NamedTuple

from headway_runtime.scheduling.lateness import Late
from headway_runtime.scheduling.order import BACKGROUND, urgency_of
from headway_runtime.scheduling.view import (
    BackgroundRequest,
    Prefill,
    Urgency,
    WaitingRequest,
    Work,
)

LOOKS = 64
"""Most waiting requests that a step looks at."""

_IN_TURN: Urgency = (BACKGROUND, inf)
"""Of requests that go by turns of their tenants."""


class Candidate(NamedTuple):
    """A request whose prompt may be computed.

    Attributes:
        request: the request.
        computed_tokens: tokens before the chunk.
        remaining_tokens: tokens to compute.
        urgency: where it stands.
        is_background: it has no TTFT to keep.
        is_running: it is in the batch, so that its chunk can be limited.
    """

    request: Prefill | WaitingRequest
    computed_tokens: int
    remaining_tokens: int
    urgency: Urgency
    is_background: bool
    is_running: bool


def candidates(
    work: Work,
    waiting: Sequence[WaitingRequest],
    late: Late,
    looks: int,
    most_tokens: int,
) -> list[Candidate]:
    """Requests with prompt tokens to compute, most urgent first.

    Waiting ones are looked at from the front, and the first one without a TTFT wherever it stands.

    Args:
        work: what runs.
        waiting: what waits, in order, read lazily.
        late: those that have just been found to be late.
        looks: waiting requests to look at, for whom the batch has room.
        most_tokens: what a step has room for; more than that is not looked for.
    """
    found = [
        _candidate(each, each.computed_tokens, each.remaining_tokens, is_running=True)
        for each in _given_up(work.prefills, late.running)
    ]
    seen = _front(waiting, looks, most_tokens)
    if seen:
        seen += _background_head(waiting, len(seen))
    for each in seen:
        if each.prefill_tokens > 0 and not each.is_misfit:
            request = replace(each, is_late=True) if each.request_id in late.waiting else each
            found.append(_candidate(request, 0, each.prefill_tokens, is_running=False))
    if len(found) < 2:  # noqa: PLR2004 - nothing to sort, as in most steps
        return found
    # Those that run stay first among equals: they hold KV blocks.
    found.sort(key=attrgetter("urgency"))
    if work.carried.running_first_steps > 0:
        found.sort(key=attrgetter("is_running"), reverse=True)
    return found


def _given_up(prefills: Sequence[Prefill], late: Container[str]) -> Sequence[Prefill]:
    if not late:
        return prefills
    return [replace(each, is_late=each.is_late or each.request_id in late) for each in prefills]


def by_turns(found: list[Candidate], turns: Sequence[BackgroundRequest]) -> list[Candidate]:
    """The candidates, with those without a TTFT as it is their tenants' turn.

    What runs of tenants that have nothing waiting stays in front of them.
    """
    names = {each.request_id for each in turns}
    ahead = [
        each
        for each in found
        if not each.is_background or (each.is_running and each.request.request_id not in names)
    ]
    return ahead + [_in_turn(each) for each in turns if _in_turn(each).remaining_tokens > 0]


def _in_turn(request: BackgroundRequest) -> Candidate:
    if isinstance(request, Prefill):
        computed, left = request.computed_tokens, request.remaining_tokens
        return Candidate(request, computed, left, _IN_TURN, is_background=True, is_running=True)
    left = request.prefill_tokens
    return Candidate(request, 0, left, _IN_TURN, is_background=True, is_running=False)


def _candidate(
    request: Prefill | WaitingRequest, computed_tokens: int, tokens: int, *, is_running: bool
) -> Candidate:
    urgency = urgency_of(request)
    is_background = urgency[0] == BACKGROUND
    return Candidate(request, computed_tokens, tokens, urgency, is_background, is_running)


def _front(waiting: Sequence[WaitingRequest], looks: int, most_tokens: int) -> list[WaitingRequest]:
    """Requests at the front with so many prompt tokens together."""
    found: list[WaitingRequest] = []
    for each in islice(waiting, looks):
        if most_tokens <= 0:
            break
        found.append(each)
        most_tokens -= each.prefill_tokens
    return found


def _background_head(waiting: Sequence[WaitingRequest], first: int) -> list[WaitingRequest]:
    """The first request without a TTFT from there on; the queue is nearly in order."""
    places = range(first, len(waiting))
    found = bisect_left(places, BACKGROUND, key=lambda place: urgency_of(waiting[place])[0])
    return [waiting[places[found]]] if found < len(places) else []
