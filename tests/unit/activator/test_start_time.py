"""What clients are told of when an engine will be there."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.activator.start_time import LONGEST_SECONDS, StartTime


def test_until_a_start_was_seen_it_is_what_was_told() -> None:
    assert StartTime(90).remaining(5) == 90


def test_the_last_start_counts_and_what_has_passed_of_this_one() -> None:
    clock = StartTime(90)
    clock.begins(100)
    clock.begins(105)  # somebody else asks too
    assert clock.remaining(130) == 60
    clock.ends(120)
    assert clock.remaining(1000) == 20
    clock.begins(1000)
    assert clock.remaining(1015) == 5


def test_a_start_that_takes_longer_takes_a_little_longer() -> None:
    clock = StartTime(50)
    clock.begins(0)
    assert clock.remaining(70) == 5


def test_an_end_without_a_beginning_tells_nothing() -> None:
    clock = StartTime(50)
    clock.ends(10)
    assert clock.seconds == 50


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1e5)), max_size=20), st.floats(0, 1e5))
def test_it_is_always_a_time_that_a_client_can_wait(
    steps: list[tuple[bool, float]], first: float
) -> None:
    clock, now = StartTime(first), 0.0
    for begins, passed in steps:
        now += passed
        (clock.begins if begins else clock.ends)(now)
        assert 1 <= clock.remaining(now) <= LONGEST_SECONDS
