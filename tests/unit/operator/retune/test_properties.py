"""What holds whatever pods tell."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from headway_operator.decide.retune import Bounds, Change, ClassTargets, What, clamp
from headway_operator.memory.tuning import OperatingPoint, Streaks, Tuning
from tests.unit.operator.retune.situations import BATCH, CHAT, Situation, tick

MESSAGE = re.compile(r"[A-Za-z0-9 .,]+\Z")

ratios = st.none() | st.floats(0, 10)
situations = st.builds(
    Situation,
    utilisation=st.floats(0, 1),
    kv_usage=st.floats(0, 1),
    slots_taken=st.floats(0, 1.5),
    waiting=st.sampled_from([0.0, 1.0, 500.0]),
    tokens_per_step=st.floats(1, 10_000),
    step_ms=st.floats(1, 500),
    tpot=ratios,
    ttft=ratios,
    chat_requests=st.sampled_from([0.0, 0.3, 5.0]),
    chat_attained=st.floats(0, 1),
    preemptions=st.sampled_from([0.0, 0.0, 3.0]),
    pods=st.integers(1, 3),
    planned=st.booleans(),
)
all_bounds = st.builds(Bounds, st.integers(1, 20_000), st.integers(1, 2000))
class_lists = st.sampled_from(
    [(), (CHAT,), (BATCH,), (CHAT, BATCH), (ClassTargets("chat", tpot_ms=300), BATCH)]
)
limits = st.none() | st.integers(1, 20_000)
points = st.builds(
    OperatingPoint, st.none() | st.integers(200_000, 400_000), limits, limits, limits
)
streaks = st.builds(Streaks, *(st.integers(0, 6) for _ in range(3)))
tunings = st.builds(Tuning, points, streaks)


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    bounds = draw(all_bounds)
    return {
        "tuning": clamp(draw(tunings), bounds),
        "bounds": bounds,
        "classes": draw(class_lists),
    }


def values(point: OperatingPoint, bounds: Bounds) -> dict[What, int]:
    """What is in force, caps as numbers."""
    return {
        What.TOKEN_BUDGET: bounds.token_budget(point),
        What.MAX_BATCH: bounds.max_batch(point),
        What.CLASS_LIMIT: point.background_limit or 10**6,
    }


def after(case: dict[str, Any], situation: Situation) -> dict[What, int]:
    point = tick(case["tuning"], situation, case["classes"], case["bounds"]).tuning.point
    return values(point, case["bounds"])


@given(cases(), st.lists(situations, min_size=1, max_size=10))
def test_limits_stay_within_bounds_and_move_in_bounded_steps(case: Any, ahead: Any) -> None:
    tuning, bounds = case["tuning"], case["bounds"]
    for situation in ahead:
        before = tuning.point
        retuned = tick(tuning, situation, case["classes"], bounds)
        tuning, now = retuned.tuning, retuned.tuning.point
        assert clamp(tuning, bounds) == tuning
        assert now.theta_ppm is not None
        assert 200_000 <= now.theta_ppm <= 400_000
        assert abs(now.theta_ppm - (before.theta_ppm or now.theta_ppm)) <= 20_000
        budget, next_budget = bounds.token_budget(before), bounds.token_budget(now)
        most_up = 1.5 if situation.planned else 1.1
        assert int(0.6 * budget) <= next_budget <= max(most_up * budget, budget + 1)
        running = situation.slots_taken * bounds.slots(before)
        batch, next_batch = bounds.max_batch(before), bounds.max_batch(now)
        assert int(0.75 * min(batch, running)) <= next_batch <= max(1.5 * batch, batch + 1)
        assert_background_bounded(before, now, bounds.slots(before))


def assert_background_bounded(before: OperatingPoint, now: OperatingPoint, slots: int) -> None:
    limit, next_limit = before.background_limit, now.background_limit
    if next_limit is None:
        assert limit is None or max(1.25 * limit, limit + 1) >= slots
    elif limit is not None:
        assert int(0.75 * min(limit, slots)) <= next_limit <= max(1.25 * limit, limit + 1)


@settings(max_examples=50, deadline=None)
@given(cases(), situations)
def test_the_same_again_and_again_settles_without_a_swing(case: Any, situation: Any) -> None:
    tuning, bounds = case["tuning"], case["bounds"]
    seen = []
    for _ in range(300):
        tuning = tick(tuning, situation, case["classes"], bounds).tuning
        seen.append({**values(tuning.point, bounds), What.THETA: tuning.point.theta_ppm or 0})
    for what in What:
        series = [each[what] for each in seen]
        assert series in (sorted(series), sorted(series, reverse=True)), (what, series)
        assert len(set(series[-100:])) == 1, (what, series)


@given(cases(), situations, st.floats(0, 10), st.floats(0, 10))
def test_a_worse_tpot_never_gives_a_larger_budget(
    case: Any, situation: Any, one: float, other: float
) -> None:
    better, worse = sorted((one, other))
    at = replace(situation, tpot=better), replace(situation, tpot=worse)
    larger, smaller = (after(case, each)[What.TOKEN_BUDGET] for each in at)
    assert smaller <= larger


@given(cases(), situations, st.floats(0, 10), st.floats(0, 10))
def test_a_worse_ttft_never_gives_a_smaller_budget(
    case: Any, situation: Any, one: float, other: float
) -> None:
    better, worse = sorted((one, other))
    at = replace(situation, ttft=better), replace(situation, ttft=worse)
    smaller, larger = (after(case, each)[What.TOKEN_BUDGET] for each in at)
    assert smaller <= larger


@given(cases(), situations, st.floats(0, 1), st.floats(0, 1))
def test_a_higher_utilisation_never_gives_a_larger_theta(
    case: Any, situation: Any, one: float, other: float
) -> None:
    idle, busy = (replace(situation, utilisation=each) for each in sorted((one, other)))
    tuning, classes, bounds = case["tuning"], case["classes"], case["bounds"]
    larger, smaller = (
        tick(tuning, each, classes, bounds).tuning.point.theta_ppm for each in (idle, busy)
    )
    assert smaller is not None
    assert larger is not None
    assert smaller <= larger


@given(cases(), situations, st.floats(0, 1), st.floats(0, 1))
def test_a_higher_kv_usage_never_gives_a_larger_batch(
    case: Any, situation: Any, one: float, other: float
) -> None:
    free, full = (replace(situation, kv_usage=each) for each in sorted((one, other)))
    larger, smaller = (after(case, each)[What.MAX_BATCH] for each in (free, full))
    assert smaller <= larger


@given(cases(), situations)
def test_the_same_is_decided_from_the_same_and_said_why(case: Any, situation: Any) -> None:
    first = tick(case["tuning"], situation, case["classes"], case["bounds"])
    assert first == tick(case["tuning"], situation, case["classes"], case["bounds"])
    for change in first.changes:
        assert_explains(change)
    assert {change.what: change.after for change in first.changes} == changed(
        case["tuning"].point, first.tuning.point
    )


def assert_explains(change: Change) -> None:
    assert change.reason
    assert MESSAGE.match(change.message)
    assert any(character.isdigit() for character in change.message) or "No class" in change.message


def changed(before: OperatingPoint, now: OperatingPoint) -> dict[What, int | None]:
    fields = {
        What.THETA: "theta_ppm",
        What.TOKEN_BUDGET: "token_budget",
        What.MAX_BATCH: "max_batch_size",
        What.CLASS_LIMIT: "background_limit",
    }
    return {
        what: getattr(now, name)
        for what, name in fields.items()
        if getattr(now, name) != getattr(before, name)
    }


def test_properties_are_not_vacuous() -> None:
    """Each value moves in both directions in some situation that the strategies above make."""
    bounds = Bounds(8192, 256)
    half = Tuning(OperatingPoint(300_000, 1000, 100, 50), Streaks(6, 6, 6))
    up = Situation(utilisation=0, tpot=0.5, ttft=0.5, waiting=1, kv_usage=0.3)
    pressed = Situation(utilisation=1, tpot=2.0, ttft=2.0, waiting=1, slots_taken=1, kv_usage=0.97)
    classes = (CHAT, BATCH)
    raised = tick(half, up, classes, bounds).changes
    assert {each.what for each in raised} == {What.THETA, What.TOKEN_BUDGET, What.CLASS_LIMIT}
    slots = tick(half, replace(up, slots_taken=1), classes, bounds).changes
    assert {each.what for each in slots} == {What.THETA, What.MAX_BATCH}
    lowered = tick(half, pressed, classes, bounds).changes
    assert {each.what for each in lowered} == {What.THETA, What.TOKEN_BUDGET, What.CLASS_LIMIT}
    alone = tick(half, pressed, (CHAT,), bounds).changes
    assert What.MAX_BATCH in {each.what for each in alone}
