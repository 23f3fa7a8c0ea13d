"""Which waiting requests cannot keep their TTFT, so that those that can do not wait behind them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from itertools import islice, takewhile
from typing import NamedTuple

from headway_runtime.policy import TrafficClass
from headway_runtime.scheduling.prefill_cost import base_seconds, chunk_seconds, chunk_tokens
from headway_runtime.scheduling.view import Prefill, WaitingRequest, Work

LOOKS = 64
"""Most waiting requests that are looked at in a step."""

LATE_A_STEP = 8
"""Most of them that one step gives up: each is put in order anew, which takes time."""

_LEAST_TOKENS_A_STEP = 64


class _Job(NamedTuple):
    """A prompt that is to be computed by a time.

    Attributes:
        deadline_s: when its first token was promised.
        seconds: what it takes.
        waiting_id: id of the request if it waits; None if it runs.
    """

    deadline_s: float
    seconds: float
    waiting_id: str | None


def late_requests(work: Work, waiting: Sequence[WaitingRequest]) -> tuple[str, ...]:
    """Ids of waiting requests to give up the TTFT of, so that as many as possible are kept.

    Moore and Hodgson's rule: go through the prompts by deadline; whenever one would be late, give
    up the one that takes longest of all so far. With everybody kept in line instead, more work than
    time makes everybody a little late.
    """
    jobs = sorted(_jobs(work, waiting))
    end_s = work.free_s + min((each.tpot_s for each in work.due), default=0.0)
    taken: list[tuple[float, str]] = []
    late: list[str] = []
    for job in jobs:
        end_s += job.seconds
        if job.waiting_id is not None:
            heappush(taken, (-job.seconds, job.waiting_id))
        if end_s > job.deadline_s and taken:
            seconds, given_up = heappop(taken)
            end_s += seconds
            late.append(given_up)
    return tuple(late[:LATE_A_STEP])


def _jobs(work: Work, waiting: Sequence[WaitingRequest]) -> Iterator[_Job]:
    cost, slowdown = work.step_time.mixed, _slowdown(work)

    def seconds(computed_tokens: int, tokens: int) -> float:
        return slowdown * chunk_seconds(cost, computed_tokens, tokens)

    for running in filter(_may_keep_ttft, work.prefills):
        took_s = seconds(running.computed_tokens, running.remaining_tokens)
        yield _Job(_deadline_s(running), took_s, None)
    # The queue is in order: behind the first that has none, nobody has a TTFT to keep.
    for request in takewhile(_may_keep_ttft, islice(waiting, LOOKS)):
        yield _Job(_deadline_s(request), seconds(0, request.prefill_tokens), request.request_id)


def _slowdown(work: Work) -> float:
    """How much slower prefill goes on than it could alone, beside tokens that keep their pace."""
    if not work.due:
        return 1.0
    cost = work.step_time.mixed
    step_s = min(each.tpot_s for each in work.due)
    tokens = max(_LEAST_TOKENS_A_STEP, chunk_tokens(cost, 0, step_s - base_seconds(work)))
    return max(1.0, step_s / tokens / cost.prefill_token_s)


def _may_keep_ttft(request: Prefill | WaitingRequest) -> bool:
    return not request.is_late and _ttft_ms(request.traffic_class) is not None


def _ttft_ms(traffic_class: TrafficClass | None) -> int | None:
    return None if traffic_class is None else traffic_class.ttft_ms


def _deadline_s(request: Prefill | WaitingRequest) -> float:
    return request.arrival_s + (_ttft_ms(request.traffic_class) or 0) / 1000
