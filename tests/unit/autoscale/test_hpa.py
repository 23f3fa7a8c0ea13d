"""The HorizontalPodAutoscaler as it is compared with: the controller's own rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.autoscale.hpa import (
    STABILIZATION_SECONDS,
    SYNC_SECONDS,
    Memory,
    recommended,
    stabilized,
)

BOUNDS = (1, 100)


@pytest.mark.parametrize(
    ("replicas", "values", "missing", "target", "expected"),
    [
        (2, [2.0, 2.0], 0, 1.0, 4),
        (3, [1.0, 1.0, 1.3], 0, 1.0, 3),  # exactly 1.1: tolerated
        (3, [1.2, 1.2, 1.2], 0, 1.0, 4),
        (4, [0.2] * 4, 0, 1.0, 1),
        (2, [0.0, 0.0], 0, 1.0, 0),
        # Two that load count as idle: 4 / 4 is the target.
        (4, [2.0, 2.0], 2, 1.0, 4),
        (4, [4.0, 4.0], 2, 1.0, 8),
        # And as full where fewer would do: (0.2 + 0.2 + 1 + 1) / 4.
        (4, [0.2, 0.2], 2, 1.0, 3),
        # More load than the target, and less when those that load are counted.
        (4, [1.5], 3, 1.0, 4),
        (4, [], 4, 1.0, 4),
    ],
)
def test_what_the_metric_asks_for(
    replicas: int, values: list[float], missing: int, target: float, expected: int
) -> None:
    assert recommended(replicas, values, missing, target) == expected


def series(found: list[int], replicas: int) -> list[int]:
    memory, made = Memory(), []
    for sync, each in enumerate(found):
        replicas, memory = stabilized(memory, sync * SYNC_SECONDS, replicas, each, BOUNDS)
        made.append(replicas)
    return made


def test_at_most_four_more_or_twice_as_many_in_fifteen_seconds() -> None:
    assert series([100] * 5, 1) == [5, 10, 20, 40, 80]


def test_fewer_only_when_so_few_were_asked_for_all_of_five_minutes() -> None:
    syncs = int(STABILIZATION_SECONDS / SYNC_SECONDS)
    made = series([4, *[2] * (syncs + 1)], 4)
    assert made[:syncs] == [4] * syncs
    assert made[syncs:] == [2, 2]


def test_the_most_of_the_last_minutes_counts() -> None:
    syncs = int(STABILIZATION_SECONDS / SYNC_SECONDS)
    assert series([*[2] * 10, 3, *[2] * syncs], 4)[-2:] == [3, 2]


@given(st.lists(st.integers(0, 200), min_size=1, max_size=60), st.integers(1, 100))
def test_bounds_hold_whatever_is_asked_for(found: list[int], replicas: int) -> None:
    assert all(BOUNDS[0] <= each <= BOUNDS[1] for each in series(found, replicas))
