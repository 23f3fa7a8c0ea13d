"""Whose TTFT is given up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.policy import TrafficClass
from headway_runtime.scheduling.lateness import (
    LATE_A_STEP,
    LOOKS,
    MANY_WAIT,
    NOBODY_LATE,
    Late,
    late_requests,
    next_look_s,
)
from headway_runtime.scheduling.planner import plan_step
from headway_runtime.scheduling.timing.prefill_cost import chunk_seconds
from headway_runtime.scheduling.timing.step_time_model import StepTimeModel
from headway_runtime.scheduling.view import (
    Carried,
    Prefill,
    Tenants,
    TenantView,
    TokenDue,
    WaitingRequest,
    Work,
)
from tests.unit.planned import chat as planned_chat
from tests.unit.planned import due, view, work

CHAT = TrafficClass("chat", ttft_ms=1000, tpot_ms=30)
BATCH = TrafficClass("batch", deadline_s=60)
NOW = 100.0
MODEL = StepTimeModel()
IDLE = Work(now_s=NOW, free_s=NOW, step_time=MODEL)
BUSY = replace(IDLE, decodes=64, due=(TokenDue(NOW + 0.03, 0.03),))


def chat(name: str, tokens: int, arrival_s: float = NOW, **more: Any) -> WaitingRequest:
    return WaitingRequest(name, arrival_s, CHAT, prefill_tokens=tokens, **more)


def late_waiting(*arguments: Any) -> tuple[str, ...]:
    found = late_requests(*arguments)
    assert found.running == ()
    return found.waiting


def seconds(tokens: int) -> float:
    return chunk_seconds(MODEL.mixed, 0, tokens)


def test_one_that_is_too_late_whatever_goes_first_is_given_up() -> None:
    assert late_waiting(IDLE, [chat("gone", 400, NOW - 2), chat("fine", 400)]) == ("gone",)


def test_the_longest_is_given_up_so_that_more_are_kept() -> None:
    # Each alone could be kept; the long one first would make all others late.
    arrived = NOW - 0.5
    waiting = [chat("long", 18_000, arrived), *(chat(f"s{n}", 4000, arrived) for n in range(5))]
    late = late_waiting(IDLE, waiting)
    assert "long" in late
    kept = [each for each in waiting if each.request_id not in late]
    assert sum(seconds(each.prefill_tokens) for each in kept) <= 0.5
    assert len(kept) == 5


def test_tokens_that_are_due_make_prompts_slower() -> None:
    waiting = [chat("a", 15_000, NOW - 0.45)]
    assert late_waiting(IDLE, waiting) == ()
    assert late_waiting(BUSY, waiting) == ("a",)


def test_running_prompts_take_their_time() -> None:
    running = Prefill("r", 0, 15_000, NOW - 0.2, CHAT)
    waiting = [chat("a", 15_000, NOW - 0.4)]
    assert late_waiting(IDLE, waiting) == ()
    assert len(late_waiting(replace(IDLE, prefills=(running,)), waiting)) == 1
    background = replace(running, traffic_class=BATCH)
    assert late_waiting(replace(IDLE, prefills=(background,)), waiting) == ()


def test_a_long_prompt_that_runs_is_given_up_rather_than_many_short_ones() -> None:
    running = Prefill("long", 2_000, 25_000, NOW - 9.5, TrafficClass("long", ttft_ms=10_000))
    waiting = [chat(f"s{n}", 400, NOW - 0.5) for n in range(20)]
    assert late_requests(replace(IDLE, prefills=(running,)), waiting) == Late((), ("long",))


def test_what_is_left_of_a_prompt_counts_and_not_what_it_was() -> None:
    nearly_done = Prefill("long", 29_000, 1_000, NOW - 0.9, CHAT)
    waiting = [chat("a", 12_000, NOW - 0.7)]
    assert late_waiting(replace(IDLE, prefills=(nearly_done,)), waiting) == ("a",)


def test_of_two_that_run_the_longer_one_gives_way_though_nobody_waits() -> None:
    running = (Prefill("r", 0, 18_000, NOW - 0.5, CHAT), Prefill("s", 0, 9_000, NOW - 0.4, CHAT))
    assert late_requests(replace(IDLE, prefills=running), []) == Late((), ("r",))


def test_one_that_runs_alone_is_not_given_up() -> None:
    alone = Prefill("r", 0, 30_000, NOW - 0.9, CHAT)
    assert late_requests(replace(IDLE, prefills=(alone,)), []) == NOBODY_LATE


def test_one_whose_first_token_came_has_no_ttft_to_lose() -> None:
    again = Prefill("again", 0, 9_000, NOW - 30, CHAT, has_answered=True)
    in_hand = replace(IDLE, prefills=(again,))
    assert late_waiting(in_hand, [chat("fine", 9_000)]) == ()
    assert late_waiting(in_hand, [chat("gone", 400, NOW - 1)]) == ("gone",)


def test_prompts_that_are_alike_in_everything_are_told_apart() -> None:
    running = (Prefill("r", 0, 9000, NOW - 0.9, CHAT), Prefill("s", 0, 9000, NOW - 0.9, CHAT))
    in_hand = replace(IDLE, prefills=running)
    late = late_requests(in_hand, [chat("a", 9000, NOW - 0.9)])
    assert sorted((*late.waiting, *late.running)) == ["a", "r", "s"]


def test_only_who_was_promised_a_ttft_and_can_still_keep_it_counts() -> None:
    others = [
        chat("known", 400, NOW - 5, is_late=True),
        WaitingRequest("batch", NOW - 500, BATCH, prefill_tokens=9000),
        WaitingRequest("none", NOW - 500, None, prefill_tokens=9000),
    ]
    assert late_waiting(IDLE, others) == ()


prompts = st.lists(
    st.tuples(st.integers(1, 20_000), st.floats(NOW - 1.5, NOW)), max_size=LOOKS
).map(lambda pairs: [chat(f"r{n}", *pair) for n, pair in enumerate(pairs)])


@given(prompts)
def test_who_is_kept_can_be_kept_and_giving_up_in_order_would_keep_no_more(waiting: Any) -> None:
    late = set(late_waiting(IDLE, waiting))
    in_order = sorted(waiting, key=lambda each: each.arrival_s)
    kept = [each for each in in_order if each.request_id not in late]
    if len(late) < LATE_A_STEP:
        end_s = NOW
        for each in kept:
            end_s += seconds(each.prefill_tokens)
            assert end_s <= each.arrival_s + 1.0 + 1e-6
        greedy, end_s = 0, NOW
        for each in in_order:
            if end_s + seconds(each.prefill_tokens) <= each.arrival_s + 1.0:
                end_s += seconds(each.prefill_tokens)
                greedy += 1
        assert len(kept) >= greedy


def test_many_are_looked_at_now_and_then_unless_more_may_be_late_or_tenants_wait() -> None:
    in_hand = replace(BUSY, tightest_ttft_s=1.6)
    one, several = Tenants(), Tenants(waiting=(TenantView("a", 1.0),))
    assert next_look_s(in_hand, MANY_WAIT, 0, one) == pytest.approx(NOW + 0.05)
    assert next_look_s(in_hand, MANY_WAIT - 1, 0, one) <= NOW
    assert next_look_s(in_hand, MANY_WAIT, LATE_A_STEP, one) <= NOW
    assert next_look_s(in_hand, MANY_WAIT, 0, several) <= NOW
    assert next_look_s(BUSY, MANY_WAIT, 0, one) <= NOW


def test_until_the_next_look_nobody_is_given_up() -> None:
    in_hand = work(decodes=64, due=due(0.02), tightest_ttft_s=1.0)
    waiting = [planned_chat(f"a{n}", 2000, NOW - 0.5) for n in range(MANY_WAIT)]
    first = plan_step(view(in_hand, waiting), lambda: False)
    assert 0 < len(first.late) <= LATE_A_STEP
    rested = replace(in_hand, carried=Carried(next_look_s=NOW + 0.01))
    assert not plan_step(view(rested, waiting), lambda: False).late
    again = replace(rested, now_s=NOW + 0.01)
    assert plan_step(view(again, waiting), lambda: False).late


def test_those_that_run_count_too_where_more_may_be_late_than_one_step_gives_up() -> None:
    running = tuple(Prefill(f"r{n}", 0, 60_000, NOW - 0.95, CHAT) for n in range(2))
    in_hand = work(decodes=64, due=due(0.02), tightest_ttft_s=1.0, prefills=running)
    waiting = [planned_chat(f"a{n}", 30_000, NOW - 0.9) for n in range(MANY_WAIT)]
    found = plan_step(view(in_hand, waiting), lambda: False)
    assert len(found.late) + len(found.late_prefills) == LATE_A_STEP
    assert found.late_prefills
    assert found.carried is not None
    assert found.carried.next_look_s <= NOW
