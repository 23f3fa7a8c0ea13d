"""How long the next step may take."""

from __future__ import annotations

from headway_runtime.scheduling.view import Work

LONGEST_STEP_S = 0.25
"""Longest step that is aimed at while any token is due, however much time there is: requests that
arrive meanwhile wait for its end."""

LEAD = 0.1
"""Tokens are aimed at this share of their target before they are due. That costs nothing, as it is
gained once and kept; without it requests of few tokens would be late by the error of a single
step."""


def step_time_target(work: Work) -> float | None:
    """Seconds from when the engine is free until the first token would be late.

    None where no decoding request has a TPOT target: nobody then minds long steps.
    """
    if not work.due:
        return None
    first_s = min(each.due_s - LEAD * each.tpot_s for each in work.due)
    return min(LONGEST_STEP_S, first_s - work.free_s)
