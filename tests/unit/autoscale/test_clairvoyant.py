"""The fewest pods for work that is known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.executors.simulated.request import Arrival
from headway_runtime.scheduling.timing.step_time_model import Coefficients
from tests.autoscale.clairvoyant import averaged, pods_needed, schedule, work_per_second
from tests.autoscale.request_work import answer_seconds, prompt_seconds

COST = Coefficients(0.01, 1e-3, 1e-2, 1e-5, 1e-7)
START = 3
needs = st.lists(st.integers(1, 9), min_size=1, max_size=80)


def test_all_work_is_somewhere() -> None:
    arrivals = [Arrival(2.0, "", 1000, 50), Arrival(7.0, "", 10, 1), Arrival(12.0, "", 300, 20)]
    work = work_per_second(arrivals, COST, 0.1, 5.0, 10)
    total_s = sum(
        prompt_seconds(COST, each.prompt_tokens)
        + answer_seconds(COST, each.prompt_tokens, each.output_tokens)
        for each in arrivals
    )
    assert sum(work) * 5.0 == pytest.approx(total_s)


def test_the_mean_is_around_each_moment() -> None:
    assert averaged([0.0, 0.0, 3.0, 0.0, 0.0], 5.0) == [0.0, 1.0, 1.0, 1.0, 0.0]


def test_pods_have_room_for_what_they_are_asked() -> None:
    assert pods_needed([0.0, 0.5, 0.51, 2.0], 0.5) == [1, 1, 2, 4]


def test_pods_are_made_before_they_are_needed() -> None:
    assert schedule([1, 1, 1, 1, 1, 3, 1], START) == [1, 1, 3, 3, 3, 3, 1]


def test_a_pod_that_is_soon_needed_again_stays() -> None:
    short, long = [2, 1, 1, 1, 2], [2, 1, 1, 1, 1, 1, 2]
    assert schedule(short, START) == [2] * 5
    assert schedule(long, START) == [2, 1, 1, 2, 2, 2, 2]


@given(needs)
def test_there_are_never_fewer_than_needed_nor_more_than_ever_needed(needed: list[int]) -> None:
    pods = schedule(needed, START)
    assert all(have >= need for have, need in zip(pods, needed, strict=True))
    assert max(pods) == max(needed)


@given(needs)
def test_who_is_needed_was_made_in_time(needed: list[int]) -> None:
    pods = schedule(needed, START)
    for tick, need in enumerate(needed):
        assert min(pods[max(0, tick - START) : tick + 1]) >= need
