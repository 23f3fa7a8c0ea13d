"""Which waiting requests lose their TTFT, so that those that can keep it do not wait behind them.

Those that cannot keep it any more, and those of tenants that have had more than their share while
others wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import islice
from typing import NamedTuple

from headway_runtime.scheduling.tenants.fairness import over_share
from headway_runtime.scheduling.timing.prefill_cost import chunk_seconds, slowdown
from headway_runtime.scheduling.view import NO_TENANTS, Prefill, Tenants, WaitingRequest, Work

LOOKS = 64
"""Most waiting requests that are looked at in a step."""

MANY_WAIT = 16
LOOKS_IN_A_TTFT = 32
"""Where so many wait they are looked at so many times in the tightest TTFT, and not in every step:
a look takes longer than all else of a plan."""

LATE_A_STEP = 8
"""Most of them that one step gives up: each is put in order anew, which takes time."""


class _Job(NamedTuple):
    """A prompt that is to be computed by a time.

    Attributes:
        deadline_s: when its first token was promised.
        seconds: what it takes.
        waiting_id: id of the request if it waits; empty if it runs.
        level: how far its tenant is above its share.
    """

    deadline_s: float
    seconds: float
    waiting_id: str
    level: int


def next_look_s(work: Work, waiting: int, late: int, tenants: Tenants) -> float:
    """When they are looked at again, seconds since the epoch.

    Args:
        work: what runs, in a step in which they were looked at.
        waiting: requests that wait.
        late: those found; more may be where there are as many as one step gives up.
        tenants: where several wait, those who are over their share must not get ahead meanwhile.
    """
    if waiting < MANY_WAIT or late >= LATE_A_STEP or tenants.waiting:
        return 0.0
    return work.now_s + (work.tightest_ttft_s or 0.0) / LOOKS_IN_A_TTFT


def late_requests(
    work: Work, waiting: Sequence[WaitingRequest], tenants: Tenants = NO_TENANTS
) -> tuple[str, ...]:
    """Ids of waiting requests to give up the TTFT of.

    So many of them that the others keep theirs, and all of a tenant that is over its share.
    """
    greedy = over_share(tenants.waiting, tenants.window)
    if not greedy:
        return _too_much(work, waiting, tenants)
    front = list(islice(waiting, LOOKS))
    lost = [
        each.request_id for each in front if each.tenant in greedy and each.deadline_s is not None
    ]
    others = [each for each in front if each.tenant not in greedy]
    return (*lost, *_too_much(work, others, tenants))[:LATE_A_STEP]


def _too_much(work: Work, waiting: Sequence[WaitingRequest], tenants: Tenants) -> tuple[str, ...]:
    """Ids of waiting requests that are too much, so that as many as possible are in time.

    Moore and Hodgson's rule: go through the prompts by deadline; whenever one would be late, give
    up the one that takes longest of all so far. With everybody kept in line instead, more work than
    time makes everybody a little late. Those of tenants that have had more than a share of late go
    first, whatever they take.
    """
    front = _with_deadline(waiting)
    if not front:
        return ()
    running = [each for each in work.prefills if each.deadline_s is not None]
    deadlines_s = [each.deadline_s or 0.0 for each in front]
    deadlines_s += [each.deadline_s or 0.0 for each in running]
    took_s = _seconds(work, front, running)
    end_s = work.free_s + min([each.tpot_s for each in work.due], default=0.0)
    if end_s + sum(took_s) <= min(deadlines_s):
        # Nobody would be late in whatever order.
        return ()
    ids = [*[each.request_id for each in front], *[""] * len(running)]
    levels = [*[tenants.levels.get(each.tenant, 0) for each in front], *[0] * len(running)]
    jobs = [_Job(*each) for each in zip(deadlines_s, took_s, ids, levels, strict=True)]
    jobs.sort()
    taken: list[tuple[int, float, str]] = []
    late: list[str] = []
    for job in jobs:
        end_s += job.seconds
        if job.waiting_id:
            heappush(taken, (-job.level, -job.seconds, job.waiting_id))
        if end_s > job.deadline_s and taken:
            _, seconds, given_up = heappop(taken)
            end_s += seconds
            late.append(given_up)
    return tuple(late[:LATE_A_STEP])


def _with_deadline(waiting: Sequence[WaitingRequest]) -> list[WaitingRequest]:
    """Requests at the front with a TTFT to keep: none behind them has one, as they are in order."""
    found: list[WaitingRequest] = []
    for each in islice(waiting, LOOKS):
        if each.deadline_s is None:
            break
        found.append(each)
    return found


def _seconds(
    work: Work, front: Sequence[WaitingRequest], running: Sequence[Prefill]
) -> list[float]:
    """What each of their prompts takes."""
    cost, slower = work.cost, slowdown(work)
    seconds = [chunk_seconds(cost, 0, each.prefill_tokens) for each in front]
    seconds += [
        chunk_seconds(cost, each.computed_tokens, each.remaining_tokens) for each in running
    ]
    return [slower * each for each in seconds]
