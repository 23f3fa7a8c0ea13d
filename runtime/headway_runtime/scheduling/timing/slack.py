"""How long the next step may take."""

from __future__ import annotations

from headway_runtime.scheduling.timing.prefill_cost import base_seconds, chunk_seconds
from headway_runtime.scheduling.view import Work

STEPS_IN_A_TTFT = 4
"""No step is longer than this part of the tightest TTFT: a request that arrives waits for the two
steps that may be under way, and then for its own."""


def step_time_target(work: Work) -> float | None:
    """Seconds from when the engine is free that the next step may take.

    Until the first token would be late, and no longer than arrivals can wait. Calls of programs
    wait for each other's ends: while one decodes, prefill takes as long as the rest of a step.
    None where nobody was promised anything: nobody then minds long steps.
    """
    limits = [each.due_s - work.free_s for each in work.due]
    if work.tightest_ttft_s is not None:
        # With less prefill than takes as long as the rest of it, a step is hardly shorter.
        least_s = 2 * base_seconds(work)
        limits.append(max(least_s, work.tightest_ttft_s / STEPS_IN_A_TTFT))
    if work.program_decodes:
        limits.append(_program_step_seconds(work))
    return min(limits, default=None)


def _program_step_seconds(work: Work) -> float:
    """Length of a step beside decodes of programs.

    As long as the largest CUDA graph takes, or twice a step without prefill. With longer ones
    everybody is admitted at once, and all are slow together; with less prefill than that a step
    is hardly shorter.
    """
    base_s = base_seconds(work)
    if not work.graph_tokens:
        return 2 * base_s
    room = max(0, work.graph_tokens - work.decodes)
    return base_s + chunk_seconds(work.step_time.mixed, 0, room)
