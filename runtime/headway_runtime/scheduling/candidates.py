"""Requests whose prompts may be computed in a step, most urgent first."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Sequence
from dataclasses import replace
from itertools import islice
from operator import attrgetter

from headway_runtime.scheduling.lateness import Late
from headway_runtime.scheduling.urgency import BACKGROUND
from headway_runtime.scheduling.view import (
    BackgroundRequest,
    Candidate,
    Prefill,
    WaitingRequest,
    Work,
)

LOOKS = 64
"""Most waiting requests that a step looks at."""


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
    found: list[Candidate] = [*_given_up(work.prefills, late.running)]
    seen = _front(waiting, looks, most_tokens)
    if seen:
        seen += _background_head(waiting, len(seen))
    if late.waiting:
        lost = late.waiting
        seen = [replace(each, is_late=True) if each.request_id in lost else each for each in seen]
    found += [each for each in seen if each.prefill_tokens > 0 and not each.is_misfit]
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
        if not each.is_background or (each.is_running and each.request_id not in names)
    ]
    return ahead + [each for each in turns if each.remaining_tokens > 0]


def _front(waiting: Sequence[WaitingRequest], looks: int, most_tokens: int) -> list[WaitingRequest]:
    """Requests at the front with so many prompt tokens together."""
    found: list[WaitingRequest] = []
    if most_tokens <= 0:
        return found
    for each in islice(waiting, looks):
        found.append(each)
        most_tokens -= each.prefill_tokens
        if most_tokens <= 0:
            break
    return found


def _background_head(waiting: Sequence[WaitingRequest], first: int) -> list[WaitingRequest]:
    """The first request without a TTFT from there on; the queue is nearly in order."""
    places = range(first, len(waiting))
    if not places or waiting[first].urgency[0] >= BACKGROUND:
        # In most steps what the batch has room for ends where background work begins.
        return [waiting[first]] if places else []
    found = bisect_left(places, BACKGROUND, key=lambda place: waiting[place].urgency[0])
    return [waiting[places[found]]] if found < len(places) else []
