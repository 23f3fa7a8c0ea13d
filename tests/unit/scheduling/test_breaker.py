"""When planning is paused."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.scheduling.breaker import OPEN_SECONDS, OPEN_SECONDS_WHEN_LATE, Breaker


def fail_at(*steps: int, now_s: float = 0.0) -> Breaker:
    breaker = Breaker()
    for step in steps:
        breaker.failed(step, now_s)
    return breaker


def test_three_failures_in_a_hundred_steps_open_it() -> None:
    assert fail_at(1, 50, 100).is_open(0.0)


def test_two_failures_do_not() -> None:
    assert not fail_at(1, 2).is_open(0.0)


def test_three_failures_spread_wider_do_not() -> None:
    assert not fail_at(1, 50, 101).is_open(0.0)


def test_it_closes_after_ten_seconds_and_counts_from_zero() -> None:
    breaker = fail_at(1, 2, 3)
    assert breaker.is_open(OPEN_SECONDS - 0.001)
    assert not breaker.is_open(OPEN_SECONDS)
    breaker.failed(4, OPEN_SECONDS)
    breaker.failed(5, OPEN_SECONDS)
    assert not breaker.is_open(OPEN_SECONDS)


def test_plans_that_were_only_late_pause_it_for_a_second() -> None:
    breaker = Breaker()
    for step in (1, 2, 3):
        breaker.failed(step, 0.0, only_late=True)
    assert breaker.is_open(OPEN_SECONDS_WHEN_LATE - 0.001)
    assert not breaker.is_open(OPEN_SECONDS_WHEN_LATE)


def test_one_failure_among_late_plans_pauses_it_for_ten() -> None:
    breaker = Breaker()
    for step, only_late in ((1, True), (2, False), (3, True)):
        breaker.failed(step, 0.0, only_late=only_late)
    assert breaker.is_open(OPEN_SECONDS - 0.001)


@given(st.sets(st.integers(1, 400), max_size=40))
def test_it_opens_exactly_when_some_three_failures_lie_within_a_hundred_steps(
    failures: Any,
) -> None:
    steps = sorted(failures)
    close = any(steps[i + 2] - steps[i] < 100 for i in range(len(steps) - 2))
    assert fail_at(*steps).is_open(0.0) == close
