"""When the token budget is changed, by how much, and what it says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headway_operator.decide.retune import ClassTargets, Reason, What, retune
from headway_operator.memory.tuning import OperatingPoint, Tuning
from tests.unit.operator.retune.situations import (
    BATCH,
    BOUNDS,
    CHAT,
    CLASSES,
    STARVED,
    Situation,
    change,
    metrics,
    moved,
    settled,
    tick,
)


@pytest.mark.parametrize(
    ("before", "tpot", "after"),
    [
        (None, 1.02, 7106),  # by the square of what TPOT must, towards 0.95 of its target
        (1000, 1.05, 818),
        (1000, 1.4, 750),  # no further in one tick
        (1000, 3.0, 600),  # far over: further
        (70, 3.0, 64),  # the floor
        (64, 3.0, None),
        (1000, 0.95, None),
    ],
)
def test_missed_tpot_lowers_the_budget(before: Any, tpot: Any, after: Any) -> None:
    found = moved(What.TOKEN_BUDGET, settled(token_budget=before), Situation(tpot=tpot))
    assert found == (None if after is None else (before, after, Reason.TPOT_MISSED))


@pytest.mark.parametrize(
    ("before", "tpot", "after"),
    [
        (1000, 0.89, 1067),
        (1000, 0.5, 1100),
        (1000, 0.0, 1100),
        (8000, 0.5, None),  # the cap, which is no value of its own
    ],
)
def test_budget_comes_back_while_there_is_work_and_tpot_has_room(
    before: Any, tpot: Any, after: Any
) -> None:
    busy = Situation(tpot=tpot, waiting=3)
    found = moved(What.TOKEN_BUDGET, settled(token_budget=before), busy)
    assert found == (before, after, Reason.TPOT_KEPT)


@pytest.mark.parametrize(
    ("tpot", "planned", "after"),
    [(0.95, False, None), (0.95, True, 1500), (1.04, True, 1500), (1.06, True, 803)],
)
def test_where_steps_are_planned_a_target_that_is_kept_is_room(
    tpot: Any, planned: Any, after: Any
) -> None:
    # Also without a queue or full steps: a budget that nobody needs does no harm there.
    situation = Situation(tpot=tpot, waiting=0 if planned else 3, planned=planned)
    found = change(What.TOKEN_BUDGET, settled(token_budget=1000), situation)
    assert (None if found is None else found.after) == after


def test_where_steps_are_planned_the_budget_comes_back_after_half_a_minute() -> None:
    tuning = Tuning(OperatingPoint(theta_ppm=300_000, token_budget=64))
    seen = []
    for _ in range(20):
        tuning = tick(tuning, Situation(tpot=0.97, tokens_per_step=20, planned=True)).tuning
        seen.append(tuning.point.token_budget)
    assert seen[:5] == [64] * 5
    assert seen[5:7] == [96, 144]
    assert seen[-1] is None


def test_one_engine_that_does_not_plan_its_steps_leaves_no_room_near_the_target() -> None:
    tuning = settled(token_budget=1000)
    seen = metrics(Situation(tpot=0.95, waiting=3, planned=True, pods=2), tuning.point)
    stock = metrics(Situation(tpot=0.95, waiting=3), tuning.point).pods["pod-0"]
    mixed = replace(seen, pods={**seen.pods, "pod-1": stock})
    raised, left = (retune(tuning, each, CLASSES, BOUNDS).tuning.point for each in (seen, mixed))
    assert (raised.token_budget, left.token_budget) == (1500, 1000)


@pytest.mark.parametrize(
    "busy", [{"waiting": 1}, {"tokens_per_step": 800}, {"ttft": 0.91}], ids=str
)
def test_work_is_a_queue_full_steps_or_a_ttft_near_its_target(busy: Any) -> None:
    tuning = settled(token_budget=1000)
    assert moved(What.TOKEN_BUDGET, tuning, Situation(tpot=0.5)) is None
    assert moved(What.TOKEN_BUDGET, tuning, Situation(tpot=0.5, **busy)) is not None


def test_without_work_the_budget_comes_back_only_as_far_as_full_steps_keep_any_target() -> None:
    idle = Situation(tpot=0.1, tokens_per_step=100, step_ms=10)  # 10,000 tokens a second
    safe = ClassTargets("chat", tpot_ms=320)  # 3040 tokens in 0.95 of that
    strict = ClassTargets("other", tpot_ms=30)
    tuning = settled(token_budget=2500)
    assert moved(What.TOKEN_BUDGET, tuning, idle, (safe,)) == (2500, 2750, Reason.TPOT_KEPT)
    found = change(What.TOKEN_BUDGET, settled(token_budget=2800), idle, (safe,))
    assert found is not None
    assert found.after == pytest.approx(3040, abs=1)
    tuning = settled(token_budget=3000)
    assert moved(What.TOKEN_BUDGET, tuning, idle, (safe,)) is None
    tuning = settled(token_budget=2500)
    assert moved(What.TOKEN_BUDGET, tuning, idle, (safe, strict)) is None


@pytest.mark.parametrize(
    ("tpot", "waiting", "ticks"), [(1.2, 0, 2), (2.0, 0, 1), (0.5, 1, 6)], ids=str
)
def test_one_odd_tick_changes_nothing(tpot: Any, waiting: Any, ticks: Any) -> None:
    tuning = Tuning(OperatingPoint(theta_ppm=300_000, token_budget=1000))
    situation = Situation(tpot=tpot, waiting=waiting)
    for _ in range(ticks - 1):
        tuning = tick(tuning, situation).tuning
        assert tuning.point.token_budget == 1000
    interrupted = tick(tuning, Situation(tpot=0.95)).tuning
    assert tick(interrupted, situation).tuning.point.token_budget == 1000 or ticks == 1
    assert tick(tuning, situation).tuning.point.token_budget != 1000


def test_without_a_tpot_target_the_budget_returns_to_the_cap() -> None:
    classes = (ClassTargets("chat", ttft_ms=1000), BATCH)
    tuning = settled(token_budget=64)
    for _ in range(60):
        tuning = tick(tuning, Situation(tpot=3.0), classes).tuning
    assert tuning.point.token_budget is None


def test_without_requests_that_have_a_tpot_target_the_budget_returns() -> None:
    quiet = Situation(tpot=None, ttft=None, chat_requests=0)
    found = moved(What.TOKEN_BUDGET, settled(token_budget=1000), quiet)
    assert found == (1000, 1100, Reason.NO_TPOT)


@pytest.mark.parametrize("unknown", [{"tpot": None}, {"chat_requests": 0.3, "tpot": 3.0}], ids=str)
def test_a_tpot_that_is_not_known_is_no_reason(unknown: Any) -> None:
    tuning = settled(token_budget=1000)
    assert moved(What.TOKEN_BUDGET, tuning, Situation(waiting=5, **unknown)) is None


@pytest.mark.parametrize(
    "situation",
    [Situation(tpot=3.0, kv_usage=0.99), Situation(tpot=0.5, slots_taken=1.0, waiting=5)],
    ids=["lower", "raise"],
)
def test_limits_that_no_pod_follows_are_left(situation: Any) -> None:
    """As in mode Shadow: the loop is open, and would run away to the floor."""
    tuning = settled(theta_ppm=300_000, token_budget=1000, max_batch_size=100)
    followed = retune(tuning, metrics(situation, tuning.point), CLASSES, BOUNDS)
    assert followed.changes
    at_ceilings = metrics(situation, OperatingPoint())
    assert retune(tuning, at_ceilings, (CHAT,), BOUNDS).changes == ()


def test_messages_have_the_numbers() -> None:
    found = change(What.TOKEN_BUDGET, settled(token_budget=1000), Situation(tpot=1.31))
    assert found is not None
    assert found.message == "TPOT of class chat is 1.31 of its target"
    found = change(What.CLASS_LIMIT, settled(), STARVED)
    assert found is not None
    assert (
        found.message == "TTFT of class chat is 1.20 of its target while 5 requests wait for a slot"
    )
