"""How long the next step may take."""

from __future__ import annotations

from headway_runtime.scheduling.prefill_cost import base_seconds
from headway_runtime.scheduling.view import Work

STEPS_IN_A_TTFT = 4
"""No step is longer than this part of the tightest TTFT: a request that arrives waits for the two
steps that may be under way, and then for its own."""


def step_time_target(work: Work) -> float | None:
    """Seconds from when the engine is free that the next step may take.

    Until the first token would be late, and no longer than arrivals can wait. None where nobody was
    promised anything: nobody then minds long steps.
    """
    limits = [each.due_s - work.free_s for each in work.due]
    if work.tightest_ttft_s is not None:
        # With less prefill than takes as long as the rest of it, a step is hardly shorter.
        least_s = 2 * base_seconds(work)
        limits.append(max(least_s, work.tightest_ttft_s / STEPS_IN_A_TTFT))
    return min(limits, default=None)
