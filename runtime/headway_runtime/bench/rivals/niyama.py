"""Dynamic chunks, hybrid priorities and eager relegation, after Niyama, later named QoServe.

K. Goel et al., "Niyama: Breaking the Silos of LLM Inference Serving" (arXiv 2503.22562), and the
authors' ``deadline_scheduler.py`` and ``sequence.py`` in github.com/microsoft/sarathi-serve. As
there:

- *Dynamic chunking.* A step holds all decodes and as many prompt tokens as the least slack of any
  decode allows; at least 128 tokens in all, at most 2,552.
- *Hybrid prioritisation.* Prompts, running or waiting, go in order of ``arrival + TTFT + alpha *
  remaining prompt tokens``; alpha 0 is earliest deadline first, a large one shortest remaining
  prefill first. A request without a TTFT has its deadline for the last token in that place.
- *Eager relegation.* A waiting request that comes to the front and can make its deadline no more by
  its own prefill alone goes behind all that can. One that runs is never relegated.
- A prompt that runs may be held back for a more urgent one; decodes never are.

Differences:

- The paper's j-th token is due at ``arrival + TTFT + (j - 1) * TBT``, in the code counted from the
  first token if that came later. What is in hand (``Work.due``) counts from the first token
  alone, which is what a mean TPOT is measured from: a request whose first token came early may not
  spend the rest of its TTFT on slower tokens. Its clocks also aim 2 % below the target, let
  relegated requests take twice their TPOT, and give a token up that is late by half a second.
- Lengths of steps come from Headway's learnt model, not one fitted offline. They are not raised by
  a fifth to be safe (``pred_thres``), which costs throughput: that model follows the engine and the
  clocks have their margin. Slack counts from when the engine will be free, since the authors'
  engine does not schedule ahead. Each prompt is counted with its own context, and the number of
  tokens is exact, not one of a grid.
- The prefill throughput that decides about relegation is what the model says of steps as long as
  the tightest TPOT, not an average of what was seen.
- Lengths of outputs are not predicted: a deadline for the last token counts as one for the first,
  as with ``output_len_pred`` 0. Hints about which requests are worth less are not there.
- The engine admits and preempts by free KV blocks; chunks are not made smaller when those run low.
- Prompts that run go first for a few steps after the engine could not admit anybody (see
  :attr:`Carried.running_first_steps`), or two of them could wait for each other's blocks.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from itertools import islice
from math import inf

from headway_runtime.bench.rivals.dealing import (
    LEAST_STEP_TOKENS,
    LOOKS,
    Room,
    at_least,
    dealt,
    fitting_tokens,
    ordered,
    queue_of,
    room_of,
    running_prompts,
    stop_if_late,
    waiting_prompts,
)
from headway_runtime.scheduling.lazy import Remembered
from headway_runtime.scheduling.plan import Placement, StepPlan
from headway_runtime.scheduling.planner import Planner
from headway_runtime.scheduling.timing.prefill_cost import chunk_tokens
from headway_runtime.scheduling.urgency import NO_DEADLINE_S
from headway_runtime.scheduling.view import Prefill, StepView, WaitingRequest, Work

MOST_STEP_TOKENS = 2552
"""Larger steps bring no more throughput, in the authors' search space."""

RELEGATED_A_STEP = 8
"""Most requests relegated in one step: each is put in order anew, which takes time."""

_Key = tuple[bool, float]


def niyama(alpha_s: float) -> Planner:
    """A planner whose order weighs each remaining prompt token like ``alpha_s`` seconds."""

    def key(request: WaitingRequest | Prefill) -> _Key:
        tokens = (
            request.prefill_tokens
            if isinstance(request, WaitingRequest)
            else request.remaining_tokens
        )
        return (request.is_late, _deadline_s(request) + alpha_s * tokens)

    def plan(view: StepView, is_overdue: Callable[[], bool]) -> StepPlan:
        room = room_of(view)
        work = view.work
        if work is None:
            return ordered(view, room, ())
        placements = _places(view, key)
        stop_if_late(is_overdue)
        queue = queue_of(view, placements)
        late = _relegated(work, queue, room)
        running_first = work.carried.running_first_steps > 0
        prompts = sorted(
            [*running_prompts(work), *waiting_prompts(queue, room, late)],
            key=lambda each: (running_first and not each.is_running, key(each.request)),
        )
        most = min(room.prefill_tokens, max(0, MOST_STEP_TOKENS - room.decode_tokens))
        tokens = at_least(fitting_tokens(work, prompts, _slack_s(work), most), room)
        stop_if_late(is_overdue)
        return dealt(view, room, placements, prompts, tokens, late=late)

    return plan


def _deadline_s(request: WaitingRequest | Prefill) -> float:
    promised = request.traffic_class
    if promised is not None and promised.ttft_ms is not None:
        return request.arrival_s + promised.ttft_ms / 1000
    if promised is not None and promised.deadline_s is not None:
        return request.arrival_s + promised.deadline_s
    return request.arrival_s + NO_DEADLINE_S


def _slack_s(work: Work) -> float:
    return min((each.due_s for each in work.due), default=inf) - work.free_s


def _places(view: StepView, key: Callable[[WaitingRequest], _Key]) -> tuple[Placement, ...]:
    """Positions of the newcomers among what waits, in order of the key."""
    if not view.unsettled:
        return ()
    front = Remembered(view.front)
    return tuple(
        Placement(each.request_id, bisect_right(front, key(each), key=key) + before)
        for before, each in enumerate(sorted(view.unsettled, key=key))
    )


def _relegated(work: Work, queue: Iterable[WaitingRequest], room: Room) -> tuple[str, ...]:
    """Ids of requests that come to the front and can make their deadline no more."""
    token_s, tokens = _seconds_per_token(work), 0
    late: list[str] = []
    for each in islice(queue, LOOKS):
        # Behind the first that was relegated there are no others.
        if each.is_late or tokens >= room.prefill_tokens or len(late) >= RELEGATED_A_STEP:
            break
        if work.free_s + each.prefill_tokens * token_s > _deadline_s(each):
            late.append(each.request_id)
        else:
            tokens += each.prefill_tokens
    return tuple(late)


def _seconds_per_token(work: Work) -> float:
    """How fast prefill goes on beside tokens that keep their pace."""
    cost = work.cost
    if not work.due:
        return cost.prefill_token_s
    step_s = min(each.tpot_s for each in work.due)
    fitting = chunk_tokens(cost, 0, step_s - work.base_s)
    return max(cost.prefill_token_s, step_s / max(LEAST_STEP_TOKENS, fitting))
