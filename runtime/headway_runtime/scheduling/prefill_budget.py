"""How many prompt tokens a step computes, and whose.

candidates in order -> what the time until the next token allows -> CUDA graphs and floors -> chunks
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from itertools import islice
from math import inf
from operator import attrgetter
from typing import NamedTuple

from headway_runtime.scheduling.order import BACKGROUND, urgency_of
from headway_runtime.scheduling.plan import Reason
from headway_runtime.scheduling.prefill_cost import base_seconds, chunk_seconds, chunk_tokens
from headway_runtime.scheduling.slack import step_time_target
from headway_runtime.scheduling.view import Carried, Prefill, Urgency, WaitingRequest, Work

LOOKS = 64
"""Most waiting requests that a step looks at."""

MOST_FLOOR_TOKENS = 256
LEAST_FLOOR_TOKENS = 16
"""Between these, the floor is what takes as long as the rest of its step: less prefill would hardly
make steps shorter, and the prompt would never end."""

WORTHWHILE = 0.25
"""Share of the floor that is worth a step with prefill, which is longer than one that only decodes
whatever it holds."""

STEPS_WITHOUT_BACKGROUND = 8
"""After so many steps background work gets its floor, whatever is due."""

BACKGROUND_SHARE = 0.05
"""Share of prompt tokens that background work gets while prompts with a TTFT take all there are."""


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


class PrefillBudget(NamedTuple):
    """Prompt tokens of a step.

    Attributes:
        tokens: at most so many of all requests together.
        chunks: at most so many of a running request.
        admits: some are for requests that wait.
        first: a waiting background request that goes before all others in this step.
        reasons: why.
        carried: for the next step.
    """

    tokens: int
    chunks: dict[str, int]
    admits: bool
    first: str | None
    reasons: tuple[Reason, ...]
    carried: Carried


def candidates(
    work: Work,
    waiting: Sequence[WaitingRequest],
    late: Container[str],
    looks: int,
    most_tokens: int,
) -> list[Candidate]:
    """Requests with prompt tokens to compute, most urgent first.

    Waiting ones are looked at from the front, and the first one without a TTFT wherever it stands.

    Args:
        work: what runs.
        waiting: what waits, in order, read lazily.
        late: ids of those that have just been found to be late.
        looks: waiting requests to look at, for whom the batch has room.
        most_tokens: what a step has room for; more than that is not looked for.
    """
    found = [
        _candidate(each, each.computed_tokens, each.remaining_tokens, is_running=True)
        for each in work.prefills
    ]
    seen = _front(waiting, looks, most_tokens)
    if seen:
        seen += _background_head(waiting, len(seen))
    for each in seen:
        if each.prefill_tokens > 0 and not each.is_misfit:
            request = replace(each, is_late=True) if each.request_id in late else each
            found.append(_candidate(request, 0, each.prefill_tokens, is_running=False))
    if len(found) < 2:  # noqa: PLR2004 - nothing to sort, as in most steps
        return found
    # Those that run stay first among equals: they hold KV blocks.
    found.sort(key=attrgetter("urgency"))
    if work.carried.running_first_steps > 0:
        found.sort(key=attrgetter("is_running"), reverse=True)
    return found


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


def decide_prefill(
    work: Work, found: Sequence[Candidate], most_tokens: int, *, more_wait: bool
) -> PrefillBudget:
    """Prompt tokens of a step, for requests in this order.

    Args:
        work: what runs.
        found: requests with prompt tokens to compute, most urgent first.
        most_tokens: that the step has room for.
        more_wait: others wait behind those.
    """
    target_s = step_time_target(work)
    left_s = inf if target_s is None else target_s - base_seconds(work)
    tokens = _fitting(work, found, left_s, most_tokens, more_wait=more_wait)
    if tokens is None:
        # All there is fits: the engine may as well have all of its budget.
        return _dealt_in_order(work, found, most_tokens, (), work.carried.background_credit_tokens)
    if target_s is None or tokens >= most_tokens:
        return _with_share(work, found, most_tokens, left_s, ())
    tokens, more = _shaped(work, found, tokens, most_tokens, target_s)
    return _with_share(work, found, tokens, left_s, (Reason.TOKENS_DUE, *more))


def _fitting(
    work: Work, found: Iterable[Candidate], left_s: float, most_tokens: int, *, more_wait: bool
) -> int | None:
    """Tokens that the time allows; None if all there are fit."""
    cost, tokens = work.step_time.mixed, 0
    for each in found:
        took_s = chunk_seconds(cost, each.computed_tokens, each.remaining_tokens)
        if took_s > left_s or each.remaining_tokens > most_tokens - tokens:
            fitting = chunk_tokens(cost, each.computed_tokens, left_s)
            return tokens + int(min(fitting, most_tokens - tokens))
        tokens += each.remaining_tokens
        left_s -= took_s
    if not more_wait:
        return None
    return tokens + int(min(chunk_tokens(cost, 0, left_s), most_tokens - tokens))


def _shaped(
    work: Work,
    found: Sequence[Candidate],
    tokens: int,
    most_tokens: int,
    target_s: float,
) -> tuple[int, tuple[Reason, ...]]:
    """The number brought to a size that is worth its step."""
    floor = _floor_tokens(work, found, most_tokens)
    worthwhile = WORTHWHILE * floor
    graph_room = work.graph_tokens - work.decodes
    if graph_room >= worthwhile:
        if tokens > graph_room and _launch_is_too_long(work, target_s):
            return graph_room, (Reason.GRAPH_SIZE,)
        floor = min(floor, graph_room)
    if any(not each.is_background for each in found):
        return max(tokens, floor), ((Reason.PREFILL_FLOOR,) if tokens < floor else ())
    if tokens >= worthwhile or not found:
        return tokens, ()
    if work.carried.steps_without_background >= STEPS_WITHOUT_BACKGROUND:
        return floor, (Reason.PREFILL_FLOOR,)
    return 0, (Reason.DECODE_ONLY,)


def _floor_tokens(work: Work, found: Sequence[Candidate], most_tokens: int) -> int:
    computed_tokens = found[0].computed_tokens if found else 0
    balanced = chunk_tokens(work.step_time.mixed, computed_tokens, base_seconds(work))
    return min(most_tokens, max(LEAST_FLOOR_TOKENS, min(MOST_FLOOR_TOKENS, int(balanced))))


def _launch_is_too_long(work: Work, target_s: float) -> bool:
    """Whether launching a step without a graph would take longer than the step may."""
    return (
        work.now_s + work.eager_launch_s - work.free_s > target_s or target_s < work.eager_launch_s
    )


def _with_share(
    work: Work,
    found: Sequence[Candidate],
    tokens: int,
    left_s: float,
    reasons: tuple[Reason, ...],
) -> PrefillBudget:
    """The tokens dealt out, background work first where it has waited for its share.

    It saves up a share of all prompt tokens while others take them, until that pays for as much as
    its next request can use in a step.
    """
    saved = work.carried.background_credit_tokens
    background = [each for each in found if each.is_background]
    urgent = sum([each.remaining_tokens for each in found if not each.is_background])
    if not background or not urgent:
        return _dealt_in_order(work, found, tokens, reasons, saved)
    head = background[0]
    credit = min(
        saved + BACKGROUND_SHARE * tokens,
        2.0 * max(tokens, MOST_FLOOR_TOKENS),
    )
    order = [head, *(each for each in found if each is not head)]
    in_time = tokens if Reason.PREFILL_FLOOR in reasons else _in_time(work, order, left_s, tokens)
    needed = min(head.remaining_tokens, in_time)
    if not tokens - urgent < needed <= credit:
        return _dealt_in_order(work, found, tokens, reasons, credit)
    reasons = (*reasons, Reason.BACKGROUND_SHARE)
    budget = _dealt_in_order(work, order, in_time, reasons, credit - needed)
    return budget if head.is_running else budget._replace(first=head.request.request_id)


def _in_time(work: Work, order: Sequence[Candidate], left_s: float, tokens: int) -> int:
    """Of so many tokens those that the time allows in this order.

    What goes first may have more before it to attend to than what it takes the place of.
    """
    fitting = _fitting(work, order, left_s, tokens, more_wait=False)
    return tokens if fitting is None else fitting


def _dealt_in_order(
    work: Work,
    order: Sequence[Candidate],
    tokens: int,
    reasons: tuple[Reason, ...],
    credit_tokens: float,
) -> PrefillBudget:
    """The tokens dealt out, to each as many as it can use and the rest to the next."""
    chunks: dict[str, int] = {}
    left, admits, one_waits, overtakes = tokens, False, False, False
    before, background = work.carried, None
    for each in order:
        chunk = min(each.remaining_tokens, left)
        left -= chunk
        if each.is_background:
            background = (background or 0) + chunk
        if each.is_running:
            chunks[each.request.request_id] = chunk
            overtakes |= one_waits
        else:
            one_waits = True
            admits |= chunk > 0
    if overtakes:
        reasons = (*reasons, Reason.URGENT_PREFILL_FIRST)
    carried = replace(
        before,
        background_credit_tokens=credit_tokens,
        steps_without_background=before.steps_without_background + 1 if background == 0 else 0,
        running_first_steps=max(0, before.running_first_steps - 1),
    )
    return PrefillBudget(tokens, chunks, admits, None, reasons, carried)
