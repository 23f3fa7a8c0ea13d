"""How long a request that comes now would wait."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headway_runtime.policy import TrafficClass
from headway_runtime.scheduling.admission.waits import LOOKS, Queued, board
from headway_runtime.scheduling.timing.step_time_model import StepTimeModel
from headway_runtime.scheduling.view import (
    Prefill,
    Tenants,
    TenantView,
    TokenDue,
    WaitingRequest,
    Work,
)

CHAT = TrafficClass("chat", ttft_ms=1_000)
SLOW = TrafficClass("slow", ttft_ms=5_000)
BATCH = TrafficClass("batch", deadline_s=60)
CLASSES = (CHAT, SLOW, BATCH)
NOW = 100.0
IDLE = Work(NOW, NOW, StepTimeModel())


def waiting(
    count: int, of: TrafficClass, tenant: str = "", arrival_s: float = NOW
) -> list[WaitingRequest]:
    return [
        WaitingRequest(
            f"{of.name}{tenant}{number}", arrival_s, of, prefill_tokens=1_000, tenant=tenant
        )
        for number in range(count)
    ]


def test_nobody_waits_in_an_idle_engine() -> None:
    known = board(IDLE, Queued((), {}), CLASSES, Tenants())
    assert [each.wait_s for each in known.classes.values()] == [0.0] * 3
    assert known.prompt_token_s > 0


def test_what_is_due_before_is_waited_for_and_nothing_else() -> None:
    chat, slow = waiting(3, CHAT), waiting(3, SLOW)
    both = board(IDLE, Queued([*chat, *slow], {"chat": 3, "slow": 3}), CLASSES, Tenants()).classes
    alone = board(IDLE, Queued(chat, {"chat": 3}), CLASSES, Tenants()).classes
    assert both["chat"].wait_s == alone["chat"].wait_s > 0
    assert both["slow"].wait_s == pytest.approx(2 * both["chat"].wait_s)
    assert both["chat"].waiting == 3


def test_a_wait_is_as_long_as_the_prompts_before_take() -> None:
    one, many = (
        board(IDLE, Queued(waiting(count, CHAT), {}), CLASSES, Tenants()).classes["chat"].wait_s
        for count in (1, 10)
    )
    assert many == pytest.approx(10 * one)


def test_those_that_are_not_looked_at_count_like_the_others() -> None:
    seen, more = (
        board(IDLE, Queued(waiting(count, CHAT), {"chat": count}), CLASSES, Tenants())
        .classes["chat"]
        .wait_s
        for count in (LOOKS, 3 * LOOKS)
    )
    assert more == pytest.approx(3 * seen)


def test_prompts_that_run_are_waited_for_by_their_urgency() -> None:
    late = Prefill("r", 0, 10_000, NOW, BATCH)
    urgent = replace(late, traffic_class=CHAT)
    first, second = (
        board(replace(IDLE, prefills=(each,)), Queued((), {}), CLASSES, Tenants()).classes
        for each in (late, urgent)
    )
    assert first["chat"].wait_s == 0
    assert second["chat"].wait_s > 0


def test_an_engine_that_is_not_free_is_waited_for() -> None:
    busy = replace(IDLE, free_s=NOW + 0.5)
    assert board(busy, Queued((), {}), CLASSES, Tenants()).classes["chat"].wait_s == 0.5


def test_background_work_waits_by_how_fast_it_was_computed_of_late() -> None:
    queue = Queued(waiting(4, BATCH), {"batch": 4}, drained_tokens_per_s=100.0)
    known = board(IDLE, queue, CLASSES, Tenants()).classes
    assert known["batch"].wait_s == pytest.approx(4_000 / 100)
    assert known["chat"].wait_s == 0


def test_in_a_full_batch_everybody_waits_for_those_that_run_to_end() -> None:
    queue = Queued(waiting(5, CHAT), {"chat": 5}, free_slots=0, ended_per_s=2.0)
    assert board(IDLE, queue, CLASSES, Tenants()).classes["chat"].wait_s == pytest.approx(3.0)
    free = board(IDLE, queue._replace(free_slots=6), CLASSES, Tenants()).classes["chat"].wait_s
    assert 0 < free < 3.0


def test_a_light_tenant_does_not_wait_for_those_with_more_than_a_share() -> None:
    queue = Queued([*waiting(5, CHAT, "heavy"), *waiting(1, CHAT, "light")], {"chat": 6})
    by_use = board(IDLE, queue, CLASSES, Tenants(levels={"heavy": 2}))
    views = (TenantView("heavy", 1e9), TenantView("light", 0.0, 1, waiting(1, BATCH, "light")))
    by_turns = board(IDLE, queue, CLASSES, Tenants(views))
    for known in (by_use, by_turns):
        chat = known.classes["chat"]
        assert known.heavy == {"heavy"}
        assert chat.wait_s == pytest.approx(6 * chat.light_wait_s)


def test_what_a_request_takes_is_known_however_full_the_engine_is() -> None:
    full = replace(IDLE, answer_s=2.0, due=(TokenDue(NOW, 0.05),), decodes=200)
    empty, busy = (board(each, Queued((), {}), CLASSES, Tenants()) for each in (IDLE, full))
    token_s = IDLE.step_time.mixed.prefill_token_s
    assert empty.work_s(1000) == pytest.approx(1000 * token_s)
    assert busy.work_s(1000) == pytest.approx(1000 * token_s + 2.0)
    assert busy.prompt_token_s > token_s
