"""How long a request that comes now would wait, for those who let requests in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from headway_runtime.policy import TrafficClass
from headway_runtime.scheduling.admission.refusal import Board, ClassWait
from headway_runtime.scheduling.tenants.fairness import over_share
from headway_runtime.scheduling.timing.prefill_cost import chunk_seconds, slowdown
from headway_runtime.scheduling.urgency import BACKGROUND
from headway_runtime.scheduling.view import Prefill, Tenants, Urgency, WaitingRequest, Work

LOOKS = 128
"""Most waiting requests that are looked at; those behind are taken to be like them."""


_LEAST_PER_S = 0.1


class Queued(NamedTuple):
    """What waits in an engine.

    Attributes:
        front: its waiting requests, most urgent first, read lazily.
        by_class: how many there are, by class, also of those that are not in order yet.
        drained_tokens_per_s: how fast prompts without a TTFT are computed beside all that goes
            before them; None where nobody knows.
        free_slots: how many more requests the batch has room for.
        ended_per_s: how many requests leave the batch in a second; None where nobody knows.
    """

    front: Sequence[WaitingRequest]
    by_class: Mapping[str, int]
    drained_tokens_per_s: float | None = None
    free_slots: int = 1
    ended_per_s: float | None = None


class _Job(NamedTuple):
    urgency: Urgency
    seconds: float
    tokens: int
    is_heavy: bool
    waits: bool


def board(work: Work, queued: Queued, classes: Iterable[TrafficClass], tenants: Tenants) -> Board:
    """What is to be known by those who let requests in.

    Args:
        work: what runs.
        queued: what waits.
        classes: those of the policy.
        tenants: who shares the engine.
    """
    heavy = over_share(tenants.waiting, tenants.window) | tenants.levels.keys()
    slower = slowdown(work)
    jobs = list(_jobs(work, queued.front, heavy, slower))
    seen = min(len(queued.front), LOOKS)
    like_those = max(seen, sum(queued.by_class.values())) / seen if seen else 1.0
    free_s = work.free_s - work.now_s + min([each.tpot_s for each in work.due], default=0.0)

    def slot_s(ahead: Sequence[_Job]) -> float:
        """Until there is a slot in the batch."""
        needed = 1 + like_those * sum([each.waits for each in ahead]) - queued.free_slots
        if needed <= 0 or queued.ended_per_s is None:
            return 0.0
        return needed / max(queued.ended_per_s, _LEAST_PER_S)

    def wait_s(ahead: Sequence[_Job], *, is_background: bool) -> float:
        rate = queued.drained_tokens_per_s
        if is_background and rate is not None:
            tokens = sum([each.tokens for each in ahead if each.urgency[0] == BACKGROUND])
            prompts_s = like_those * tokens / max(rate, _LEAST_PER_S)
        else:
            prompts_s = like_those * sum([each.seconds for each in ahead])
        return free_s + max(prompts_s, slot_s(ahead))

    def waits(promised: TrafficClass) -> ClassWait:
        newcomer = WaitingRequest("", work.now_s, promised).urgency
        is_background = newcomer[0] == BACKGROUND
        ahead = [each for each in jobs if each.urgency <= newcomer]
        light = [each for each in ahead if not each.is_heavy]
        return ClassWait(
            waiting=queued.by_class.get(promised.name, 0),
            wait_s=wait_s(ahead, is_background=is_background),
            light_wait_s=wait_s(light, is_background=is_background),
        )

    return Board(
        written_s=work.now_s,
        prompt_token_s=slower * work.cost.prefill_token_s,
        classes={each.name: waits(each) for each in classes},
        heavy=frozenset(heavy),
        free_slots=max(0, queued.free_slots),
        prompt_token_work_s=work.cost.prefill_token_s,
        answer_work_s=work.answer_s,
    )


def _jobs(
    work: Work, front: Iterable[WaitingRequest], heavy: frozenset[str], slower: float
) -> Iterable[_Job]:
    cost = work.cost
    for running in work.prefills:
        took_s = slower * chunk_seconds(cost, running.computed_tokens, running.remaining_tokens)
        yield _Job(
            _running_urgency(running),
            took_s,
            running.remaining_tokens,
            is_heavy=False,
            waits=False,
        )
    for waiting in islice(front, LOOKS):
        took_s = slower * chunk_seconds(cost, 0, waiting.prefill_tokens)
        yield _Job(
            waiting.urgency,
            took_s,
            waiting.prefill_tokens,
            is_heavy=waiting.tenant in heavy,
            waits=True,
        )


def _running_urgency(running: Prefill) -> Urgency:
    """Prompts without a TTFT that run are held back for those that have one."""
    urgency = running.urgency
    return urgency if urgency[0] < BACKGROUND else (BACKGROUND, 0.0)
