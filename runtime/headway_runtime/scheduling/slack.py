"""How long the next step may take."""

from __future__ import annotations

from headway_runtime.scheduling.view import Work

LONGEST_STEP_S = 0.25
"""Longest step that is aimed at while any token is due, however much time there is: requests that
arrive meanwhile wait for its end."""


def step_time_target(work: Work) -> float | None:
    """Seconds from when the engine is free until the first token would be late.

    None where no decoding request has a TPOT target: nobody then minds long steps.
    """
    if not work.due:
        return None
    return min(LONGEST_STEP_S, min(each.due_s for each in work.due) - work.free_s)
