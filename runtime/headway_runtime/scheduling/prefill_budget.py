"""How many prompt tokens a step computes, and whose.

What the time until the next token allows -> a step that is worth it -> chunks in order, background
work first where it has waited for its share.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import NamedTuple

from headway_runtime.scheduling.decode_only import gathers, is_launched_late, may_wait
from headway_runtime.scheduling.reason import Reason
from headway_runtime.scheduling.step_size import MOST_FLOOR_TOKENS, eager_is_faster, shaped
from headway_runtime.scheduling.timing.prefill_cost import chunk_seconds, chunk_tokens
from headway_runtime.scheduling.timing.slack import step_time_target
from headway_runtime.scheduling.view import Candidate, Carried, Work

BACKGROUND_SHARE = 0.05
"""Share of prompt tokens that background work gets while prompts with a TTFT take all there are."""


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
    if target_s is not None and is_launched_late(work, target_s) and may_wait(work, found):
        credit = work.carried.background_credit_tokens
        return _dealt_in_order(work, found, 0, (Reason.DECODE_ONLY,) if found else (), credit)
    left_s = inf if target_s is None else target_s - work.base_s
    tokens = _fitting(work, found, left_s, most_tokens, more_wait=more_wait)
    if tokens is None and target_s is not None and found and gathers(work, found):
        credit = work.carried.background_credit_tokens
        return _dealt_in_order(work, found, 0, (Reason.GATHERS_PROMPTS,), credit)
    if tokens is None:
        return _with_all(work, found, most_tokens, left_s)
    if target_s is None or tokens >= most_tokens:
        return _with_share(work, found, most_tokens, left_s, ())
    tokens, more = shaped(work, found, tokens, most_tokens, target_s)
    return _with_share(work, found, tokens, left_s, (Reason.TOKENS_DUE, *more))


def _with_all(
    work: Work, found: Sequence[Candidate], most_tokens: int, left_s: float
) -> PrefillBudget:
    """All there is fits: the engine may as well have all that the time allows.

    Unless a step without a graph takes so long to launch that two with one get as much done sooner.
    """
    credit = work.carried.background_credit_tokens
    graph_room = work.graph_tokens - work.decodes
    tokens = sum([each.remaining_tokens for each in found])
    if left_s == inf:
        return _dealt_in_order(work, found, most_tokens, (), credit)
    if 0 < graph_room < tokens and not eager_is_faster(work, tokens, graph_room):
        return _dealt_in_order(work, found, graph_room, (Reason.GRAPH_SIZE,), credit)
    allowed = int(min(most_tokens, chunk_tokens(work.cost, 0, left_s)))
    return _dealt_in_order(work, found, max(tokens, allowed), (), credit)


def _fitting(
    work: Work, found: Iterable[Candidate], left_s: float, most_tokens: int, *, more_wait: bool
) -> int | None:
    """Tokens that the time allows; None if all there are fit."""
    cost, tokens = work.cost, 0
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
    return budget if head.is_running else budget._replace(first=head.request_id)


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
        chunk = min(left, each.remaining_tokens)
        left -= chunk
        if each.is_background:
            background = (background or 0) + chunk
        if each.is_running:
            chunks[each.request_id] = chunk
            overtakes |= one_waits
        else:
            one_waits = True
            admits |= chunk > 0
    if overtakes:
        reasons = (*reasons, Reason.URGENT_PREFILL_FIRST)
    carried = Carried(
        background_credit_tokens=credit_tokens,
        steps_without_background=before.steps_without_background + 1 if background == 0 else 0,
        running_first_steps=max(0, before.running_first_steps - 1),
        decode_only_steps=before.decode_only_steps + 1 if order and not tokens else 0,
        next_look_s=before.next_look_s,
    )
    return PrefillBudget(tokens, chunks, admits, None, reasons, carried)
