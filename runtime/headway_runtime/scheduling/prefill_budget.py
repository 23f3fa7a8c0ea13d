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
from headway_runtime.scheduling.prefill_cost import (
    base_seconds,
    chunk_seconds,
    chunk_tokens,
    slowdown,
)
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

STEPS_WITHOUT_URGENT = 4
"""After so many steps prompts with a TTFT do, however far away their deadlines are."""

TTFT_RESERVE = 2.0
"""Prompts with a TTFT may wait while there is so many times the time that they take."""

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
    if target_s is not None and _is_launched_late(work, target_s) and _may_wait(work, found):
        credit = work.carried.background_credit_tokens
        return _dealt_in_order(work, found, 0, (Reason.DECODE_ONLY,) if found else (), credit)
    left_s = inf if target_s is None else target_s - base_seconds(work)
    tokens = _fitting(work, found, left_s, most_tokens, more_wait=more_wait)
    if tokens is None:
        return _with_all(work, found, most_tokens, target_s)
    if target_s is None or tokens >= most_tokens:
        return _with_share(work, found, most_tokens, left_s, ())
    tokens, more = _shaped(work, found, tokens, most_tokens, target_s)
    return _with_share(work, found, tokens, left_s, (Reason.TOKENS_DUE, *more))


def _with_all(
    work: Work, found: Sequence[Candidate], most_tokens: int, target_s: float | None
) -> PrefillBudget:
    """All there is fits: the engine may as well have all of its budget.

    Unless a step without a graph takes so long to launch that two with one get as much done sooner.
    """
    credit = work.carried.background_credit_tokens
    graph_room = work.graph_tokens - work.decodes
    tokens = sum([each.remaining_tokens for each in found])
    is_larger = target_s is not None and 0 < graph_room < tokens
    if is_larger and not _eager_is_faster(work, tokens, graph_room):
        return _dealt_in_order(work, found, graph_room, (Reason.GRAPH_SIZE,), credit)
    return _dealt_in_order(work, found, most_tokens, (), credit)


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
    has_graph = graph_room >= worthwhile
    if has_graph:
        floor = min(floor, graph_room)
    if tokens < worthwhile and _may_wait(work, found):
        return 0, ((Reason.DECODE_ONLY,) if found else ())
    if has_graph and tokens > graph_room and not _is_worth_it(work, tokens, graph_room, target_s):
        return graph_room, (Reason.GRAPH_SIZE,)
    reasons: tuple[Reason, ...] = ()
    if tokens < floor and (tokens < worthwhile or not _only_background(found)):
        tokens, reasons = floor, (Reason.PREFILL_FLOOR,)
    hidden = min(graph_room, most_tokens, _hidden_tokens(work, found)) if has_graph else 0
    return (tokens, reasons) if hidden <= tokens else (hidden, (*reasons, Reason.FILLS_LAUNCH))


def _only_background(found: Sequence[Candidate]) -> bool:
    return all(each.is_background for each in found)


def _may_wait(work: Work, found: Sequence[Candidate]) -> bool:
    """Whether prompts may get nothing in this step for the sake of tokens that are due."""
    if work.carried.decode_only_steps >= _most_decode_only_steps(found):
        return False
    urgent = [each for each in found if not each.is_background]
    if not urgent:
        return True
    needed_s = sum([_prompt_seconds(work, each) for each in urgent])
    return work.free_s + TTFT_RESERVE * needed_s < urgent[0].urgency[1]


def _most_decode_only_steps(found: Sequence[Candidate]) -> int:
    return STEPS_WITHOUT_BACKGROUND if _only_background(found) else STEPS_WITHOUT_URGENT


def _is_launched_late(work: Work, target_s: float) -> bool:
    """Whether any step with prefill would take longer than it may, for its launch alone."""
    has_graph = work.graph_tokens > work.decodes
    return has_graph and _launched_in_s(work, work.graph_launch_s) > target_s


def _hidden_tokens(work: Work, found: Sequence[Candidate]) -> int:
    """Tokens that are computed while the step is launched, and make it no longer."""
    left_s = _launched_in_s(work, work.graph_launch_s) - base_seconds(work)
    computed_tokens = found[0].computed_tokens if found else 0
    return int(chunk_tokens(work.step_time.mixed, computed_tokens, left_s))


def _prompt_seconds(work: Work, each: Candidate) -> float:
    """How long the rest of a prompt takes beside tokens that keep their pace."""
    cost = work.step_time.mixed
    return slowdown(work) * chunk_seconds(cost, each.computed_tokens, each.remaining_tokens)


def _launched_in_s(work: Work, launch_s: float) -> float:
    """How long after the engine is free the launch of the step is over."""
    return work.now_s + launch_s - work.free_s


def _floor_tokens(work: Work, found: Sequence[Candidate], most_tokens: int) -> int:
    computed_tokens = found[0].computed_tokens if found else 0
    balanced = chunk_tokens(work.step_time.mixed, computed_tokens, base_seconds(work))
    return min(most_tokens, max(LEAST_FLOOR_TOKENS, min(MOST_FLOOR_TOKENS, int(balanced))))


def _is_worth_it(work: Work, tokens: int, graph_tokens: int, target_s: float) -> bool:
    """Whether to take a step without a graph."""
    in_time = not _launch_is_too_long(work, target_s)
    return in_time and _eager_is_faster(work, tokens, graph_tokens)


def _eager_is_faster(work: Work, tokens: int, graph_tokens: int) -> bool:
    """Whether larger steps without a graph get on faster with prompts than those with one.

    A step takes as long as its launch at least, so that one a little larger may take twice as long.
    """
    base_s, token_s = base_seconds(work), work.step_time.mixed.prefill_token_s
    eager_s = max(work.eager_launch_s, base_s + token_s * tokens)
    graph_s = max(work.graph_launch_s, base_s + token_s * graph_tokens)
    return tokens * graph_s > graph_tokens * eager_s


def _launch_is_too_long(work: Work, target_s: float) -> bool:
    """Whether launching a step without a graph would take longer than the step may."""
    return _launched_in_s(work, work.eager_launch_s) > target_s or target_s < work.eager_launch_s


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
        decode_only_steps=before.decode_only_steps + 1 if order and not tokens else 0,
    )
    return PrefillBudget(tokens, chunks, admits, None, reasons, carried)
