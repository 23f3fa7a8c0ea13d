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
    level: int = 0


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
        each.request_id for each in front if each.tenant in greedy and _deadline_s(each) is not None
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
    jobs = _jobs(work, waiting, tenants)
    if not jobs:
        return ()
    end_s = work.free_s + min([each.tpot_s for each in work.due], default=0.0)
    if end_s + sum([job.seconds for job in jobs]) <= min([job.deadline_s for job in jobs]):
        # Nobody would be late in whatever order.
        return ()
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


def _jobs(work: Work, waiting: Sequence[WaitingRequest], tenants: Tenants) -> list[_Job]:
    """Prompts with a TTFT to keep; none if none of them waits, since only those are given up."""
    if not waiting or _deadline_s(waiting[0]) is None:
        return []
    cost, slower = work.cost, slowdown(work)
    jobs = []
    for request in islice(waiting, LOOKS):
        deadline_s = _deadline_s(request)
        if deadline_s is None:
            # The queue is in order: nobody behind it has a TTFT to keep.
            break
        took_s = slower * chunk_seconds(cost, 0, request.prefill_tokens)
        level = tenants.levels.get(request.tenant, 0)
        jobs.append(_Job(deadline_s, took_s, request.request_id, level))
    for running in work.prefills:
        deadline_s = _deadline_s(running)
        if deadline_s is not None:
            took_s = chunk_seconds(cost, running.computed_tokens, running.remaining_tokens)
            jobs.append(_Job(deadline_s, slower * took_s, ""))
    return jobs


def _deadline_s(request: Prefill | WaitingRequest) -> float | None:
    """When its first token was promised; None if it has no TTFT to keep."""
    promised = request.traffic_class
    if promised is None or promised.ttft_ms is None or request.is_late:
        return None
    return request.arrival_s + promised.ttft_ms / 1000
