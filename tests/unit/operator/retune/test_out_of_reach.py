"""A TPOT target that nothing brings about is told once."""

from __future__ import annotations

from dataclasses import replace

from headway_operator.decide.retune import retune
from headway_operator.decide.retune.out_of_reach import TICKS_OUT_OF_REACH
from headway_operator.memory.tuning import OperatingPoint, Streaks, Tuning
from tests.unit.operator.retune.situations import (
    BOUNDS,
    CLASSES,
    Situation,
    metrics,
    settled,
    tick,
)

LATE = Situation(tpot=3.0, slots_taken=1.0)
AT_THE_BOTTOM = replace(
    settled(token_budget=BOUNDS.token_budget_floor, max_batch_size=16), streaks=Streaks(6, 0, 0)
)


def told(tuning: Tuning, *situations: Situation) -> list[str]:
    found = []
    for situation in situations:
        retuned = tick(tuning, situation)
        tuning = retuned.tuning
        found.append(retuned.out_of_reach)
    return found


def test_it_is_told_once_after_half_a_minute() -> None:
    found = told(AT_THE_BOTTOM, *[LATE] * (2 * TICKS_OUT_OF_REACH))
    assert [bool(each) for each in found] == [
        number == TICKS_OUT_OF_REACH for number in range(1, 2 * TICKS_OUT_OF_REACH + 1)
    ]
    (text,) = filter(None, found)
    assert text == (
        "TPOT of class chat is 3.00 of its target, and engines have nothing left to lower: at most "
        "64 tokens in a step and 16 requests at once. Raise the class's tpotMilliseconds, or give "
        "the model faster or more GPUs"
    )


def test_nothing_is_told_on_the_way_down() -> None:
    tuning, lowered = settled(), 0
    while True:
        retuned = tick(tuning, LATE)
        assert not retuned.out_of_reach
        if not retuned.changes:
            break
        tuning, lowered = retuned.tuning, lowered + 1
    assert lowered > 1
    assert tuning.point.token_budget == BOUNDS.token_budget_floor


def test_one_tick_inside_begins_anew() -> None:
    late = [LATE] * (TICKS_OUT_OF_REACH - 1)
    found = told(AT_THE_BOTTOM, *late, replace(LATE, tpot=0.95), *late)
    assert not any(found)


def test_engines_that_do_not_follow_prove_nothing() -> None:
    point = OperatingPoint(token_budget=BOUNDS.token_budget_floor, max_batch_size=16)
    tuning = Tuning(point, Streaks(6, 0, 0))
    for _ in range(2 * TICKS_OUT_OF_REACH):
        seen = metrics(LATE, OperatingPoint(), BOUNDS, tuning.collection + 1)
        retuned = retune(tuning, seen, CLASSES, BOUNDS)
        assert not retuned.out_of_reach
        tuning = retuned.tuning
