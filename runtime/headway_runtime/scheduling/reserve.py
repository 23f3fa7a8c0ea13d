"""What background work leaves free, so that a request with a TTFT can start when it comes.

Running requests are never thrown out: a slot or a KV block that background work has taken comes
back when that work is done, which may be minutes later. Where its own growth uses up the last
blocks, it is the first to lose some.
"""

from __future__ import annotations

from collections.abc import Sequence

from headway_runtime.scheduling.view import Candidate, Work

RESERVED_SLOTS = 16
"""One slot of so many is not for background work."""

KV_FOR_BACKGROUND = 0.9
"""Share of KV blocks in use from which on no background work is admitted, and what runs of it is
the first to be preempted."""


def kv_is_short(work: Work) -> bool:
    """Whether KV blocks are kept from background work, for others who were promised something."""
    is_promised = work.tightest_ttft_s is not None or bool(work.due)
    return is_promised and work.kv_usage >= KV_FOR_BACKGROUND


def may_start(work: Work, found: list[Candidate], running: int) -> list[Candidate]:
    """Candidates without background work that would have to be admitted, where KV is short.

    Tokens for it would be for nobody, while a running prompt is held back for it.
    """
    if not running or work.tightest_ttft_s is None or not kv_is_short(work):
        return found
    return [each for each in found if each.is_running or not each.is_background]


def most_running(work: Work, found: Sequence[Candidate], running: int, batch_size: int) -> int:
    """Most requests that may run in a step.

    Args:
        work: what runs.
        found: requests with prompt tokens to compute, most urgent first.
        running: requests that run.
        batch_size: most that may ever run.
    """
    if work.tightest_ttft_s is None or not running:
        return batch_size
    urgent = sum([not each.is_background and not each.is_running for each in found])
    for_background = running
    if not kv_is_short(work):
        for_background = batch_size - batch_size // RESERVED_SLOTS
    return max(1, min(batch_size, max(running + urgent, for_background)))
