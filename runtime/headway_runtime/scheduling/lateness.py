"""Which requests lose their TTFT, so that those that can keep it do not wait behind them.

Those that cannot keep it any more, and those of tenants that have had more than their share while
others wait. Also one whose prompt is being computed: a prompt of 30,000 tokens that will be half a
second late is no reason to make forty short ones late.
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
        seconds: what is left of it takes so long.
        request_id: whose it is; empty if it is not to be given up.
        runs: it is being computed.
        level: how far its tenant is above its share.
    """

    deadline_s: float
    seconds: float
    request_id: str
    runs: bool = False
    level: int = 0


class Late(NamedTuple):
    """Requests whose TTFT is given up.

    Attributes:
        waiting: ids of those that wait.
        running: ids of those whose prompts are being computed.
    """

    waiting: tuple[str, ...] = ()
    running: tuple[str, ...] = ()


NOBODY_LATE = Late()


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
) -> Late:
    """Requests to give up the TTFT of.

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
    too_much = _too_much(work, others, tenants)
    return too_much._replace(waiting=(*lost, *too_much.waiting)[:LATE_A_STEP])


def _too_much(work: Work, waiting: Sequence[WaitingRequest], tenants: Tenants) -> Late:
    """Requests that are too much, so that as many as possible are in time.

    Moore and Hodgson's rule: go through the prompts by deadline; whenever one would be late, give
    up the one that takes longest of all so far. With everybody kept in line instead, more work than
    time makes everybody a little late. Those of tenants that have had more than a share of late go
    first, whatever they take.
    """
    jobs = _jobs(work, waiting, tenants)
    end_s = work.free_s + min([each.tpot_s for each in work.due], default=0.0)
    deadlines_s = [job.deadline_s for job in jobs if job.request_id]
    if not deadlines_s or end_s + sum([job.seconds for job in jobs]) <= min(deadlines_s):
        # Nobody would be late in whatever order.
        return NOBODY_LATE
    jobs.sort()
    taken: list[tuple[int, float, str, bool]] = []
    late: list[tuple[str, bool]] = []
    for job in jobs:
        end_s += job.seconds
        if not job.request_id:
            continue
        heappush(taken, (-job.level, -job.seconds, job.request_id, job.runs))
        if end_s > job.deadline_s:
            _, seconds, given_up, runs = heappop(taken)
            end_s += seconds
            late.append((given_up, runs))
    del late[LATE_A_STEP:]
    return Late(
        tuple([name for name, runs in late if not runs]),
        tuple([name for name, runs in late if runs]),
    )


def _jobs(work: Work, waiting: Sequence[WaitingRequest], tenants: Tenants) -> list[_Job]:
    """Prompts with a TTFT to keep; none if one runs alone, since there is nobody to give way to."""
    somebody_waits = bool(waiting) and _deadline_s(waiting[0]) is not None
    if not somebody_waits and len(work.prefills) < 2:  # noqa: PLR2004 - one runs alone
        return []
    cost, slower = work.step_time.mixed, slowdown(work)
    jobs = []
    for request in islice(waiting, LOOKS):
        deadline_s = _deadline_s(request)
        if deadline_s is None:
            # The queue is in order: nobody behind it has a TTFT to keep.
            break
        took_s = slower * chunk_seconds(cost, 0, request.prefill_tokens)
        level = tenants.levels.get(request.tenant, 0)
        jobs.append(_Job(deadline_s, took_s, request.request_id, level=level))
    for running in work.prefills:
        deadline_s = _deadline_s(running)
        if deadline_s is None:
            continue
        took_s = slower * chunk_seconds(cost, running.computed_tokens, running.remaining_tokens)
        # What is computed once more after the first token came has no TTFT to lose any more.
        name = "" if running.has_answered else running.request_id
        level = tenants.levels.get(running.tenant, 0)
        jobs.append(_Job(deadline_s, took_s, name, runs=True, level=level))
    return jobs


def _deadline_s(request: Prefill | WaitingRequest) -> float | None:
    """When its first token was promised; None if it has no TTFT to keep."""
    promised = request.traffic_class
    if promised is None or promised.ttft_ms is None or request.is_late:
        return None
    return request.arrival_s + promised.ttft_ms / 1000
