"""How many pods so much work takes, and how it grows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_operator.decide.scaling.forecast import MOST_GROWTH, SEEN_SECONDS, forecast, seen
from headway_operator.decide.scaling.offered_load import OfferedLoad
from headway_operator.decide.scaling.outlook import Outlook
from headway_operator.decide.scaling.replicas import (
    CAUTION,
    LEAST_ROOM,
    least_at_once,
    most_at_once,
    most_needed,
    needed,
)
from headway_operator.memory.scaling import LoadPoint, Needed

works = st.floats(0, 1000)
rooms = st.floats(LEAST_ROOM, 1)


def points(*engines: float, every: float = 5.0) -> tuple[LoadPoint, ...]:
    return tuple(LoadPoint(1000 + every * tick, each) for tick, each in enumerate(engines))


@given(works, rooms)
def test_no_pod_is_filled_beyond_its_room_and_none_is_too_many(work: float, room: float) -> None:
    pods = needed(work, room)
    assert work / pods <= room * (1 + 1e-6)
    assert pods == 1 or work / (pods - 1) > room


@given(works, works, rooms)
def test_more_work_never_takes_fewer(one: float, other: float, room: float) -> None:
    assert needed(min(one, other), room) <= needed(max(one, other), room)


def test_an_exact_multiple_is_not_rounded_up() -> None:
    assert needed(0.1 + 0.2 + 0.3, 0.2) == 3


def test_steps_that_take_all_time_leave_some_room() -> None:
    outlook = Outlook(OfferedLoad(0.0, 1.0, overhead=1.0, is_complete=True), 1.0, target=0.8)
    assert outlook.room == LEAST_ROOM
    assert outlook.pods() == 10


@given(works, st.floats(0, 1), st.floats(0.1, 0.95))
def test_caution_takes_no_fewer(work: float, overhead: float, target: float) -> None:
    outlook = Outlook(OfferedLoad(0.0, work, overhead, is_complete=True), work, target)
    assert outlook.pods(CAUTION) >= outlook.pods()


def test_growth_is_carried_on() -> None:
    loads = points(1.0, 1.1, 1.2, 1.3, 1.4)
    assert forecast(loads, 10) == pytest.approx(1.6)
    assert forecast(loads, 0) == pytest.approx(1.4)


def test_what_rises_by_chance_does_not_grow() -> None:
    swinging = points(1.0, 0.8, 1.1, 0.9, 1.2, 0.8, 1.1, 1.0, 1.2, 0.9, 1.15, 1.1)
    assert forecast(swinging, 60) == 1.1


def test_growth_beyond_chance_is_carried_on_with_caution() -> None:
    swinging = points(*(1.0 + 0.1 * tick + 0.1 * (-1) ** tick for tick in range(12)))
    # 0.02 a second, were it sure.
    assert 2.0 + 0.6 < forecast(swinging, 60) < 2.0 + 1.2


def test_a_few_points_tell_no_growth() -> None:
    assert forecast(points(1.0, 2.0, 3.0), 60) == 3.0
    assert forecast(points(1.0, 2.0, 3.0, 4.0, every=1.0), 60) == 4.0


@given(st.lists(works, min_size=1, max_size=30), st.floats(0, 3600))
def test_a_forecast_is_between_the_present_and_twice_that(
    engines: list[float], ahead: float
) -> None:
    found = forecast(points(*engines), ahead)
    assert engines[-1] <= found <= MOST_GROWTH * engines[-1]


def test_growth_is_read_off_the_last_minutes() -> None:
    loads = seen(points(*[1.0] * 60), LoadPoint(1300.0, 2.0))
    assert loads[-1] == (1300.0, 2.0)
    assert all(each.at > 1300 - SEEN_SECONDS for each in loads)
    # Told twice, it counts once.
    assert seen(loads, LoadPoint(1300.0, 3.0))[-2].at < 1300


def test_the_most_that_was_needed_counts() -> None:
    assert most_needed([Needed(1.0, 2), Needed(2.0, 5), Needed(3.0, 3)]) == 5
    assert most_needed([]) == 0


@pytest.mark.parametrize(("replicas", "most"), [(1, 5), (3, 7), (4, 8), (100, 200)])
def test_pods_are_added_step_by_step(replicas: int, most: int) -> None:
    assert most_at_once(replicas) == most


@pytest.mark.parametrize(("replicas", "least"), [(1, 0), (2, 1), (7, 6), (8, 6), (100, 75)])
def test_pods_are_removed_step_by_step(replicas: int, least: int) -> None:
    assert least_at_once(replicas) == least
