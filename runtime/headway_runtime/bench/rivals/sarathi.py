"""Chunked prefill with a constant time between tokens, after Sarathi-Serve.

A. Agrawal et al., "Taming Throughput-Latency Tradeoff in LLM Inference with Sarathi-Serve", OSDI
2024 (arXiv 2403.02310); ``sarathi_scheduler.py`` in github.com/microsoft/sarathi-serve. Stall-free
batching: a step holds all decodes, then what is left of running prompts, then prompts that wait, in
order of arrival, until its token budget is used up. No request is put in front of another, none is
given up, nothing is kept free.

Differences, all in its favour or for want of a counterpart:

- Its token budget is a number found by profiling, the largest for which steps stay within the time
  between tokens. Here the budget of each step is what Headway's learnt model predicts to fit, so
  that it follows the batch and the contexts.
- ``by_priority`` gives it the order of :func:`scheduling.order.place` for requests that wait: those
  with a TTFT first. Running prompts still go before them, as under vLLM's priority policy.
- The engine preempts when KV blocks run out, as vLLM does.
"""

from __future__ import annotations

from collections.abc import Callable

from headway_runtime.bench.rivals.dealing import (
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
from headway_runtime.scheduling.order import place
from headway_runtime.scheduling.plan import StepPlan
from headway_runtime.scheduling.planner import Planner
from headway_runtime.scheduling.view import StepView


def sarathi(tbt_s: float, *, by_priority: bool) -> Planner:
    """A planner whose steps are predicted to take no longer than ``tbt_s`` seconds.

    Args:
        tbt_s: target of the time between tokens.
        by_priority: whether waiting requests with a TTFT go before those without.
    """

    def plan(view: StepView, is_overdue: Callable[[], bool]) -> StepPlan:
        room = room_of(view)
        placements = place(view.settled, view.unsettled) if by_priority else ()
        work = view.work
        if work is None:
            return ordered(view, room, placements)
        queue = queue_of(view, placements)
        prompts = running_prompts(work) + waiting_prompts(queue, room)
        tokens = at_least(fitting_tokens(work, prompts, tbt_s, room.prefill_tokens), room)
        stop_if_late(is_overdue)
        return dealt(view, room, placements, prompts, tokens)

    return plan
