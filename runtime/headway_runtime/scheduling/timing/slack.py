"""How long the next step may take."""

from __future__ import annotations

from headway_runtime.scheduling.timing.prefill_cost import chunk_seconds
from headway_runtime.scheduling.view import Work

STEPS_IN_A_TTFT = 4
"""No step is longer than this part of the tightest TTFT: a request that arrives waits for the two
steps that may be under way, and then for its own."""

UNHURRIED_STEP_S = 1.0
"""A step of an engine that has promised nothing may take so long."""


def step_time_target(work: Work) -> float | None:
    """Seconds from when the engine is free that the next step may take.

    Until the first token would be late, and no longer than arrivals can wait. Calls of programs
    wait for each other's ends: while one decodes, prefill takes as long as the rest of a step.
    None where nobody was promised anything: nobody then minds long steps.
    """
    limits = [each.due_s - work.free_s for each in work.due]
    if work.tightest_ttft_s is not None:
        limits.append(longest_step_s(work, work.tightest_ttft_s))
    if work.program_decodes:
        limits.append(_program_step_seconds(work))
    return min(limits, default=None)


def longest_step_s(work: Work, ttft_s: float) -> float:
    """How long a step may be for the sake of requests that arrive, with this TTFT to keep."""
    # With less prefill than takes as long as the rest of it, a step is hardly shorter.
    return max(2 * work.base_s, ttft_s / STEPS_IN_A_TTFT)


def promised_step_s(step_s: float, tpot_s: float | None, ttft_s: float | None) -> float:
    """Length of steps that promises leave an engine that is full, in seconds.

    Args:
        step_s: a step without any work.
        tpot_s: the least time between tokens that is aimed at; None without one.
        ttft_s: the least TTFT that is promised; None without one.
    """
    if ttft_s is None:
        return UNHURRIED_STEP_S if tpot_s is None else tpot_s
    arrivals_s = max(2 * step_s, ttft_s / STEPS_IN_A_TTFT)
    return arrivals_s if tpot_s is None else min(tpot_s, arrivals_s)


def _program_step_seconds(work: Work) -> float:
    """Length of a step beside decodes of programs.

    As long as the largest CUDA graph takes, or twice a step without prefill. With longer ones
    everybody is admitted at once, and all are slow together; with less prefill than that a step
    is hardly shorter.
    """
    base_s = work.base_s
    if not work.graph_tokens:
        return 2 * base_s
    room = max(0, work.graph_tokens - work.decodes)
    return base_s + chunk_seconds(work.cost, 0, room)
