"""What background work leaves free."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headway_runtime.policy import TrafficClass
from headway_runtime.scheduling.candidates import candidates
from headway_runtime.scheduling.lateness import NOBODY_LATE
from headway_runtime.scheduling.plan import StepPlan
from headway_runtime.scheduling.planner import plan_step
from headway_runtime.scheduling.reason import Reason
from headway_runtime.scheduling.reserve import may_start, most_running
from headway_runtime.scheduling.timing.pace import has_pace
from headway_runtime.scheduling.timing.step_time_model import StepTimeModel
from headway_runtime.scheduling.view import (
    Candidate,
    Limits,
    StepView,
    TokenDue,
    WaitingRequest,
    Work,
)

CHAT = TrafficClass("chat", ttft_ms=1000)
WORK = Work(100.0, 100.0, StepTimeModel(), tightest_ttft_s=1.0, kv_usage=0.5)


def waiting(chats: int, batches: int) -> list[Candidate]:
    requests = [
        WaitingRequest(f"r{n}", 100.0, CHAT if n < chats else None, prefill_tokens=10)
        for n in range(chats + batches)
    ]
    return candidates(WORK, requests, NOBODY_LATE, 64, 8192)


@pytest.mark.parametrize(
    ("running", "chats", "batches", "most"),
    [
        (100, 0, 50, 240),  # a sixteenth is kept free of background work
        (239, 0, 50, 240),
        (250, 0, 50, 250),  # what runs runs on
        (250, 3, 50, 253),  # and who has a TTFT may use what is kept
        (250, 20, 0, 256),
        (256, 3, 50, 256),
    ],
)
def test_slots_are_kept_for_requests_with_a_ttft(
    running: int, chats: int, batches: int, most: int
) -> None:
    assert most_running(WORK, waiting(chats, batches), running, 256) == most


def test_with_few_kv_blocks_left_no_background_work_is_admitted() -> None:
    full = replace(WORK, kv_usage=0.95)
    assert most_running(full, waiting(0, 50), 30, 256) == 30
    assert most_running(full, waiting(2, 50), 30, 256) == 32


def test_an_empty_engine_admits_whatever_its_blocks_say() -> None:
    assert most_running(replace(WORK, kv_usage=1.0), waiting(0, 5), 0, 256) == 256


def test_without_any_ttft_nothing_is_kept() -> None:
    alone = replace(WORK, tightest_ttft_s=None, kv_usage=0.99)
    assert most_running(alone, waiting(0, 50), 255, 256) == 256


def test_where_kv_is_short_no_tokens_are_kept_for_who_may_not_start() -> None:
    full = replace(WORK, kv_usage=0.95)
    found = waiting(2, 3)
    assert may_start(full, found, 30) == found[:2]
    # Nobody else would run, nobody else was promised anything, or there are blocks.
    assert may_start(full, found, 0) == found
    assert may_start(replace(full, tightest_ttft_s=None), found, 30) == found
    assert may_start(WORK, found, 30) == found


def test_background_work_loses_its_blocks_first_where_kv_is_short() -> None:
    paced = TrafficClass("paced", tpot_ms=50)
    assert has_pace(CHAT)
    assert has_pace(paced)
    assert not has_pace(TrafficClass("batch", deadline_s=60))
    assert not has_pace(None)

    def plan(work: Work) -> StepPlan:
        limits = Limits(8192, 256)
        return plan_step(StepView(limits, limits, 30, work=work), lambda: False)

    full = replace(WORK, kv_usage=0.95)
    assert plan(full).background_last
    assert Reason.BACKGROUND_LAST in plan(full).reasons
    assert not plan(WORK).background_last
    assert not plan(replace(full, tightest_ttft_s=None)).background_last
    due = (TokenDue(100.1, 0.05),)
    assert plan(replace(full, tightest_ttft_s=None, due=due)).background_last
