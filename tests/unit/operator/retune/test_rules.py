"""What is changed when, by how much, and what it says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headway_operator.decide.retune import (
    Bounds,
    Change,
    ClassTargets,
    Reason,
    What,
    clamp,
    limit_background,
    retune,
)
from headway_operator.memory.tuning import OperatingPoint, Streaks, Tuning
from headway_operator.observe.engine_metrics.sample import History
from headway_runtime.policy import TrafficClass
from tests.unit.operator.retune.situations import (
    BATCH,
    BOUNDS,
    CHAT,
    CLASSES,
    Situation,
    history,
    metrics,
    settled,
    tick,
)


def change(
    what: What, tuning: Tuning, situation: Situation, classes: Any = CLASSES, bounds: Any = BOUNDS
) -> Change | None:
    found = tick(tuning, situation, classes, bounds).changes
    return next((each for each in found if each.what is what), None)


def moved(*args: Any, **kwargs: Any) -> tuple[int | None, int | None, Reason] | None:
    found = change(*args, **kwargs)
    return None if found is None else (found.before, found.after, found.reason)


# --- theta


@pytest.mark.parametrize(
    ("before", "utilisation", "after"),
    [
        (None, 1.0, 200_000),
        (None, 0.0, 400_000),
        (None, 0.5, 300_000),
        (300_000, 0.55, None),  # 290,000 is close enough
        (300_000, 0.40, 320_000),
        (300_000, 0.58, 284_000),
        (300_000, 1.0, 280_000),  # no further in one tick
        (300_000, 1.7, 280_000),
    ],
)
def test_theta_follows_utilisation_in_bounded_steps(
    before: Any, utilisation: Any, after: Any
) -> None:
    found = moved(What.THETA, settled(theta_ppm=before), Situation(utilisation=utilisation))
    assert found == (None if after is None else (before, after, Reason.UTILISATION))


# --- token budget


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


# --- batch size


@pytest.mark.parametrize(
    ("before", "taken", "kv_usage", "preemptions", "after"),
    [
        (None, 0.5, 0.96, 0, 120),  # of the 128 that run
        (100, 1.0, 0.96, 0, 93),
        (100, 1.0, 0.99, 1, 90),
        (100, 1.0, 0.85, 1, 90),
        (100, 1.2, 0.99, 0, None),  # the last decision is still being carried out
        (100, 1.0, 0.95, 0, None),
        (4, 1.0, 0.99, 1, None),
    ],
)
def test_kv_pressure_lowers_the_batch_where_targets_are_missed(
    before: Any, taken: Any, kv_usage: Any, preemptions: Any, after: Any
) -> None:
    pressed = Situation(slots_taken=taken, kv_usage=kv_usage, preemptions=preemptions, ttft=1.2)
    found = moved(What.MAX_BATCH, settled(max_batch_size=before), pressed, (CHAT,))
    assert found == (None if after is None else (before, after, Reason.KV_PRESSURE))


@pytest.mark.parametrize(("preemptions", "after"), [(0, None), (83, None), (84, 90)])
def test_kv_pressure_that_hurts_nobody_is_left_alone(preemptions: float, after: Any) -> None:
    """Until every request that runs, 100 here, is computed again five times in half a minute."""
    full = Situation(slots_taken=1.0, kv_usage=0.99, preemptions=preemptions)
    found = moved(What.MAX_BATCH, settled(max_batch_size=100), full)
    assert found == (None if after is None else (100, after, Reason.KV_PRESSURE))


def test_background_work_gives_way_to_missed_targets_before_the_batch_does() -> None:
    pressed = Situation(slots_taken=0.5, kv_usage=0.97, tpot=1.2)
    retuned = tick(settled(), pressed)
    assert retuned.tuning.point.background_limit == 64
    assert retuned.tuning.point.max_batch_size is None
    at_floor = tick(settled(background_limit=1), pressed).tuning.point
    assert at_floor.max_batch_size is not None
    alone = tick(settled(), pressed, (CHAT,)).tuning.point
    assert alone.max_batch_size is not None


@pytest.mark.parametrize("cause", [{"token_budget": 64}, {"tokens": 50.0}], ids=str)
def test_tpot_lowers_the_batch_only_where_the_budget_cannot_help(cause: Any) -> None:
    tuning = settled(max_batch_size=50, token_budget=cause.get("token_budget", 1000))
    tokens = cause.get("tokens", 200.0)
    missed = Situation(tpot=1.2, slots_taken=1.0, tokens_per_step=tokens)
    assert moved(What.MAX_BATCH, tuning, missed) == (50, 39, Reason.TPOT_MISSED)
    helped = settled(max_batch_size=50, token_budget=1000)
    plenty = Situation(tpot=1.2, slots_taken=1.0, tokens_per_step=200.0)
    assert moved(What.MAX_BATCH, helped, plenty) is None


def test_tpot_costs_neither_ttft_nor_all_throughput() -> None:
    missed = {"tpot": 2.0, "slots_taken": 1.0}
    tuning = settled(max_batch_size=50, token_budget=64)
    assert moved(What.MAX_BATCH, tuning, Situation(ttft=0.81, **missed)) is None
    low = settled(max_batch_size=18, token_budget=64)
    assert moved(What.MAX_BATCH, low, Situation(**missed)) == (18, 16, Reason.TPOT_MISSED)
    lowest = settled(max_batch_size=16, token_budget=64)
    assert moved(What.MAX_BATCH, lowest, Situation(**missed)) is None
    both = Situation(ttft=1.5, waiting=5, **missed)
    assert moved(What.MAX_BATCH, lowest, both) == (16, 24, Reason.TTFT_MISSED)


@pytest.mark.parametrize(
    ("changed", "after"),
    [
        ({}, 150),
        ({"kv_usage": 0.7}, 121),
        ({"tpot": 0.89}, 106),
        ({"kv_usage": 0.8}, None),
        ({"waiting": 0.0}, None),
        ({"slots_taken": 0.89}, None),
        ({"tpot": 0.91}, None),
    ],
    ids=str,
)
def test_requests_that_wait_for_a_slot_raise_the_batch(changed: Any, after: Any) -> None:
    asked = {"kv_usage": 0.3, "waiting": 5.0, "slots_taken": 1.0, "tpot": 0.5, **changed}
    found = moved(What.MAX_BATCH, settled(max_batch_size=100), Situation(**asked))
    assert found == (None if after is None else (100, after, Reason.KV_ROOM))


WAITING = Situation(kv_usage=0.3, waiting=5, slots_taken=1.0, tpot=0.5)


def batch_after(samples: History, tuning: Tuning) -> int | None:
    seen = replace(metrics(WAITING), pods={"pod": samples})
    return retune(tuning, seen, CLASSES, BOUNDS).tuning.point.max_batch_size


def test_the_batch_is_not_raised_until_the_last_raise_has_shown_what_it_does() -> None:
    tuning = settled(max_batch_size=100)
    samples = history(WAITING, tuning.point, BOUNDS)
    assert batch_after(samples, tuning) == 150
    half_before = tuple(replace(each, running=50) for each in samples[:8])
    assert batch_after((*half_before, *samples[8:]), tuning) == 100
    long_before = tuple(replace(each, running=50) for each in samples[:6])
    assert batch_after((*long_before, *samples[6:]), tuning) == 150


def test_the_batch_is_not_raised_while_preemptions_are_recent() -> None:
    tuning = settled(max_batch_size=100)
    samples = history(WAITING, tuning.point, BOUNDS)
    since = tuple(replace(each, preemptions_total=2000) for each in samples[8:])
    assert batch_after((*samples[:8], *since), tuning) == 100


def test_a_step_is_measured_before_it_is_rounded() -> None:
    """Else a small batch could never be raised by little."""
    asked = replace(WAITING, tpot=0.8999)
    assert moved(What.MAX_BATCH, settled(max_batch_size=70), asked) == (70, 73, Reason.KV_ROOM)


def test_batch_and_budget_are_not_raised_at_once() -> None:
    asked = Situation(tpot=0.5, kv_usage=0.3, waiting=5, slots_taken=1.0)
    found = tick(settled(theta_ppm=300_000, max_batch_size=100, token_budget=1000), asked).changes
    assert [each.what for each in found] == [What.MAX_BATCH]


# --- background limit


STARVED = Situation(ttft=1.2, waiting=5, slots_taken=1.0)


@pytest.mark.parametrize(("before", "after"), [(None, 128), (100, 75), (2, 1), (1, None)])
def test_missed_ttft_limits_background_work(before: Any, after: Any) -> None:
    found = moved(What.CLASS_LIMIT, settled(background_limit=before), STARVED)
    assert found == (None if after is None else (before, after, Reason.TTFT_MISSED))


def test_background_work_is_not_limited_for_one_odd_tick() -> None:
    first = tick(Tuning(), STARVED).tuning
    assert first.point.background_limit is None
    assert tick(first, Situation()).tuning.point.background_limit is None
    assert tick(first, STARVED).tuning.point.background_limit == 128


@pytest.mark.parametrize(
    "changed", [{"ttft": 0.9}, {"waiting": 0}, {"slots_taken": 0.89}, {"ttft": None}], ids=str
)
def test_background_work_is_limited_only_where_it_holds_slots_that_are_waited_for(
    changed: Any,
) -> None:
    situation = Situation(**{**STARVED.__dict__, **changed})
    assert moved(What.CLASS_LIMIT, settled(), situation) is None


def test_a_limit_above_what_can_run_begins_at_what_can() -> None:
    tuning = settled(background_limit=100, max_batch_size=80)
    assert moved(What.CLASS_LIMIT, tuning, STARVED) == (100, 60, Reason.TTFT_MISSED)


@pytest.mark.parametrize("classes", [(CHAT,), (BATCH,)], ids=["objectives", "background"])
def test_nothing_is_limited_for_nobodys_sake(classes: Any) -> None:
    assert moved(What.CLASS_LIMIT, settled(), STARVED, classes) is None


@pytest.mark.parametrize(
    ("before", "changed", "after"),
    [
        (100, {}, 125),
        (1, {}, 2),
        (250, {}, None),
        (100, {"slots_taken": 0.9}, 100),
        (100, {"ttft": 0.8}, 100),
        (100, {"ttft": None}, 100),
        (100, {"kv_usage": 0.8}, 100),
        (100, {"preemptions": 0.1}, 100),
    ],
    ids=str,
)
def test_background_limit_is_relaxed_while_slots_are_free(
    before: Any, changed: Any, after: Any
) -> None:
    situation = Situation(**{"slots_taken": 0.5, **changed})
    assert tick(settled(background_limit=before), situation).tuning.point.background_limit == after


def test_background_limit_stays_between_two_bursts() -> None:
    tuning = settled(background_limit=100)
    samples = history(Situation(), tuning.point, BOUNDS)
    burst = (replace(samples[3], running=250), *samples[4:])
    seen = replace(metrics(Situation()), pods={"pod": burst})
    assert retune(tuning, seen, CLASSES, BOUNDS).tuning.point.background_limit == 100


def test_background_limit_is_relaxed_when_nobody_else_is_there() -> None:
    alone = Situation(ttft=None, tpot=None, chat_requests=0, slots_taken=1.0, waiting=9)
    found = moved(What.CLASS_LIMIT, settled(background_limit=100), alone)
    assert found == (100, 125, Reason.NO_OBJECTIVES)


def test_limit_goes_to_the_classes_without_target_for_tokens() -> None:
    classes = (
        TrafficClass("ttft", ttft_ms=1),
        TrafficClass("tpot", tpot_ms=1),
        TrafficClass("deadline", deadline_s=1),
        TrafficClass("nothing"),
    )
    assert [each.max_running for each in limit_background(classes, 7)] == [None, None, 7, 7]
    assert limit_background(classes, None) == classes


# --- caps


@pytest.mark.parametrize(
    ("point", "bounds", "clamped"),
    [
        (OperatingPoint(1, 500, 50, 20), Bounds(8192, 256), OperatingPoint(1, 500, 50, 20)),
        (OperatingPoint(1, 500, 50, 20), Bounds(500, 20), OperatingPoint(1)),
        (OperatingPoint(1, 10, 1, 0), Bounds(8192, 256), OperatingPoint(1, 64, 4, 1)),
        (OperatingPoint(1, 10, 1), Bounds(32, 2), OperatingPoint(1)),
        (OperatingPoint(), Bounds(64, 4), OperatingPoint()),
    ],
)
def test_other_caps_move_the_point_within_them(point: Any, bounds: Any, clamped: Any) -> None:
    assert clamp(Tuning(point, Streaks(1), 7), bounds) == Tuning(clamped, Streaks(1), 7)


def test_messages_have_the_numbers() -> None:
    found = change(What.TOKEN_BUDGET, settled(token_budget=1000), Situation(tpot=1.31))
    assert found is not None
    assert found.message == "TPOT of class chat is 1.31 of its target"
    found = change(What.CLASS_LIMIT, settled(), STARVED)
    assert found is not None
    assert (
        found.message == "TTFT of class chat is 1.20 of its target while 5 requests wait for a slot"
    )
